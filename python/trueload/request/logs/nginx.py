"""Requests by nginx's variables: those of its logs in JSON, and of formats written down. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from trueload.request.logs.common import common_time
from trueload.request.logs.line import (
    LineFormat,
    Parser,
    headers_of,
    json_fields,
    seconds,
    status_of,
)
from trueload.request.recorded_request import (
    RecordedRequest,
    parse_asked,
    parse_iso,
    parse_request_line,
)

TIMES = ("msec", "time_iso8601", "time_local")
"""The variables that tell when a request was logged, the most precise first."""
ASKED = ("request", "request_uri", "uri")
"""The variables that tell what was asked for."""

Time = tuple[int, bool]
"""ns since 1970, and whether it is known to the second only."""


def is_nginx(fields: dict[str, Any]) -> bool:
    """Whether an object has the variables of an nginx log."""
    asked = any(isinstance(fields.get(name), str) for name in ASKED)
    return asked and any(name in fields for name in TIMES)


def parse_nginx(line: str) -> RecordedRequest:
    """Parse a line of JSON with nginx's variables. Raises ``ValueError`` and
    ``UnsendableError``."""
    fields = json_fields(line)
    if not is_nginx(fields):
        raise ValueError("no time and request by nginx's names")
    return of_variables(
        {name: str(value) for name, value in fields.items() if not isinstance(value, dict | list)}
    )


def of_variables(
    texts: Mapping[str, str], time: Callable[[Mapping[str, str]], Time] | None = None
) -> RecordedRequest:
    """Return the request that variables describe; ``time`` says when it came, if they do not.
    Raises ``ValueError`` and ``UnsendableError``."""
    at_ns, whole = (time or _time)(texts)
    if "request" in texts:
        asked = parse_request_line(texts["request"])
    else:
        target = texts.get("request_uri") or texts.get("uri", "")
        if "request_uri" not in texts and texts.get("args"):
            target += f"?{texts['args']}"
        asked = parse_asked(texts.get("request_method", "GET"), target)
    named = texts.get("http_host") or texts.get("host") or ""
    body = texts.get("request_body", "")
    return asked.recorded(
        at_ns,
        headers_of(_headers(texts)),
        host="" if named == "-" else named,
        body=None if body in ("", "-") else body.encode("utf-8", "surrogateescape"),
        status=status_of(texts.get("status", "")),
        whole=whole,
    )


def _headers(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The headers: ``http_user_agent`` is User-Agent, and so on."""
    for name, text in texts.items():
        if name.startswith("http_") and name != "http_host":
            yield name[5:].replace("_", "-").title(), text
    if "content_type" in texts:
        yield "Content-Type", texts["content_type"]


def _time(texts: Mapping[str, str]) -> Time:
    """When a request came. nginx logs it at its end: what it took is subtracted where both are
    known to the millisecond."""
    parsers: dict[str, Callable[[str], Time]] = {
        "msec": lambda text: (seconds(text) - seconds(texts.get("request_time", "0")), False),
        "time_iso8601": parse_iso,
        "time_local": lambda text: (common_time(text), True),
    }
    for name in TIMES:
        if name in texts:
            try:
                return parsers[name](texts[name])
            except (ValueError, IndexError):
                continue
    raise ValueError("no time that can be read")


def _begin(line: str) -> Parser | None:
    return parse_nginx if is_nginx(json_fields(line)) else None


NGINX = LineFormat(name="nginx JSON log", begin=_begin)
