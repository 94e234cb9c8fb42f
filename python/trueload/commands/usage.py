"""Explains the parser's complaints: one line names the mistake, and one helps.

How: a word that is written wrongly (``hints.slip``) comes first, since the parser may have
taken it for something else. Then come the flags of other tools, and last the nearest name. Where
none of them is sure, the hint is the command's help.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import typer

from trueload.commands import hints
from trueload.commands.foreign_flags import COMMANDS_ELSEWHERE, REMOVED
from trueload.near import did_you_mean


def explain_usage_error(
    error: typer.TyperException, find_context: Callable[[], Any], words: Sequence[str] = ()
) -> tuple[str, str]:
    """Return a parser's complaint about a command line as (message, hint), each one line.

    ``find_context`` is called if the complaint does not name the command. ``words`` are all of the
    command line.
    """
    message = one_line(error.format_message()).rstrip(".")
    # The parser's own phrase for a wrong choice.
    message = message.replace(": Value error, ", ": ", 1)
    # typer has no public class for these complaints; their attributes identify them.
    context = getattr(error, "ctx", None) or find_context()
    path = context.command_path
    see_help = f"see `{path} --help`"
    typed = hints.Typed(path, hints.options_of(context), words[path.count(" ") :])
    option = getattr(error, "option_name", None)
    if option is not None and hasattr(error, "possibilities"):
        option, hint = hints.slip(typed) or hints.option_hint(option, typed)
        return f"{path} has no option {option}", hint or see_help
    unknown = re.fullmatch(r"No such command '(.*?)'\.?(?: Did you mean .*)?", message)
    if unknown is not None:
        hint = _hint_of_command(unknown[1], context)
        return f"{path} has no command '{unknown[1]}'", hint or f"{see_help} for the commands"
    message = message[:1].lower() + message[1:]
    if (slip := hints.slip(typed)) is not None:
        return message, slip[1]
    return message, _hint_of_complaint(error, message, typed) or see_help


def _hint_of_command(name: str, context: Any) -> str | None:
    path = context.command_path
    known = REMOVED | COMMANDS_ELSEWHERE
    if (whole := f"{path} {name}".removeprefix("trueload ")) in known:
        return known[whole]
    if (near := did_you_mean(name, getattr(context.command, "commands", {}))) is not None:
        return f"{near} see `{path} --help`"
    if path == "trueload suite":
        return "`trueload suite run NAME` measures a suite, `trueload suite new NAME` makes one"
    is_host = path == "trueload" and re.fullmatch(r"[\w-]+(\.[\w-]+)+(/\S*)?", name)
    return f"to load a host of that name: `trueload http {name}`" if is_host else None


def _hint_of_complaint(error: Any, message: str, typed: hints.Typed) -> str | None:
    if message.startswith("got unexpected extra argument"):
        word = message.rpartition("(")[2].rstrip(")")
        return (
            hints.missing_value(typed, None)
            or hints.several_urls(typed)
            or hints.stray(typed, word)
        )
    if message.startswith("missing argument"):
        return hints.ONE_SERVER if typed.path == "trueload compare" else None
    if (option := getattr(error, "option_name", None)) is not None:
        return typed.value_of(option)
    parameter = getattr(error, "param", None)
    return None if parameter is None else hints.value_hint(typed, parameter.opts)


def one_line(text: str) -> str:
    """Return a text without line breaks, or control codes that a peer had in it."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
