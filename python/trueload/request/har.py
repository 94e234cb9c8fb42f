"""HAR files (HTTP Archive 1.2): what a browser asked for, by page. Pure.

Requests that never left the browser are left out: those answered from its cache, and those of
schemes like ``data:``. A body is the recorded text, or is made of the recorded fields of a form.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from trueload.errors import UserError
from trueload.files.inputs import text_of
from trueload.request.make import is_text
from trueload.request.multipart import form_part, multipart
from trueload.request.recorded_request import (
    Headers,
    RecordedRequest,
    UnsendableError,
    clean_headers,
    parse_asked,
    parse_iso,
)
from trueload.units import NS_PER_S

HAR = "HAR file"
HINT = "save it in the browser's network tab, as HAR"
_MULTIPART, _URLENCODED = "multipart/form-data", "application/x-www-form-urlencoded"


@dataclass(frozen=True)
class HarEntry:
    """An entry of a HAR file: its number there, from 1, how long it took, and its page."""

    number: int
    recorded: RecordedRequest
    took_ns: int
    page: str


@dataclass(frozen=True)
class Har:
    """The requests of a HAR file in order of time, the titles of its pages in its order, and how
    many requests never left the browser. ``forms`` have been made of their fields, with a boundary
    of trueload's own."""

    entries: tuple[HarEntry, ...]
    pages: dict[str, str]
    left_out: int
    forms: int = 0

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts in the order in which they were asked."""
        return tuple(dict.fromkeys(entry.recorded.host for entry in self.entries))


def parse_har(content: bytes, shown: str) -> Har:
    """Parse a HAR file. Raises ``UserError`` that names the entry, counted from 1."""
    try:
        raw = json.loads(text_of(content, shown).decode())
    except UnicodeDecodeError as error:
        raise UserError(f"{shown} is not UTF-8 at byte {error.start + 1}", HINT) from None
    except (ValueError, RecursionError):
        raise UserError(f"{shown} is not JSON that can be read", HINT) from None
    log = raw.get("log") if isinstance(raw, dict) else None
    entries = log.get("entries") if isinstance(log, dict) else None
    if not isinstance(log, dict) or not isinstance(entries, list):
        raise UserError(f"{shown} is JSON, but no HAR file: it has no log.entries", HINT)
    found: list[HarEntry] = []
    for number, fields in enumerate(entries, start=1):
        try:
            found.extend(_entry(number, fields))
        except _EntryError as error:
            raise UserError(f"{shown}: entry {number} {error}", HINT) from None
        except (ValueError, TypeError, KeyError, AttributeError):
            raise UserError(f"{shown}: entry {number} cannot be read", HINT) from None
    if not found:
        raise UserError(f"{shown} has no request that can be sent again", HINT)
    found.sort(key=lambda entry: entry.recorded.at_ns)
    forms = sum(_is_made(entries[entry.number - 1]["request"].get("postData")) for entry in found)
    return Har(tuple(found), _pages(log.get("pages")), len(entries) - len(found), forms)


class _EntryError(Exception):
    """What is wrong with an entry, as words that follow its number."""


def _needed(fields: dict[str, Any], name: str, of: str = "") -> Any:
    """A field that HAR 1.2 asks for."""
    if (value := fields.get(name)) in (None, ""):
        raise _EntryError(f"has no {of}{name}: not HAR 1.2")
    return value


def _entry(number: int, fields: dict[str, Any]) -> Iterator[HarEntry]:
    request, response = _needed(fields, "request"), fields.get("response") or {}
    if fields.get("_fromCache") or fields.get("_resourceType") == "websocket":
        return
    try:
        method, url = (str(_needed(request, name, "request.")) for name in ("method", "url"))
        asked = parse_asked(method, url)
    except UnsendableError:
        return
    started = str(_needed(fields, "startedDateTime"))
    try:
        at_ns = parse_iso(started)[0]
    except ValueError as error:
        raise _EntryError(f"has no time in startedDateTime: {error}") from None
    headers = clean_headers(
        (str(each["name"]), str(each["value"]))
        for each in request.get("headers") or ()
        if is_text(str(each["value"]))
    )
    content_type, body = _body(request.get("postData"))
    status = int(response.get("status") or 0)
    recorded = asked.recorded(at_ns, headers, body=body, status=status if status > 0 else None)
    recorded = recorded._replace(headers=_typed(recorded.headers, content_type))
    took_ns = round(max(0.0, float(fields.get("time") or 0)) * NS_PER_S / 1000)
    yield HarEntry(number, recorded, took_ns, str(fields.get("pageref") or ""))


def _typed(headers: Headers, content_type: str | None) -> Headers:
    """The headers with the Content-Type of a form that was made of its fields."""
    named = any(name.lower() == "content-type" for name, _ in headers)
    if content_type is None or (named and content_type == _URLENCODED):
        return headers
    kept = (pair for pair in headers if pair[0].lower() != "content-type")
    return (*kept, ("Content-Type", content_type))


def _body(data: dict[str, Any] | None) -> tuple[str | None, bytes | None]:
    """The body of a request: its text, or the form that its fields are, with its Content-Type."""
    if not data:
        return None, None
    text, params = data.get("text"), data.get("params")
    if not text and params:
        if _is_made(data):
            return multipart([_part(each) for each in params])
        pairs = [(str(each["name"]), str(each.get("value") or "")) for each in params]
        return _URLENCODED, urlencode(pairs, errors="replace").encode()
    if text is not None and str(data.get("encoding") or "").lower() == "base64":
        try:
            return None, base64.b64decode("".join(str(text).split()), validate=True)
        except ValueError:
            raise _EntryError("has a body that is not base64, as its encoding says") from None
    return None, None if text is None else str(text).encode("utf-8", "replace")


def _is_made(data: dict[str, Any] | None) -> bool:
    """Whether the body is a multipart form of which only the fields were recorded."""
    if not data or data.get("text") or not (params := data.get("params")):
        return False
    kind = str(data.get("mimeType") or "").lower()
    if kind.startswith((_MULTIPART, _URLENCODED)):
        return kind.startswith(_MULTIPART)
    return _has_files(params)


def _has_files(params: Sequence[dict[str, Any]]) -> bool:
    return any(each.get("fileName") or each.get("contentType") for each in params)


def _part(field: dict[str, Any]) -> bytes:
    name, filename, kind = (_whole(field.get(key)) for key in ("name", "fileName", "contentType"))
    if not name:
        raise _EntryError("has a form field without a name")
    content = (_whole(field.get("value")) or "").encode()
    lines = [f"Content-Type: {kind}"] if kind and kind.isprintable() else []
    return form_part(name, content, filename, lines)


def _whole(value: Any) -> str | None:
    """A text without halves of surrogate pairs, and None for None."""
    return None if value is None else str(value).encode("utf-8", "replace").decode()


def _pages(value: Any) -> dict[str, str]:
    pages = value if isinstance(value, list) else []
    return {
        str(page["id"]): str(page.get("title") or page["id"])
        for page in pages
        if isinstance(page, dict) and "id" in page
    }
