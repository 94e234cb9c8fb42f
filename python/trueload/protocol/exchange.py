"""What engines exchange, in plans: what is sent, and what a reference server serves."""

from typing import Annotated, Literal

from pydantic import Field

from trueload.protocol.faults import Faults
from trueload.protocol.model import Model, left_out
from trueload.protocol.shootout import Dialect


class RequestPlan(Model):
    """A request: its head is exactly method, path and headers, in this order."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body_sha256: str | None
    template: bool = False
    """Whether the engine fills in ``{counter}``, ``{random}`` and the columns of data, and adds the
    Content-Length of a body."""


class ExpectPlan(Model):
    """What counts as a good answer; null means any 2xx, and any body."""

    statuses: tuple[int, ...] | None
    body_sha256: str | None


HEADER_TABLE_BYTES = 4096  # the default of RFC 9113


class WindowsPlan(Model):
    """HTTP/2 instead of HTTP/1."""

    stream_window: int
    """How many bytes the server may send on a stream before it has to wait."""
    connection_window: int
    """The same for a whole connection."""
    header_table_bytes: int = left_out(HEADER_TABLE_BYTES)
    """The size of the table that the server's header blocks may refer to."""
    http1_pipeline: int | None = left_out()
    """ALPN offers HTTP/1.1, too; a connection that speaks it has so many requests in flight."""

    @property
    def is_chosen(self) -> bool:
        """Whether the server chooses the version of HTTP on each connection."""
        return self.http1_pipeline is not None


class TcpEchoPlan(Model):
    """Messages that come back byte by byte."""

    kind: Literal["tcp_echo"] = "tcp_echo"
    payload_sha256: str
    size: int | None = None
    """The payload is cut into messages of so many bytes, which take turns on each connection; null
    if it is one message."""
    half_close: bool = False
    """The client ends its sending side after the message; only with ``close``."""


class UdpEchoPlan(Model):
    """UDP datagrams that come back, each by itself. The numbers of each datagram replace its first
    16 bytes."""

    kind: Literal["udp_echo"] = "udp_echo"
    payload_sha256: str
    size: int | None = None
    """The payload is cut into datagrams of so many bytes, which take turns; null if it is one."""


class WsEchoPlan(Model):
    """Every message is one WebSocket message, and comes back as one."""

    kind: Literal["ws_echo"] = "ws_echo"
    opening: RequestPlan
    """The request of the handshake; the engine adds the headers of WebSocket."""
    payload_sha256: str
    size: int | None = None
    """As that of ``TcpEchoPlan``."""
    text: bool
    dialect: Dialect | None = None
    """Each message is the echo of this dialect; null if it is the payload as it is."""


class WsBroadcastPlan(Model):
    """Every message goes to all clients, and is settled by the receipt that its sender gets."""

    kind: Literal["ws_broadcast"] = "ws_broadcast"
    opening: RequestPlan
    dialect: Dialect
    padding: int
    """Bytes of a message besides its sender and number."""


ExchangePlan = Annotated[
    TcpEchoPlan | UdpEchoPlan | WsEchoPlan | WsBroadcastPlan, Field(discriminator="kind")
]
"""What is exchanged if the protocol is not HTTP."""


class ServeHttp2(Model):
    """How many streams of a connection an HTTP/2 server permits at once."""

    max_streams: int


class ServeHttp(Model):
    """The paths of the HTTP contracts."""

    kind: Literal["http"] = "http"
    record: bool = False
    """The server records what it sees of its clients, and reports it for each ``Mark``."""
    faults: Faults | None = None
    """What it does wrong on purpose."""
    http2: ServeHttp2 | None = None
    """It speaks HTTP/2 besides HTTP/1.1."""


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
