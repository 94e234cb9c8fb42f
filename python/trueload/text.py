"""Makes text that may come from anywhere fit for a terminal.

Peers, manifests and file names decide what is in records. So control characters and escape
sequences are removed before a terminal sees them. Pure.
"""

from __future__ import annotations

import contextlib
import re
import signal
import unicodedata
from collections.abc import Sequence

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
