"""What the formats of logs have in common: a line becomes a request, and its bytes stay what they
are. Pure.

A text of a log may have bytes that are not UTF-8. They stand in it as lone surrogates, as those of
file names do in Python (PEP 383): percent-encoded in a path, and sent as they are in a header.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from trueload.request.recorded_request import Headers, RecordedRequest, clean_headers
from trueload.units import NS_PER_S

Parser = Callable[[str], RecordedRequest | None]
"""Parses a line; None for one that belongs to the format, and is no request. Raises
``ValueError`` if it is none of the format, ``UnsendableError``, and ``UserError`` if the whole file
is refused for the line."""

Order = Literal["ends", "starts", "none"]
"""The order of lines: that of the requests' ends, of their starts, or none."""

QUOTED = r'"((?:[^"\\]|\\.)*)"'
_ESCAPED = re.compile(r"\\(x[0-9A-Fa-f]{2}|.)")
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "v": "\v", "b": "\b"}


@dataclass(frozen=True, kw_only=True)
class LineFormat:
    """A format of which each line is a request. ``begin`` returns the parser of a file that has
    this line; None if the line is of another format."""

    name: str
    begin: Callable[[str], Parser | None]
    order: Order = "ends"


def text_of_line(line: bytes) -> str:
    """A line as text, without spaces around it."""
    return line.strip().decode("utf-8", "surrogateescape")


def plain(text: str | None) -> str:
    """Undo the escapes of a log: ``\\"``, ``\\n`` and so on, and ``\\xHH`` for any byte."""
    if text is None or "\\" not in text:
        return text or ""

    def undone(found: re.Match[str]) -> str:
        escaped = found[1]
        return _byte(escaped[1:]) if len(escaped) == 3 else _CONTROLS.get(escaped, escaped)

    return _joined(_ESCAPED.sub(undone, text))


def _byte(digits: str) -> str:
    """A byte, given by its two digits, in the text of a log."""
    return bytes([int(digits, 16)]).decode("utf-8", "surrogateescape")


def _joined(text: str) -> str:
    """A text in which bytes that are UTF-8 together are the character that they encode."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")


def json_fields(line: str) -> dict[str, Any]:
    """Parse a line that is a JSON object. nginx writes ``\\xHH`` in it, which JSON does not have,
    unless its format says ``escape=json``. Raises ``ValueError``."""

    def in_json(found: re.Match[str]) -> str:
        byte = _byte(found[1][1:]) if len(found[1]) == 3 else ""
        return json.dumps(byte)[1:-1] if byte.isascii() and byte else byte or found[0]

    try:
        fields = json.loads(_joined(_ESCAPED.sub(in_json, line)) if "\\x" in line else line)
    except (ValueError, RecursionError):
        raise ValueError("not JSON") from None
    if not isinstance(fields, dict):
        raise ValueError("not an object")
    return fields


def headers_of(pairs: Iterable[tuple[str, str]]) -> Headers:
    """Return the headers that a log has; ``-`` and an empty text stand for none."""
    return _sent(tuple((name, text) for name, text in pairs if text and text != "-"))


# Most clients send many requests.
_sent = lru_cache(maxsize=4096)(clean_headers)


def status_of(text: str) -> int | None:
    """The status of an answer; None if there is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) == 3 else None


def seconds(text: str) -> int:
    """Seconds with a fraction, in ns. Raises ``ValueError``."""
    whole, _, fraction = text.strip().partition(".")
    digits = fraction[:9].ljust(9, "0")
    if not (whole.isascii() and whole.isdigit() and digits.isascii() and digits.isdigit()):
        raise ValueError(f"{text!r} is not a number of seconds")
    return int(whole[:12]) * NS_PER_S + int(digits)
