"""What the options of HTTP/2 mean: the version, streams, and windows. Pure."""

from __future__ import annotations

from dataclasses import replace

from trueload.errors import UserError
from trueload.protocol.exchange import HEADER_TABLE_BYTES, WindowsPlan
from trueload.protocol.option import flag_of
from trueload.protocol.request_options import Http2Options
from trueload.protocol.windows import PROFILES
from trueload.request.values import Tls

ALPN = ("h2",)
ALPN_OF_EITHER = ("h2", "http/1.1")


def make_http2(given: Http2Options) -> WindowsPlan | None:
    """The plan of HTTP/2; None for HTTP/1.1. Raises ``UserError``."""
    if given.http not in ("2", "auto"):
        for field in given.given:
            if field != "http":
                why = f"{flag_of(field)} needs HTTP/2, but requests go over HTTP/1.1"
                raise UserError(why, "add --http 2")
        return None
    default = PROFILES["browser"]
    table = given.header_table_size
    return WindowsPlan(
        stream_window=given.window or default.stream,
        connection_window=given.connection_window or default.connection,
        header_table_bytes=HEADER_TABLE_BYTES if table is None else table,
        http1_pipeline=1 if given.http == "auto" else None,
    )


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
