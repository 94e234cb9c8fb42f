"""HAR files (HTTP Archive 1.2): what a browser asked for, by page. Pure.

Requests that never left the browser are left out: those answered from its cache, and those of
schemes like ``data:``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from trueload.errors import UserError
from trueload.request.recorded_request import (
    Recorded,
    UnsendableError,
    clean_headers,
    parse_asked,
    parse_iso,
)
from trueload.units import NS_PER_S

HAR = "HAR file"
HINT = "save it in the browser's network tab, as HAR"


@dataclass(frozen=True)
class HarEntry:
    """An entry of a HAR file: its number there, from 1, how long it took, and its page."""

    number: int
    recorded: Recorded
    took_ns: int
    page: str


@dataclass(frozen=True)
class Har:
    """The requests of a HAR file in order of time, the titles of its pages in its order, and how
    many requests never left the browser."""

    entries: tuple[HarEntry, ...]
    pages: dict[str, str]
    left_out: int

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts in the order in which they were asked."""
        return tuple(dict.fromkeys(entry.recorded.host for entry in self.entries))


def parse_har(content: bytes, shown: str) -> Har:
    """Parse a HAR file. Raises ``UserError`` that names the entry, counted from 1."""
    try:
        raw = json.loads(content.decode("utf-8-sig"))
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
        except (ValueError, TypeError, KeyError, AttributeError):
            raise UserError(
                f"{shown}, entry {number}: its time and request cannot be read", HINT
            ) from None
    if not found:
        raise UserError(f"{shown} has no request that can be sent again", HINT)
    found.sort(key=lambda entry: entry.recorded.at_ns)
    return Har(tuple(found), _pages(log.get("pages")), len(entries) - len(found))


def _entry(number: int, fields: dict[str, Any]) -> Iterator[HarEntry]:
    request, response = fields["request"], fields.get("response") or {}
    if fields.get("_fromCache") or fields.get("_resourceType") == "websocket":
        return
    headers = [(str(each["name"]), str(each["value"])) for each in request.get("headers") or ()]
    try:
        method, host, path = parse_asked(str(request["method"]), str(request["url"]))
    except UnsendableError:
        return
    status = response.get("status") or 0
    took_ms = fields.get("time") or 0
    recorded = Recorded(
        at_ns=parse_iso(fields["startedDateTime"])[0],
        method=method,
        host=host.lower(),
        path=path,
        headers=clean_headers(headers),
        body=_body(request.get("postData")),
        status=int(status) if int(status) > 0 else None,
    )
    took_ns = round(max(0.0, float(took_ms)) * NS_PER_S / 1000)
    yield HarEntry(number, recorded, took_ns, str(fields.get("pageref") or ""))


def _body(data: dict[str, Any] | None) -> bytes | None:
    """The body of a request: its text, or its form if that is all there is."""
    if not data:
        return None
    if (text := data.get("text")) or not data.get("params"):
        return None if text is None else str(text).encode("utf-8", "replace")
    pairs = [(str(each["name"]), str(each.get("value") or "")) for each in data["params"]]
    return urlencode(pairs).encode()


def _pages(value: Any) -> dict[str, str]:
    pages = value if isinstance(value, list) else []
    return {
        str(page["id"]): str(page.get("title") or page["id"])
        for page in pages
        if isinstance(page, dict) and "id" in page
    }
