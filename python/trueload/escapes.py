"""Removes escape sequences of terminals (colours, titles, links) from text of others. Pure.

They are removed whole: without only the escape character, their letters and digits would stay and
look like a part of the text.
"""

from __future__ import annotations

import re

# ECMA-48: control sequences (CSI), control strings (OSC, DCS, SOS, PM, APC) up to their end, and
# escapes of a single function. CSI and control strings may also begin with one 8-bit character.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]"
)


def without_escapes(text: str) -> str:
    """The text without its escape sequences."""
    return _ESCAPES.sub("", text)
