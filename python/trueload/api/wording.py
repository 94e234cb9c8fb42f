"""Errors in the words of Python: ``connections=`` where the command line has ``--connections``."""

from __future__ import annotations

import re
from collections.abc import Collection

from trueload.errors import UserError

# What is in backticks is typed in a shell. An option may have its short name beside it, or a value.
_OPTION = re.compile(
    r"`[^`]*`"
    r"|(?:'-\w' / )?'?--(?P<name>[a-z][a-z0-9-]*)'?(?: / '-\w')?"
    r"(?: (?P<value>'[^']*'|[A-Z]+\b|\d+\b(?!/))| (?P<quantity>\d+[a-z]*(?:/[a-z]+)?)\b)?"
)
_SHORT = re.compile(r"-\w ('[^']*'|\w+) \((--[a-z-]+)\)")
_UNKNOWN = re.compile(r"trueload (\w+)[\w ]* has no option --?([\w-]+)")
_HELP = re.compile(r"`trueload (\w+)[\w ]* --help`")


def in_python(error: UserError, names: Collection[str]) -> UserError:
    """Return an error without its traceback, which is about trueload's own code; its text names the
    arguments of a function."""
    error.message, error.hint = (_spoken(text, names) for text in (error.message, error.hint))
    error.args = (error.message,)
    error.__notes__ = [f"hint: {error.hint}"]
    return error.with_traceback(None)


def _spoken(text: str, names: Collection[str]) -> str:
    def say(found: re.Match[str]) -> str:
        name = (found["name"] or "").replace("-", "_")
        value = f"'{found['quantity']}'" if found["quantity"] else found["value"] or ""
        return f"{name}={value}" if name in names else found[0]

    text = _SHORT.sub(lambda found: f"{found[2]} {_quoted(found[1])}", text)
    text = _UNKNOWN.sub(
        lambda found: (
            f"trueload.{_function(found[1])} has no argument {found[2].replace('-', '_')}="
        ),
        text,
    )
    text = _HELP.sub(lambda found: f"help(trueload.{_function(found[1])})", text)
    return _OPTION.sub(say, text)


def _quoted(value: str) -> str:
    return value if value == "N" or value.startswith("'") else f"'{value}'"


def _function(command: str) -> str:
    return "ab" if command == "compare" else command
