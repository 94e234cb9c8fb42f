"""What is sent, in the form of a plan, and what counts as a good answer."""

from __future__ import annotations

from trueload.protocol.data import DataPlan
from trueload.protocol.exchange import ExchangePlan, ExpectPlan, RequestPlan, WindowsPlan
from trueload.protocol.model import Model, left_out
from trueload.protocol.origins import OriginPlan
from trueload.protocol.request_options import DialogueOptions
from trueload.protocol.scenario import StepPlan
from trueload.protocol.streams import StreamPlan
from trueload.protocol.tls import TlsPlan


class TargetPlan(Model):
    """One of several requests, which take turns."""

    name: str | None
    weight: int
    """How often it is sent, relative to the others."""
    origin: int = left_out(0)
    """The index of its origin."""
    request: RequestPlan
    expect: ExpectPlan


class ReplayPlan(Model):
    """Recorded traffic, sent by an open loop whose arrivals are ``recorded``; mirrored from the
    engine's protocol/replay.rs."""

    about: str
    """What was recorded, for people."""
    count: int
    """The number of entries."""
    requests: tuple[str, ...]
    """The SHA-256 of blobs of JSON lines, one line for each request that differs."""
    entries: tuple[str, ...]
    """The SHA-256 of blobs with 12 bytes for each entry: its time in ns, and its request's index.
    """


class TrafficPlan(Model, DialogueOptions):
    """What is sent: one of ``request``, ``targets``, ``scenario``, ``replay`` and ``exchange``."""

    request: RequestPlan | None
    expect: ExpectPlan
    targets: tuple[TargetPlan, ...] = ()
    """Sent in turns."""
    scenario: tuple[StepPlan, ...] = left_out(())
    """Sent in sessions."""
    ignore_unexpected: bool = left_out(False)
    """Messages that no step of a conversation expects are allowed."""
    replies: tuple[tuple[str, str], ...] = left_out(())
    """Texts of the server that are answered at once, as heartbeats are, and their answers."""
    deflate: bool = left_out(False)
    """Connections of echoes and conversations over WebSocket offer permessage-deflate."""
    replay: ReplayPlan | None = left_out()
    """Recorded requests."""
    exchange: ExchangePlan | None = left_out()
    """The protocol, if it is not HTTP."""
    data: DataPlan | None = left_out()
    """Rows that fill the requests' placeholders."""
    environment: dict[str, str] = left_out({}, repr=False)
    """Values of ``{env:NAME}`` by name; only the engine gets them, and no record has them."""
    http2: WindowsPlan | None = left_out()
    """Requests go over HTTP/2, with ``pipeline`` streams at once on each connection."""
    stream: StreamPlan | None = left_out()
    """The parts of answers are timed."""
    local_addresses: tuple[str, ...]
    tls: TlsPlan | None = None
    origins: tuple[OriginPlan, ...] = left_out(())
    """Each has its own addresses and TLS."""
