"""The lines of a result in colour, for a terminal: doubts about it stand out.

How: lines are recognized by how they begin, which is the same in a pipe, so colour alone never says
anything. The figures of an invalid result are dim.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TextIO

from trueload.text import LABEL_WIDTH

_RESET, _BOLD, _DIM = "\x1b[0m", "\x1b[1m", "\x1b[2m"
_RED, _GREEN, _YELLOW, _CYAN = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m"
# The colour of each verdict, and of a check by the start of its line.
_VERDICTS = {"valid": _GREEN, "suspect": _YELLOW, "invalid": _RED}
_CHECKS = {"  fail ": _RED, "  warn ": _YELLOW, "  bound ": _CYAN}
_BAD = ("failures", "reasons", "partial")


def write_lines(stream: TextIO, lines: Sequence[str]) -> None:
    """Write the lines of a result, in colour if the stream should have it."""
    shown = painted(lines) if wants_colour(stream, os.environ) else lines
    stream.write("\n".join(shown) + "\n")
    stream.flush()


def is_terminal(stream: TextIO) -> bool:
    """Whether a stream is a terminal; a closed stream is none."""
    try:
        return stream.isatty()
    except ValueError:
        return False


def wants_colour(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether a stream should have colours.

    Follows https://no-color.org and https://bixense.com/clicolors, the former first.
    """
    if environ.get("NO_COLOR"):
        return False
    if environ.get("CLICOLOR_FORCE", "0") != "0":
        return True
    return is_terminal(stream) and environ.get("CLICOLOR") != "0" and environ.get("TERM") != "dumb"


def painted(lines: Sequence[str]) -> list[str]:
    """Return the lines of a result in colour: headline, labelled lines, checks, verdict."""
    verdict = next((_word(line) for line in lines if line.startswith("verdict ")), "")
    figures = _DIM if verdict == "invalid" else ""
    return [
        _painted(line, figures, is_headline=number == 0) if line else line
        for number, line in enumerate(lines)
    ]


def _word(line: str) -> str:
    return line[LABEL_WIDTH:].partition(" ")[0]


def _painted(line: str, figures: str, *, is_headline: bool) -> str:
    if is_headline:
        return f"{_BOLD}{line}{_RESET}"
    for begin, colour in _CHECKS.items():
        if line.startswith(begin):
            name, colon, why = line.partition(":")
            return f"{colour}{name}{colon}{_RESET}{why}"
    label, text = line[:LABEL_WIDTH], line[LABEL_WIDTH:]
    if line.startswith("    ") and label.strip():
        return line  # a reason goes on
    if label.startswith("verdict "):
        return f"{label}{_BOLD}{_VERDICTS.get(_word(line), '')}{text}{_RESET}"
    if label.strip() in _BAD:
        return f"{_DIM}{label}{_RESET}{_RED}{text}{_RESET}"
    if label.startswith("saved "):
        return f"{_DIM}{line}{_RESET}"
    return f"{figures}{line}{_RESET}" if figures else line
