"""What HTTP/2 connections counted beside the outcomes of requests, mirrored from
crates/wire/src/http2/client/account.rs.
"""

from __future__ import annotations

from trueload.protocol.model import Model


class Waits(Model):
    """Time that requests in flight waited, times their number, in ns. ``queued``: not sent yet;
    ``stream`` of these because the peer permits no more streams. ``send_stream`` and
    ``send_connection``: our body waited because the peer's window for the stream or the connection
    was used up. ``receive_stream`` and ``receive_connection``: an answer waited because ours was.
    """

    queued: int = 0
    stream: int = 0
    send_connection: int = 0
    send_stream: int = 0
    receive_connection: int = 0
    receive_stream: int = 0


class HeaderBytes(Model):
    """Bytes of header fields in one direction: names and values uncompressed (``plain``), and as
    they were sent (``coded``)."""

    plain: int = 0
    coded: int = 0


class SettingRange(Model):
    """A parameter of SETTINGS as the peers announced it, or its default: the least and the most of
    all connections and times. Null means no limit, or that none was received."""

    least: int | None = None
    most: int | None = None


class Http2(Model):
    """What the connections of a phase counted. Times are those of the window, counts also of the
    drain. ``connections``: they made requests over HTTP/2. ``http1``: the peer answered in HTTP/1.
    ``goaways``: the peer announced the end of the connection. ``returned``: requests that came back
    undone and may be sent again. ``resets``: streams that we reset. ``streams_ns``: the time of
    open streams, times their number."""

    connections: int = 0
    http1: int = 0
    goaways: int = 0
    returned: int = 0
    resets: int = 0
    streams_ns: int = 0
    waits_ns: Waits = Waits()
    headers_out: HeaderBytes = HeaderBytes()
    headers_in: HeaderBytes = HeaderBytes()
    max_concurrent_streams: SettingRange = SettingRange()
    initial_window_size: SettingRange = SettingRange()
    max_frame_size: SettingRange = SettingRange()
    header_table_size: SettingRange = SettingRange()
