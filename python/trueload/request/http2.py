"""What the flags of HTTP/2 mean: the version, streams, and windows. Pure.

Must not know how frames are written, or what a load is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from trueload.errors import UserError
from trueload.protocol.exchange import WindowsPlan
from trueload.request.values import Tls
from trueload.units import parse_size

Version = Literal["1.1", "2", "auto"]
"""The versions that may be asked for; with ``auto`` the server chooses by ALPN."""
WINDOW_FIRST = 65_535
WINDOW_MOST = 2**31 - 1
TABLE_MOST = 2**20
PROFILES = {
    "rfc": WindowsPlan(stream_window=WINDOW_FIRST, connection_window=WINDOW_FIRST),
    "browser": WindowsPlan(stream_window=6 * 2**20, connection_window=15 * 2**20),
    "unlimited": WindowsPlan(stream_window=WINDOW_MOST, connection_window=WINDOW_MOST),
}
"""Windows by name. ``rfc`` has the defaults of RFC 9113, ``browser`` has those of Chrome."""
ALPN = ("h2",)
ALPN_OF_EITHER = ("h2", "http/1.1")


def window_of_stream(text: str) -> int:
    """Parse ``--window`` into bytes. Raises ``ValueError``."""
    return _window(text, 1, lambda profile: profile.stream_window)


def window_of_connection(text: str) -> int:
    """Parse ``--connection-window`` into bytes. Raises ``ValueError``."""
    return _window(text, WINDOW_FIRST, lambda profile: profile.connection_window)


def header_table_size(text: str) -> int:
    """Parse ``--header-table-size`` into bytes. Raises ``ValueError``."""
    size = parse_size(text)
    if size > TABLE_MOST:
        raise ValueError(f"'{text}' is not from 0 to {TABLE_MOST // 2**20} MiB")
    return size


def _window(text: str, least: int, of_profile: Callable[[WindowsPlan], int]) -> int:
    if text in PROFILES:
        return of_profile(PROFILES[text])
    try:
        size = parse_size(text)
    except ValueError:
        raise ValueError(f"'{text}' is neither a size nor {', '.join(PROFILES)}") from None
    if not least <= size <= WINDOW_MOST:
        raise ValueError(f"'{text}' is not from {least:,} B to 2 GiB less 1 B")
    return size


@dataclass(frozen=True, kw_only=True)
class Http2Flags:
    """The flags that only HTTP/2 has, as they were given."""

    streams: int | None = None
    window: int | None = None
    connection_window: int | None = None
    header_table_size: int | None = None


def make_http2(version: Version | None, flags: Http2Flags) -> WindowsPlan | None:
    """The plan of HTTP/2; None for HTTP/1.1. Raises ``UserError``."""
    if version not in ("2", "auto"):
        for name, value in vars(flags).items():
            if value is not None:
                flag = f"--{name.replace('_', '-')}"
                why = f"{flag} needs HTTP/2, but requests go over HTTP/1.1"
                raise UserError(why, "add --http 2")
        return None
    given = {
        "stream_window": flags.window,
        "connection_window": flags.connection_window,
        "header_table_bytes": flags.header_table_size,
        "http1_pipeline": 1 if version == "auto" else None,
    }
    named = {name: value for name, value in given.items() if value is not None}
    return PROFILES["browser"].model_copy(update=named)


def over_http2(plan: WindowsPlan, tls: Tls | None, *, all_secure: bool = True) -> Tls | None:
    """TLS that offers only HTTP/2 and accepts no other answer. If the server chooses the version,
    TLS offers both, and no answer by ALPN means HTTP/1.1. ``all_secure`` is False if some URL
    begins with http://. Raises ``UserError``."""
    if plan.is_chosen:
        if tls is None or not all_secure:
            raise UserError(
                "--http auto is for https://, where the server chooses; http:// negotiates nothing",
                "use --http 2 (the server must expect it), or --http 1.1",
            )
        return replace(tls, alpn=ALPN_OF_EITHER, alpn_required=False)
    return None if tls is None else replace(tls, alpn=ALPN, alpn_required=True)
