"""What engines exchange, in plans: what is sent, and what a reference server serves."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from trueload.protocol.faults import Faults
from trueload.protocol.model import Model, left_out

Dialect = Literal["json", "binary", "actioncable", "phoenix"]
"""How a server of broadcasts expects its messages to be wrapped."""


class RequestPlan(Model):
    """A request: its head is exactly method, path and headers, in this order. With ``template`` the
    engine fills in ``{counter}``, ``{random}`` and the columns of data, and adds the Content-Length
    of a body."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body_sha256: str | None
    template: bool = False


HEADER_TABLE_BYTES = 4096  # the default of RFC 9113


class WindowsPlan(Model):
    """HTTP/2 instead of HTTP/1. The windows are how many bytes the server may send before it has to
    wait, on each stream and on each connection. ``header_table_bytes`` is the table that its header
    blocks may refer to. With ``http1_pipeline`` ALPN offers HTTP/1.1, too, and a connection that
    speaks that has so many requests in flight."""

    stream_window: int
    connection_window: int
    header_table_bytes: int = left_out(HEADER_TABLE_BYTES)
    http1_pipeline: int | None = left_out()

    @property
    def is_chosen(self) -> bool:
        """Whether the server chooses the version of HTTP on each connection."""
        return self.http1_pipeline is not None


class TcpEchoPlan(Model):
    """Messages that come back byte by byte. The payload blob is the message, or, with ``size``, is
    cut into messages of so many bytes, which take turns on each connection. ``half_close``: the
    client ends its sending side after the message; only with ``close``."""

    kind: Literal["tcp_echo"] = "tcp_echo"
    payload_sha256: str
    size: int | None = None
    half_close: bool = False


class UdpEchoPlan(Model):
    """UDP datagrams that come back, each by itself. The payload is cut by ``size`` as in
    ``TcpEchoPlan``; the numbers of each datagram replace its first 16 bytes."""

    kind: Literal["udp_echo"] = "udp_echo"
    payload_sha256: str
    size: int | None = None


class WsEchoPlan(Model):
    """Every message is one WebSocket message, and comes back as one; with a dialect, as its echo.
    The payload is cut by ``size`` as in ``TcpEchoPlan``. The engine adds the headers of a handshake
    to ``opening``."""

    kind: Literal["ws_echo"] = "ws_echo"
    opening: RequestPlan
    payload_sha256: str
    size: int | None = None
    text: bool
    dialect: Dialect | None = None


class WsBroadcastPlan(Model):
    """Every message goes to all clients. It has ``padding`` bytes besides its sender and number,
    and is settled by the receipt that its sender gets."""

    kind: Literal["ws_broadcast"] = "ws_broadcast"
    opening: RequestPlan
    dialect: Dialect
    padding: int


ExchangePlan = Annotated[
    TcpEchoPlan | UdpEchoPlan | WsEchoPlan | WsBroadcastPlan, Field(discriminator="kind")
]
"""What is exchanged if the protocol is not HTTP."""


class ServeHttp2(Model):
    """How many streams of a connection an HTTP/2 server permits at once."""

    max_streams: int


class ServeHttp(Model):
    """The paths of the HTTP contracts. With ``record`` the server records what it sees of its
    clients, and reports it for each ``Mark``. With ``faults`` it errs on purpose; with ``http2`` it
    speaks HTTP/2 besides HTTP/1.1."""

    kind: Literal["http"] = "http"
    record: bool = False
    faults: Faults | None = None
    http2: ServeHttp2 | None = None


class ServeTcpEcho(Model):
    """Every byte comes back."""

    kind: Literal["tcp_echo"] = "tcp_echo"


class ServeUdpEcho(Model):
    """Every datagram comes back."""

    kind: Literal["udp_echo"] = "udp_echo"


class ServeWs(Model):
    """Echo and broadcast in a dialect at ``/ws``; ``/echo`` returns every message unchanged."""

    kind: Literal["ws"] = "ws"
    dialect: Dialect


ServicePlan = Annotated[
    ServeHttp | ServeTcpEcho | ServeUdpEcho | ServeWs, Field(discriminator="kind")
]
"""What a reference server serves."""
