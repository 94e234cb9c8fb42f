"""The lines of access logs: Common Log Format, combined, and JSON as nginx writes it. Pure.

Such a log has the time of each request, mostly to the second, and no body. JSON has nginx's
variables by their names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from trueload.request.recorded_request import (
    Headers,
    Recorded,
    clean_headers,
    parse_asked,
    parse_common_time,
    parse_iso,
    parse_request_line,
)
from trueload.units import NS_PER_S

COMMON, COMBINED, NGINX = "common access log", "combined access log", "nginx JSON log"
NGINX_TIMES = ("msec", "time_iso8601", "time_local")
"""The variables that tell when a request was logged, the most precise first."""

_QUOTED = r'"((?:[^"\\]|\\.)*)"'
_LINE = re.compile(
    r"\S+ [^\[]*\[(\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})\] "
    rf"{_QUOTED} (\d{{3}}|-) (?:\d+|-)(?: {_QUOTED} {_QUOTED})?",
    re.ASCII,
)
_ESCAPED = re.compile(r"\\(x[0-9A-Fa-f]{2}|.)")
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "v": "\v", "b": "\b"}


class NoLineError(ValueError):
    """A line is none of its format."""


def kind_of_line(line: str) -> str | None:
    """Return the format of an access log, from one of its lines; None if it is none."""
    found = _LINE.match(line)
    if found is None:
        return None
    return COMMON if found[4] is None else COMBINED


def parse_line(line: str) -> Recorded:
    """Parse a line of a common or combined log. Raises ``NoLineError`` and ``UnsendableError``."""
    found = _LINE.match(line)
    if found is None:
        raise NoLineError("not a line of an access log")
    time, request, status, referer, agent = found.groups()
    try:
        at_ns = _common_time(time)
    except ValueError:
        raise NoLineError("not a time of an access log") from None
    method, host, path = parse_request_line(_plain(request))
    return Recorded(
        at_ns=at_ns,
        method=method,
        host=host,
        path=path,
        headers=_headers(referer, agent),
        status=int(status) if status.isdigit() else None,
        whole=True,
    )


# Neighbouring lines have the same time, and most clients send many requests.
_common_time = lru_cache(maxsize=16)(parse_common_time)


@lru_cache(maxsize=4096)
def _headers(referer: str | None, agent: str | None) -> Headers:
    pairs = (("Referer", referer), ("User-Agent", agent))
    return clean_headers(
        (name, _plain(value)) for name, value in pairs if value not in (None, "-", "")
    )


def _plain(text: str | None) -> str:
    """Undo the escapes of a log: ``\\"``, ``\\n`` and so on, and ``\\xHH`` for bytes of UTF-8."""
    if text is None or "\\" not in text:
        return text or ""

    def undone(found: re.Match[str]) -> str:
        escaped = found[1]
        if len(escaped) == 3:
            return bytes([int(escaped[1:], 16)]).decode("utf-8", "surrogateescape")
        return _CONTROLS.get(escaped, escaped)

    whole = _ESCAPED.sub(undone, text)
    return whole.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def is_nginx(fields: dict[str, Any]) -> bool:
    """Whether an object has the variables of an nginx log."""
    asked = "request" in fields or "request_uri" in fields or "uri" in fields
    return asked and any(name in fields for name in NGINX_TIMES)


def parse_nginx(line: str) -> Recorded:
    """Parse a line of JSON with nginx's variables. Raises ``NoLineError`` and
    ``UnsendableError``."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        raise NoLineError("not JSON") from None
    if not isinstance(fields, dict) or not is_nginx(fields):
        raise NoLineError("no time and request by nginx's names")
    texts = {
        name: str(value) for name, value in fields.items() if not isinstance(value, dict | list)
    }
    at_ns, whole = _nginx_time(texts)
    if "request" in texts:
        method, host, path = parse_request_line(texts["request"])
    else:
        asked = texts.get("request_uri") or texts.get("uri", "")
        if "request_uri" not in texts and texts.get("args"):
            asked += f"?{texts['args']}"
        method, host, path = parse_asked(texts.get("request_method", "GET"), asked)
    named = texts.get("http_host") or texts.get("host") or ""
    status = texts.get("status", "")
    return Recorded(
        at_ns=at_ns,
        method=method,
        host=host or named.lower(),
        path=path,
        headers=_headers(texts.get("http_referer"), texts.get("http_user_agent")),
        status=int(status) if status.isascii() and status.isdigit() else None,
        whole=whole,
    )


def _nginx_time(texts: dict[str, str]) -> tuple[int, bool]:
    """When a request came, and whether that is known to the second only. nginx logs a request at
    its end: what it took is subtracted where both are known to the millisecond."""
    parsers: dict[str, Callable[[str], tuple[int, bool]]] = {
        "msec": lambda text: (_seconds(text) - _seconds(texts.get("request_time", "0")), False),
        "time_iso8601": parse_iso,
        "time_local": lambda text: (_common_time(text), True),
    }
    for name in NGINX_TIMES:
        if name in texts:
            try:
                return parsers[name](texts[name])
            except (ValueError, IndexError):
                continue
    raise NoLineError("no time that can be read")


def _seconds(text: str) -> int:
    """Seconds with a fraction, in ns. Raises ``ValueError``."""
    whole, _, fraction = text.strip().partition(".")
    digits = fraction[:9].ljust(9, "0")
    if not (whole.isascii() and whole.isdigit() and digits.isascii() and digits.isdigit()):
        raise ValueError(f"{text!r} is not a number of seconds")
    return int(whole[:12]) * NS_PER_S + int(digits)
