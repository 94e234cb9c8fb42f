"""Caddy's access logs: a JSON object a line, with all headers of the request. Pure.

https://caddyserver.com/docs/logging has the format. Caddy writes ``REDACTED``, or an empty text,
for the values of secret headers: these headers are left out. It writes U+FFFD for a byte that is
not UTF-8: what the byte was is lost, and so is the request or header that had it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trueload.request.logs.line import (
    LineFormat,
    Parser,
    headers_of,
    json_fields,
    status_of,
)
from trueload.request.recorded_request import (
    RecordedRequest,
    UnsendableError,
    parse_asked,
    parse_iso,
)
from trueload.units import NS_PER_S

_HIDDEN = "REDACTED"
_LOST = "\ufffd"
_S_MAX = 10**11  # three thousand years


def is_caddy(fields: dict[str, Any]) -> bool:
    """Whether an object is a request that Caddy logged."""
    request = fields.get("request")
    return isinstance(request, dict) and "ts" in fields and {"method", "uri"} <= request.keys()


def parse_caddy(line: str) -> RecordedRequest | None:
    """Parse a line; None for what is logged beside requests. Raises ``ValueError`` and
    ``UnsendableError``."""
    fields = json_fields(line)
    if not is_caddy(fields):
        if "request" in fields or "ts" not in fields:
            raise ValueError("no time and request by Caddy's names")
        return None
    request = fields["request"]
    if _LOST in str(request["uri"]):
        raise UnsendableError("bytes that the log has lost")
    asked = parse_asked(str(request["method"]), str(request["uri"]))
    at_ns, whole = _time(fields)
    return asked.recorded(
        at_ns,
        headers_of(_headers(request.get("headers"))),
        host=str(request.get("host") or ""),
        status=status_of(str(fields.get("status", ""))),
        whole=whole,
    )


def _headers(values: Any) -> Iterator[tuple[str, str]]:
    for name, texts in values.items() if isinstance(values, dict) else ():
        for text in texts if isinstance(texts, list) else [texts]:
            if text != _HIDDEN and _LOST not in str(text):
                yield str(name), str(text)


def _time(fields: dict[str, Any]) -> tuple[int, bool]:
    """When a request came: it is logged at its end, and took ``duration`` seconds if that is a
    number with a fraction."""
    value, took = fields["ts"], fields.get("duration")
    took_ns = round(took * NS_PER_S) if isinstance(took, float) and 0 <= took < _S_MAX else 0
    if not isinstance(value, str):
        return _since_1970(value) - took_ns, False
    at_ns, whole = parse_iso(value.replace("/", "-"))
    return (at_ns, whole) if whole else (at_ns - took_ns, whole)


def _since_1970(value: Any) -> int:
    """A number as ns. It is in seconds unless it is too large for that: then in ms, and so on."""
    if not isinstance(value, int | float) or not 0 <= value < _S_MAX * NS_PER_S:
        raise ValueError("no time that can be read")
    unit = NS_PER_S
    while value * unit >= _S_MAX * NS_PER_S:
        unit //= 1000
    return round(value * unit)


def _begin(line: str) -> Parser | None:
    return parse_caddy if is_caddy(json_fields(line)) else None


CADDY = LineFormat(name="Caddy log", begin=_begin)
