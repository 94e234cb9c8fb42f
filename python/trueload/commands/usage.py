"""Explains the parser's complaints: one line names the mistake, and one helps."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import typer

from trueload.commands.foreign_flags import BY_FLAG, REMOVED, removed_hint


def explain_usage_error(
    error: typer.TyperException, command_path: Callable[[], str]
) -> tuple[str, str]:
    """Return a parser's complaint about a command line as (message, hint), each one line.

    ``command_path`` is called if the complaint does not name the command.
    """
    message = one_line(error.format_message()).rstrip(".")
    # The parser's own phrase for a wrong choice.
    message = message.replace(": Value error, ", ": ", 1)
    # typer has no public class for these complaints; their attributes identify them.
    context = getattr(error, "ctx", None)
    path = context.command_path if context else command_path()
    see_help = f"see `{path} --help`"
    option = getattr(error, "option_name", None)
    if option is not None and hasattr(error, "possibilities"):
        near = next(iter(error.possibilities or ()), None)  # the nearest comes first
        hint = f"did you mean {near}? {see_help}" if near else see_help
        foreign = BY_FLAG.get(option)
        if foreign is not None and context and foreign.is_of_use(_flags(context.command)):
            hint = foreign.hint()
        return f"{path} has no option {option}", removed_hint(path, option) or hint
    unknown = re.fullmatch(r"No such command '(.*?)'\.?(?: Did you mean (.*)\?)?", message)
    if unknown is not None:
        name, near = unknown[1], unknown[2]
        if near is None and re.search(r"://|:\d+", name):
            near = f"`{path} http {name}`"
        hint = f"did you mean {near}? {see_help}" if near else f"{see_help} for the commands"
        return f"{path} has no command '{name}'", REMOVED.get(name, hint)
    return message[:1].lower() + message[1:], see_help


def _flags(command: Any) -> set[str]:
    return {flag for parameter in command.params for flag in parameter.opts}


def one_line(text: str) -> str:
    """Return a text without line breaks, or control codes that a peer had in it."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
