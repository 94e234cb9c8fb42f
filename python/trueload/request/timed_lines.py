"""JSON lines with times: one request to send again a line, as a program writes them. Pure.

The format is trueload's own, so a mistake in a line is refused instead of left out.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from trueload.errors import UserError
from trueload.request.fields import check_keys, text_of
from trueload.request.make import is_token
from trueload.request.recorded_request import (
    Recorded,
    UnsendableError,
    clean_headers,
    parse_asked,
    parse_iso,
)
from trueload.units import NS_PER_S

JSON_LINES = "file of JSON lines"
KEYS = ("at", "method", "url", "path", "headers", "body")
EXAMPLE = 'a line is like {"at": 1.25, "method": "GET", "path": "/"}'
AT_S_MAX = 10**10  # some hundred years


def is_timed(fields: dict[str, Any]) -> bool:
    """Whether an object is a request with its time."""
    return "at" in fields


def parse_timed(line: str) -> Recorded:
    """Parse a line. Raises ``UserError``."""
    try:
        fields = json.loads(line)
    except json.JSONDecodeError as error:
        raise UserError(f"not JSON at character {error.pos + 1}: {error.msg}", EXAMPLE) from None
    except (ValueError, RecursionError):
        raise UserError("not JSON that can be read", EXAMPLE) from None
    if not isinstance(fields, dict):
        _refuse("not a JSON object")
    check_keys(fields, KEYS)
    at_ns, whole = _at(fields.get("at"))
    url, path = (text_of(fields, key, f'"{key}": "…"') for key in ("url", "path"))
    body = text_of(fields, "body", '"body": "…"')
    method = text_of(fields, "method", '"method": "…"') or ("GET" if body is None else "POST")
    if (url is None) == (path is None):
        _refuse("'url' and 'path' exclude each other" if url else "'path' is missing")
    if path is not None and not path.startswith("/"):
        _refuse("'path' does not begin with /")
    try:
        method, host, path = parse_asked(method, url or path or "")
    except UnsendableError as error:
        _refuse(f"it has {error}")
    return Recorded(
        at_ns=at_ns,
        method=method,
        host=host.lower(),
        path=path,
        headers=clean_headers(_headers(fields.get("headers"))),
        body=None if body is None else _encoded(body),
        whole=whole,
    )


def _at(value: Any) -> tuple[int, bool]:
    hint = 'write seconds, as "at": 1.25, or a time, as "at": "2026-11-27T10:00:00.125Z"'
    if isinstance(value, str):
        try:
            return parse_iso(value)
        except ValueError as error:
            _refuse(f"'at': {error}", hint)
    if value is None or isinstance(value, bool) or not isinstance(value, int | float):
        _refuse("'at' is missing" if value is None else "'at' is not a time", hint)
    if not (math.isfinite(value) and 0 <= value <= AT_S_MAX):
        _refuse("'at' is not a time", hint)
    return round(value * NS_PER_S), False


def _headers(value: Any) -> list[tuple[str, str]]:
    hint = 'write for example "headers": {"Accept": "text/plain"}'
    if value is None:
        return []
    if not isinstance(value, dict):
        _refuse("'headers' is not an object", hint)
    pairs = []
    for name, values in value.items():
        for one in values if isinstance(values, list) else [values]:
            if not is_token(name) or not isinstance(one, str):
                _refuse(f"the header {name!r} is not a name with a text", hint)
            pairs.append((name, _encoded(one).decode()))
    return pairs


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        _refuse("it has half of a surrogate pair", "write whole characters")


def _refuse(what: str, hint: str = EXAMPLE) -> NoReturn:
    raise UserError(what, hint)
