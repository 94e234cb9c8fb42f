"""JSON lines with times: one request to send again a line, as a program writes them. Pure.

The format is trueload's own, so a mistake in a line is refused instead of left out.
"""

from __future__ import annotations

import math
from typing import Any

from trueload.request.fields import Entry, FileFormat
from trueload.request.logs.line import LineFormat, Parser, json_fields
from trueload.request.make import is_text, is_token
from trueload.request.recorded_request import (
    RecordedRequest,
    UnsendableError,
    clean_headers,
    parse_asked,
    parse_iso,
)
from trueload.units import NS_PER_S

KEYS = ("at", "method", "url", "path", "headers", "body")
FORMAT = FileFormat(
    entry='a line is like {"at": 1.25, "method": "GET", "path": "/"}',
    table="an object",
    text='"{}": "…"',
    headers='write for example "headers": {"Accept": "text/plain"}',
)
AT_S_MAX = 10**10  # some hundred years


def parse_timed(line: str) -> RecordedRequest:
    """Parse a line. Raises ``UserError``."""
    entry = Entry(FORMAT.parse_json(line), KEYS, FORMAT)
    at_ns, whole = _at(entry.fields.get("at"))
    url, path, body = entry.text("url"), entry.text("path"), entry.encoded("body")
    method = entry.text("method") or ("GET" if body is None else "POST")
    if (url is None) == (path is None):
        FORMAT.refuse("'url' and 'path' cannot be used together" if url else "'path' is missing")
    if path is not None and not path.startswith("/"):
        FORMAT.refuse("'path' does not begin with /")
    headers = entry.headers()
    for name, text in headers:
        if not is_token(name) or not is_text(text):
            FORMAT.refuse(f"the header {name!r} is not a name with a text", FORMAT.headers)
    try:
        asked = parse_asked(method, url or path or "")
    except UnsendableError as error:
        FORMAT.refuse(f"it has {error}")
    return asked.recorded(at_ns, clean_headers(headers), body=body, whole=whole)


def _at(value: Any) -> tuple[int, bool]:
    hint = 'write seconds, as "at": 1.25, or a time, as "at": "2026-11-27T10:00:00.125Z"'
    if isinstance(value, str):
        try:
            return parse_iso(value)
        except ValueError as error:
            FORMAT.refuse(f"'at': {error}", hint)
    if value is None or isinstance(value, bool) or not isinstance(value, int | float):
        FORMAT.refuse("'at' is missing" if value is None else "'at' is not a time", hint)
    if not (math.isfinite(value) and 0 <= value <= AT_S_MAX):
        FORMAT.refuse("'at' is not a time", hint)
    return round(value * NS_PER_S), False


def _begin(line: str) -> Parser | None:
    return parse_timed if line.startswith("{") and "at" in json_fields(line) else None


JSON_LINES = LineFormat(name="file of JSON lines", begin=_begin, order="starts")
