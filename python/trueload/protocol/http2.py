"""What HTTP/2 connections counted beside the outcomes of requests, mirrored from
crates/wire/src/http2/client/account.rs.
"""

from __future__ import annotations

from trueload.protocol.model import Model


class Waits(Model):
    """Time that requests in flight waited, times their number, in ns."""

    queued: int = 0
    """They were not sent yet."""
    stream: int = 0
    """The part of ``queued`` in which the peer permitted no more streams."""
    send_connection: int = 0
    """Our bodies waited because the peer's window for the connection was used up."""
    send_stream: int = 0
    """Our bodies waited because the peer's window for the stream was used up."""
    receive_connection: int = 0
    """Answers waited because our window for the connection was used up."""
    receive_stream: int = 0
    """Answers waited because our window for the stream was used up."""


class HeaderBytes(Model):
    """Bytes of header fields in one direction."""

    plain: int = 0
    """Names and values, uncompressed."""
    coded: int = 0
    """As they were sent."""


class SettingRange(Model):
    """A parameter of SETTINGS as the peers announced it, or its default: the least and the most of
    all connections and times. Null means no limit, or that none was received."""

    least: int | None = None
    most: int | None = None


class Http2(Model):
    """What the connections of a phase counted. Times are those of the window, counts also of the
    drain."""

    connections: int = 0
    """Connections that made requests over HTTP/2."""
    http1: int = 0
    """Connections whose peer answered in HTTP/1."""
    goaways: int = 0
    """Connections whose end the peer announced."""
    returned: int = 0
    """Requests that came back undone and may be sent again."""
    resets: int = 0
    """Streams that we reset."""
    streams_ns: int = 0
    """The time of open streams, times their number."""
    waits_ns: Waits = Waits.model_construct()
    headers_out: HeaderBytes = HeaderBytes.model_construct()
    headers_in: HeaderBytes = HeaderBytes.model_construct()
    max_concurrent_streams: SettingRange = SettingRange.model_construct()
    initial_window_size: SettingRange = SettingRange.model_construct()
    max_frame_size: SettingRange = SettingRange.model_construct()
    header_table_size: SettingRange = SettingRange.model_construct()
