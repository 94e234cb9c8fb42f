"""HTTP/2: streams in flight, what requests waited for, header bytes."""

from __future__ import annotations

from trueload.protocol.http2 import HeaderBytes
from trueload.record.accounts.http2 import Http2
from trueload.record.schema import Record
from trueload.report.account import AccountView, Lines
from trueload.units import format_share, format_size
from trueload.verdict.common import times
from trueload.verdict.http2 import WINDOWS, is_chosen, permitted_text, versions_text, window_text

WINDOW_SHOWN_FROM = 0.01  # of the time in flight: below this it does not matter whose window it was


def _lines(record: Record) -> Lines:
    found = record.http2
    if found is None:
        return []
    return [("versions", versions_text(found) if is_chosen(record) else ""), *_texts(found)]


def _texts(found: Http2) -> Lines:
    """Without the versions."""
    return [
        ("streams", _streams(found)),
        ("waits", waits_text(found)),
        ("headers", headers_text(found)),
        ("ended", _ended(found)),
    ]


def _streams(found: Http2) -> str:
    if found.streams is None or not found.connections:
        return ""
    return f"{found.streams:.1f} in flight on average; {permitted_text(found)}"


def waits_text(found: Http2) -> str:
    """A text: ``for a stream 98.0 % of the time in flight, for a window 0 %``."""
    waited = found.waited
    if waited is None:
        return ""
    windows = sum(getattr(waited, name) for name in WINDOWS)
    shares = f"for a stream {format_share(waited.stream)} of the time in flight"
    shares += f", for a window {format_share(windows)}"
    return f"{shares} ({window_text(waited)})" if windows >= WINDOW_SHOWN_FROM else shares


def headers_text(found: Http2) -> str:
    """A text: ``sent 12.0 KiB for 94.1 KiB (12.8 %), received ...``; empty without headers."""
    parts = [
        f"{word} {_size_text(size)}"
        for word, size in (("sent", found.headers_out), ("received", found.headers_in))
        if size.plain
    ]
    return f"{', '.join(parts)}; requests that are all alike flatter this" if parts else ""


def _size_text(size: HeaderBytes) -> str:
    share = format_share(size.coded / size.plain)
    return f"{format_size(size.coded)} for {format_size(size.plain)} ({share})"


def _ended(found: Http2) -> str:
    parts = [
        f"{times(found.resets, 'stream')} reset by us" if found.resets else "",
        f"{times(found.goaways, 'connection')} by the server (GOAWAY)" if found.goaways else "",
    ]
    return ", ".join(part for part in parts if part)


HTTP2 = AccountView(
    name="http2",
    after="redirects",
    order=5,
    texts=_texts,
    lines=_lines,
    title="HTTP/2: streams, what requests waited for, headers",
)
