"""Turns keyword arguments into the words of a command line, and parses them like one.

How: an argument has the name of the option (``expect_status`` is ``--expect-status``) and its
value, as text or as a Python value. The command itself parses the words, so names, units, defaults
and complaints are the same in both. A bare number for an option that takes a time is in seconds.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from enum import Enum
from numbers import Integral, Real
from os import PathLike, fspath
from typing import Any, Generic, TypeVar

import typer

from trueload.commands.hints import by_flag
from trueload.commands.usage import explain_usage_error
from trueload.errors import UserError

Parsed = TypeVar("Parsed")
TIME = "TIME"  # the help's placeholder for a duration


@dataclass(frozen=True)
class CommandLine(Generic[Parsed]):
    """The command line after ``trueload``, and its parsed value."""

    words: tuple[str, ...]
    value: Parsed


def understand(
    path: Sequence[str],
    read: Callable[..., Parsed],
    arguments: Sequence[object],
    options: Mapping[str, object],
    refused: Mapping[str, str],
) -> CommandLine[Parsed]:
    """Parse arguments with the command at ``path`` (``http``, or ``suite run``).

    ``read`` declares its options. ``refused`` has the options that only the command line has, each
    with what to do instead. Raises ``UserError`` as the command line does.
    """
    for name in options:
        if name in refused:
            raise UserError(f"{name} is an option of the command line only", refused[name])
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(add_help_option=False)(read)
    command: Any = typer.main.get_command(app)
    words = [*_positionals(arguments), *option_words(command, options)]
    name = " ".join(["trueload", *path])
    try:
        with command.make_context(name, list(words)) as context:
            value: Parsed = command.invoke(context)
    except typer.TyperException as error:
        message, hint = explain_usage_error(
            error, lambda: command.context_class(command, info_name=name)
        )
        from trueload.request.redact import hide_arguments  # imported late, as there is a mistake

        raise UserError(hide_arguments(message, words), hint) from error
    return CommandLine((*path, *words), value)


def shown(words: Sequence[str]) -> str:
    """Return a command line, quoted for a shell."""
    return shlex.join(["trueload", *words])


def _positionals(arguments: Sequence[object]) -> list[str]:
    words = [_text("its argument", value) for value in arguments if value is not None]
    # A word that looks like an option is an argument here.
    return ["--", *words] if any(word.startswith("-") for word in words) else words


def option_words(command: Any, options: Mapping[str, object]) -> Iterator[str]:
    """Yield the words of options by their names.

    An unknown option is left for the parser to report. Raises ``UserError``.
    """
    known = by_flag(command.params)
    for name, value in options.items():
        flag = f"--{name.rstrip('_').replace('_', '-')}"
        parameter = known.get(flag)
        if value is None:
            continue
        if parameter is None:
            yield flag  # the parser will report it
        elif getattr(parameter, "is_flag", False):
            yield from _flag_words(flag, parameter, value)
        elif parameter.multiple:
            for each in _several(value):
                yield f"{flag}={_text(flag, each)}"
        elif isinstance(value, Mapping):
            is_data = flag == "--data" and "--body" in known
            hint = "it names a file; a body to send is body={…}" if is_data else "write it as text"
            raise UserError(f"{flag} cannot be a {type(value).__name__}", hint)
        elif parameter.metavar == TIME:
            yield f"{flag}={_duration(flag, value)}"
        else:
            yield f"{flag}={','.join(_text(flag, each) for each in _several(value))}"


def _flag_words(flag: str, parameter: Any, value: object) -> Iterator[str]:
    if not isinstance(value, bool):
        raise UserError(f"{flag} is {value!r}, and is either given or not", "write True or False")
    if value:
        yield flag
    elif others := parameter.secondary_opts if flag in parameter.opts else parameter.opts:
        yield others[0]


def _several(value: object) -> list[object]:
    """Return the values of an option that may be repeated, or be a list: ``-c 8,64``."""
    if isinstance(value, Mapping):
        return [f"{name}: {each}" for name, each in value.items()]
    if isinstance(value, list | tuple | set | frozenset | range):
        return sorted(value) if isinstance(value, set | frozenset) else list(value)
    return [value]


def _duration(flag: str, value: object) -> str:
    """Convert seconds as a number, a text with its unit, or a ``timedelta``."""
    if isinstance(value, str):
        return _whole(flag, value)
    if isinstance(value, timedelta) and value >= timedelta():
        return f"{value // timedelta(microseconds=1)}us"
    number = _number(value)
    if number is None or number.startswith("-"):
        hint = "give seconds as a number from 0, a text like '500ms', or a timedelta"
        raise UserError(f"{flag} cannot be {value!r}", hint)
    return f"{number}s"


def _text(flag: str, value: object) -> str:
    match value:
        case Enum():
            return _text(flag, value.value)
        case str():
            return _whole(flag, value)
        case bytes():
            return value.decode("utf-8", "surrogateescape")
        case PathLike():
            return _text(flag, fspath(value))
    number = _number(value)
    if number is None:
        raise UserError(
            f"{flag} cannot be {value!r}", "write it as on the command line: 64, '20k/s'"
        )
    return number


def _number(value: object) -> str | None:
    """Return a number as it would be typed, also numpy's; None for anything else or infinite."""
    match value:
        case bool():
            return None
        case Integral():
            return str(int(value))
        case Real():
            value = Decimal(float.__repr__(float(value)))
    if not isinstance(value, Decimal) or not value.is_finite():
        return None
    return f"{value.normalize():f}"


def _whole(flag: str, text: str) -> str:
    """Return a text, if a command line could contain all its characters."""
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise UserError(
            f"{flag} has half of a surrogate pair", "write whole characters, or bytes"
        ) from None
    return text
