#!/usr/bin/env python3
"""The manual page, trueload(1), from what the commands declare: it says what `--help` says.

Strategy: walks the parser of the command line and writes each command's usage, text, arguments and
options in the language of man(7). `make release` puts the page into the wheel. To look at it, from
the virtual environment of the checkout:

    .venv/bin/python tools/man_page.py | man -l -
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from typing import Any

from trueload import __version__
from trueload.cli.app import build_command
from trueload.cli.help_groups import in_groups


def page() -> str:
    """Return the whole page."""
    return "\n".join(_lines(build_command())) + "\n"


def _lines(root: Any) -> Iterator[str]:
    context = root.make_context("trueload", [], resilient_parsing=True)
    yield f'.TH TRUELOAD 1 "" "trueload {__version__}" "User Commands"'
    # No hyphenation and no justification: options and URLs must not be broken or stretched.
    yield from (".nh", ".ad l")
    about = _paragraphs(root.help)
    sentence = about[0][0].lower() + about[0][1:].rstrip(".")
    yield from (".SH NAME", rf"trueload \- {_escaped(sentence)}")
    yield from (".SH SYNOPSIS", ".B trueload", _escaped("COMMAND [OPTIONS] [ARGUMENTS]"))
    yield from (".SH DESCRIPTION", *_text(about), ".SH OPTIONS", *_parameters(root, context))
    yield ".SH COMMANDS"
    yield from _commands(root, context)
    yield ".SH SEE ALSO"
    yield _escaped("trueload COMMAND --help prints the part of one command.")


def _commands(group: Any, above: Any) -> Iterator[str]:
    for name, command in group.commands.items():
        context = command.make_context(name, [], parent=above, resilient_parsing=True)
        if getattr(command, "commands", None):
            yield from _commands(command, context)
            continue
        usage = " ".join((context.command_path, *command.collect_usage_pieces(context)))
        yield f".SS {_escaped(usage)}"
        yield from _text(_paragraphs(command.help))
        yield from _parameters(command, context)


def _parameters(command: Any, context: Any) -> Iterator[str]:
    """Yield the arguments, then the options in groups, as `--help` lists them."""
    listed = [each for each in command.get_params(context) if each.get_help_record(context)]
    for parameter in listed:
        if parameter.param_type_name == "argument":
            yield from _parameter(parameter, context)
    groups = in_groups(each for each in listed if each.param_type_name == "option")
    for title, options in groups:
        if title != "Options":
            yield from (".PP", rf"\fB{_escaped(title)}\fR")
        for option in options:
            yield from _parameter(option, context)


def _parameter(parameter: Any, context: Any) -> Iterator[str]:
    name, help_text = parameter.get_help_record(context)
    yield from (".TP", rf"\fB{_escaped(name)}\fR", _escaped(" ".join(help_text.split())))


def _paragraphs(text: str) -> list[str]:
    blocks = inspect.cleandoc(text).replace("\b\n", "").split("\n\n")
    return [" ".join(block.split()) for block in blocks if block.strip()]


def _text(paragraphs: list[str]) -> Iterator[str]:
    for paragraph in paragraphs:
        yield from (".PP", _escaped(paragraph))


def _escaped(text: str) -> str:
    """Escape text so that man(7) prints it unchanged.

    A leading `.` would be a request; a plain `-` would be a hyphen, and `'` and `^` other
    characters.
    """
    text = text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq").replace("^", r"\(ha")
    text = text.replace("`", r"\(ga").replace("~", r"\(ti")
    return rf"\&{text}" if text.startswith(".") else text


if __name__ == "__main__":
    sys.stdout.write(page())
