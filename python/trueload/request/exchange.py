"""What is exchanged over other protocols than HTTP: a value for each, which makes its plan.
Pure.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from trueload.protocol.exchange import (
    ExchangePlan,
    RequestPlan,
    TcpEchoPlan,
    UdpEchoPlan,
    WsBroadcastPlan,
    WsEchoPlan,
)
from trueload.protocol.shootout import Dialect
from trueload.request.environment import BEGIN
from trueload.request.message import Messages
from trueload.request.plans import digest, full_headers, has_place
from trueload.request.values import Request


@dataclass(frozen=True, kw_only=True)
class Exchange(ABC):
    """What is exchanged; ``messages`` are those of an echo. ``opening`` is the request of a
    handshake, without the headers that every handshake has."""

    messages: Messages | None = None
    opening: Request | None = None
    over_udp: ClassVar[bool] = False

    @abstractmethod
    def plan(self) -> ExchangePlan:
        """Its form in a plan, which has messages by SHA-256."""
        ...


@dataclass(frozen=True, kw_only=True)
class TcpEcho(Exchange):
    """Each message must come back byte by byte. With ``half_close`` the client ends its sending
    side after the message (with a connection per message)."""

    messages: Messages
    half_close: bool = False

    def plan(self) -> TcpEchoPlan:
        return TcpEchoPlan(
            payload_sha256=digest(self.messages.payload),
            size=self.messages.size_bytes,
            half_close=self.half_close,
        )


@dataclass(frozen=True, kw_only=True)
class UdpEcho(Exchange):
    """Each datagram must come back as it was, in any order; numbers replace its first bytes."""

    messages: Messages
    over_udp = True

    def plan(self) -> UdpEchoPlan:
        return UdpEchoPlan(
            payload_sha256=digest(self.messages.payload), size=self.messages.size_bytes
        )


@dataclass(frozen=True, kw_only=True)
class WsEcho(Exchange):
    """Each message is sent as a WebSocket message; with a ``dialect``, wrapped as its echo."""

    opening: Request
    messages: Messages
    text: bool = True
    dialect: Dialect | None = None

    def plan(self) -> WsEchoPlan:
        return WsEchoPlan(
            opening=_opening(self.opening),
            payload_sha256=digest(self.messages.payload),
            size=self.messages.size_bytes,
            text=self.text,
            dialect=self.dialect,
        )


@dataclass(frozen=True, kw_only=True)
class WsBroadcast(Exchange):
    """Each message goes to every client, with ``padding`` more bytes."""

    opening: Request
    dialect: Dialect
    padding: int

    def plan(self) -> WsBroadcastPlan:
        return WsBroadcastPlan(
            opening=_opening(self.opening), dialect=self.dialect, padding=self.padding
        )


def _opening(request: Request) -> RequestPlan:
    # A handshake has no other placeholders.
    return RequestPlan(
        method=request.method,
        path=request.path,
        headers=full_headers(request, close=False, length=False),
        body_sha256=None,
        template=has_place(request, (BEGIN,)),
    )
