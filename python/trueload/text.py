"""Makes text that may come from anywhere fit for a terminal: inert, and as wide as one.

Peers, manifests and file names decide what is in records. So control characters and escape
sequences are removed before a terminal sees them. Pure.
"""

from __future__ import annotations

import contextlib
import re
import signal
import textwrap
import unicodedata
from collections.abc import Sequence
from typing import Any

WIDTH = 80
LABEL_WIDTH = 13
REASON_LINES = 2  # the rest of a reason is in `trueload runs show --why`
APART = "   "
"""What stands between the figures of a line, which breaks there first."""
_GLUE = "\0"  # stands for a blank at which a line does not break

# ECMA-48: control sequences (CSI), control strings (OSC, DCS, SOS, PM, APC) up to their end, and
# escapes of a single function. CSI and control strings may also begin with one 8-bit character.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]"
)
# Controls, formats (including bidirectional overrides), surrogates, unassigned and private
# characters, line and paragraph separators.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"})


def without_escapes(text: str) -> str:
    """The text without its escape sequences: colours, titles, links.

    They are removed whole: without only the escape character, their letters and digits would stay
    and look like a part of the text.
    """
    return _ESCAPES.sub("", text)


def plain(text: str, length_max: int = 10_000) -> str:
    """One line without anything that a terminal would obey; tabs and line ends become spaces."""
    shown = "".join(
        " " if c in "\t\n\r" else c
        for c in without_escapes(text[:length_max])
        if c in "\t\n\r" or unicodedata.category(c) not in _HIDDEN
    )
    return shown + ("…" if len(text) > length_max else "")


def by_number(name: str) -> list[tuple[int, str]]:
    """A sort key by which ``pod-8`` comes before ``pod-16``."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", name)]


def signal_text(number: int) -> str:
    """A signal by its number and name: ``signal 9 (SIGKILL)``."""
    with contextlib.suppress(ValueError):
        return f"signal {number} ({signal.Signals(number).name})"
    return f"signal {number}"


def listed(names: Sequence[str], most: int = 4) -> str:
    """Names in a sentence: ``a, b and c``, or ``a, b, c, d and 3 more``."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def labelled(label: str, text: str) -> list[str]:
    """A label and its text, as lines that fit a terminal; none for an empty text."""
    if not text:
        return []
    room = WIDTH - LABEL_WIDTH
    parts = [part.replace(" ", _GLUE) if len(part) <= room else part for part in text.split(APART)]
    first, *more = _wrapped(APART.join(parts), room)
    lines = [f"{label:<{LABEL_WIDTH}}{first}", *(f"{'':<{LABEL_WIDTH}}{each}" for each in more)]
    return [line.replace(_GLUE, " ") for line in lines]


def folded(
    line: str, most: int | None = None, indent: str = "    ", *, width: int = WIDTH
) -> list[str]:
    """A line, wrapped to fit a terminal. Of more than ``most`` lines, the last has only the end of
    the line, where a reason says what follows from it."""
    lines = _wrapped(line, width, subsequent_indent=indent)
    if most is None or len(lines) <= most:
        return lines
    *left_out, end = " ".join(lines[most - 1 :]).split()
    while left_out and len(indent) + len(left_out[-1]) + len(end) + 3 <= width:
        end = f"{left_out.pop()} {end}"
    return [*lines[: most - 1], f"{indent}… {end}"]


def _wrapped(text: str, width: int, **more: Any) -> list[str]:
    # A word that is too long, such as a URL, stays whole: it may be copied.
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False, **more)
