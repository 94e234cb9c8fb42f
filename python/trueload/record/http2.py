"""HTTP/2 in a record: how requests spent their time in flight, and what the peers announced."""

from __future__ import annotations

from trueload.protocol.http2 import Announced, HeaderBytes
from trueload.protocol.model import Model


class Waited(Model):
    """Shares (0 to 1) of the time that all requests were in flight in the window, the wait for a
    stream included. ``stream``: the server permitted no more streams. ``send_stream`` and
    ``send_connection``: our body waited because the server's window for its stream, or for the
    connection, was used up. ``receive_stream`` and ``receive_connection``: the server had used up
    our window, from its last bytes to its next. The latter is an upper bound, since all answers of
    the connection count as held up."""

    stream: float
    send_connection: float
    send_stream: float
    receive_connection: float
    receive_stream: float


class Http2(Model):
    """HTTP/2 of a trial. ``connections`` made requests in the window, all over HTTP/2. ``http1``
    attempts in the whole trial were answered in HTTP/1; if the server chooses the version, it is
    how many connections made requests in HTTP/1.1 in the window. ``goaways`` connections were ended
    by the server (GOAWAY). ``returned`` requests came back undone (GOAWAY, REFUSED_STREAM).
    ``resets`` streams were reset by us, most of them for a time-out. ``streams`` is the mean number
    of streams in flight over all connections, null without a window. ``waited`` is null if nothing
    was in flight. Headers are counted before and after compression. The other four are the server's
    SETTINGS."""

    connections: int
    http1: int
    goaways: int
    returned: int
    resets: int
    streams: float | None
    waited: Waited | None
    headers_out: HeaderBytes
    headers_in: HeaderBytes
    max_concurrent_streams: Announced
    initial_window_size: Announced
    max_frame_size: Announced
    header_table_size: Announced
