"""What connections of HTTP/2 counted beside the endings of requests, mirrored from
crates/engine/src/protocol/http2.rs."""

from __future__ import annotations

from trueload.protocol.model import Model


class Waits(Model):
    """Time that requests in flight waited, times their number, in ns. ``queued``: not sent yet,
    ``stream`` of these because the peer permits no more streams. A body of ours waited because the
    window that the peer gives its stream (``send_stream``) or the connection (``send_connection``)
    was used up; an answer because the window that we give was (``receive_stream``,
    ``receive_connection``)."""

    queued: int = 0
    stream: int = 0
    send_connection: int = 0
    send_stream: int = 0
    receive_connection: int = 0
    receive_stream: int = 0


class HeaderBytes(Model):
    """Bytes of header fields in one direction: names and values (``plain``), and the same as they
    were sent (``coded``)."""

    plain: int = 0
    coded: int = 0


class Announced(Model):
    """A parameter of SETTINGS as the peers announced it, or as it is without that: the least and
    the most of all connections and times. Null stands for no limit, or where nothing was heard."""

    least: int | None = None
    most: int | None = None


class Http2(Model):
    """What the connections of a phase counted. Times are those of the window, counts also of the
    drain. ``connections`` made requests over HTTP/2, the peers of ``http1`` others answered in
    HTTP/1, and those of ``goaways`` announced the end of theirs; ``returned`` requests came back
    undone and may be sent again; ``resets`` streams were reset by us; ``streams_ns`` is the time of
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
    max_concurrent_streams: Announced = Announced()
    initial_window_size: Announced = Announced()
    max_frame_size: Announced = Announced()
    header_table_size: Announced = Announced()
