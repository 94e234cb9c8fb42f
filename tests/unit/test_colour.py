"""Colours of a result: where they are used; and they add no information to the text."""

from __future__ import annotations

import io
import re

import pytest
from trueload.report.colour import painted, wants_colour

INVALID = [
    "http://localhost/  64 connections",
    "",
    "verdict      invalid",
    "  fail errors: 12 of 12 requests failed: status",
    "",
    "throughput   0 requests/s",
    "failures     status 12",
    "saved        1   (trueload runs show 1)",
]
VALID = [INVALID[0], "", "throughput   12 requests/s", "verdict      valid", "  warn noise: some"]


class Stream(io.StringIO):
    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return super().isatty() or self._terminal  # super() raises if the file is closed


@pytest.mark.parametrize(
    ("terminal", "environ", "wanted"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (True, {"TERM": "dumb"}, False),
        (True, {"CLICOLOR": "0"}, False),
        (False, {"CLICOLOR_FORCE": "1"}, True),
        (False, {"CLICOLOR_FORCE": "0"}, False),
        (True, {"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, False),
        (False, {"CLICOLOR_FORCE": "1", "TERM": "dumb"}, True),
    ],
)
def test_colours_are_for_terminals_unless_somebody_says_otherwise(
    terminal: bool, environ: dict[str, str], wanted: bool
) -> None:
    assert wants_colour(Stream(terminal=terminal), environ) is wanted


def test_a_closed_stream_has_none() -> None:
    stream = Stream(terminal=True)
    stream.close()
    assert not wants_colour(stream, {})


@pytest.mark.parametrize("lines", [INVALID, VALID, [], [""]])
def test_the_text_is_the_same_and_every_colour_ends(lines: list[str]) -> None:
    shown = painted(lines)
    assert [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in shown] == lines
    assert all(line.endswith("\x1b[0m") for line in shown if "\x1b" in line and ":" not in line)


def test_figures_that_are_not_to_be_trusted_are_grey() -> None:
    grey = [line for line in painted(INVALID) if line.startswith("\x1b[2m")]
    assert [line[4:14] for line in grey] == ["throughput", "failures  ", "saved     "]
    assert not [line for line in painted(VALID) if line.startswith("\x1b[2m")]


def test_verdict_and_checks_have_their_colours() -> None:
    assert "\x1b[31minvalid" in painted(INVALID)[2]
    assert painted(INVALID)[3] == "\x1b[31m  fail errors:\x1b[0m 12 of 12 requests failed: status"
    assert "\x1b[32mvalid" in painted(VALID)[3]
    assert painted(VALID)[4].startswith("\x1b[33m  warn noise:")
