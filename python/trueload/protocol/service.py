"""What a reference server serves, in its plan. Must not know how a server is run."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from trueload.protocol.faults import Faults
from trueload.protocol.model import Model

Dialect = Literal["json", "binary", "actioncable", "phoenix"]
"""How a server of broadcasts wants its messages wrapped."""


class ServeHttp(Model):
    """The paths of the HTTP contracts. With ``record`` it keeps what it sees of its clients, and
    tells it for each ``Mark``; with ``faults`` it errs on purpose."""

    kind: Literal["http"] = "http"
    record: bool = False
    faults: Faults | None = None


class ServeTcpEcho(Model):
    """Every byte comes back."""

    kind: Literal["tcp_echo"] = "tcp_echo"


class ServeUdpEcho(Model):
    """Every datagram comes back."""

    kind: Literal["udp_echo"] = "udp_echo"


class ServeWs(Model):
    """Echo and broadcast in a dialect at ``/ws``; at ``/echo`` every message as it came."""

    kind: Literal["ws"] = "ws"
    dialect: Dialect


ServicePlan = Annotated[
    ServeHttp | ServeTcpEcho | ServeUdpEcho | ServeWs, Field(discriminator="kind")
]
"""What a reference server serves."""
