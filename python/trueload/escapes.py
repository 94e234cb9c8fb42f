"""Escape sequences of terminals, in text from elsewhere: colours, titles, links. Pure.

They are taken out whole: without their escape character alone, their letters and digits would stay
and look like a part of the text. Must not know where a text comes from.
"""

from __future__ import annotations

import re

# ECMA-48: control sequences (CSI), control strings (OSC, DCS, SOS, PM, APC) up to their end, and
# escapes of one function; each that has a single character of 8 bits by that, too.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]"
)


def without_escapes(text: str) -> str:
    """The text as it would be read on a terminal."""
    return _ESCAPES.sub("", text)
