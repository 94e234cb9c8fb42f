"""The messages between the front and the engine, mirrored from crates/engine/src/protocol.rs.

Every line is one JSON object with a ``type``. Unknown fields are refused, so that a front and an
engine of different versions never partly understand each other. All times are nanoseconds on the
engine's monotonic clock. ``schema/examples`` holds lines that both languages read and write back
unchanged.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter

from trueload import hdr
from trueload.protocol import PROTOCOL
from trueload.protocol.broadcast import Charge, Deliveries, PhaseSent, Settle, Settled
from trueload.protocol.connections import Connections, Slots
from trueload.protocol.data import DataUse
from trueload.protocol.deflate import Deflate
from trueload.protocol.early_answers import EarlyAnswers
from trueload.protocol.engine_options import EngineOptions, ThreadOptions
from trueload.protocol.exchange import ServeHttp, ServicePlan
from trueload.protocol.fleet import (
    WHOLE,
    AskClock,
    AskDistance,
    AskLock,
    AskSpeeds,
    Clock,
    Distance,
    LoadShare,
    Lock,
    Machine,
    MachineShares,
    Share,
    Speeds,
)
from trueload.protocol.flow import Flow
from trueload.protocol.http2 import Http2
from trueload.protocol.kinds import Kinds
from trueload.protocol.lateness import Lateness
from trueload.protocol.messages import Messages
from trueload.protocol.model import Model, left_out
from trueload.protocol.openings import Openings
from trueload.protocol.origins import OriginConnections
from trueload.protocol.redirects import Redirects
from trueload.protocol.scenario import Sessions
from trueload.protocol.server_report import ServerReport
from trueload.protocol.streams import Streams
from trueload.protocol.tick import Counts, Second, Sparse, Tick
from trueload.protocol.tls import ServeTlsPlan
from trueload.protocol.traffic import TrafficPlan

NO_KINDS = Kinds.model_construct()
NO_EARLY = EarlyAnswers.model_construct()


class Stage(Model):
    """A stretch of time over which a quantity changes linearly."""

    ns: int
    from_: float = Field(alias="from")
    to: float


class Closed(Model):
    """A closed loop: each free slot sends at once."""

    kind: Literal["closed"] = "closed"
    active: tuple[Stage, ...] = ()
    """How many connections take part, over time; empty for all of them throughout."""


Spacing = Literal["constant", "poisson", "recorded"]
"""How the requests of an open loop are spaced."""


class Open(Model):
    """An open loop: requests are sent at scheduled times, whatever became of those before."""

    kind: Literal["open"] = "open"
    stages: tuple[Stage, ...]
    """Requests per second over time."""
    arrivals: Spacing
    seed: int
    """That of the gaps of ``poisson``."""
    from_ns: int = left_out(0)
    """Where a phase begins in the plan's replay, if arrivals are ``recorded``."""


class Turns(Model):
    """The load of a broadcast."""

    kind: Literal["turns"] = "turns"
    concurrent: int
    """Messages in flight over all connections, which send them in turn."""


LoadPlan = Annotated[Closed | Open | Turns, Field(discriminator="kind")]
"""When to send."""


class Duration(Model):
    """Stop sending after this time."""

    kind: Literal["duration"] = "duration"
    ns: int


class Requests(Model):
    """Stop after this many requests over all connections, or sessions of a scenario."""

    kind: Literal["requests"] = "requests"
    count: int


StopPlan = Annotated[Duration | Requests, Field(discriminator="kind")]
"""When to stop sending."""


class Generate(TrafficPlan, EngineOptions):
    """What one generator is to do: what is sent, how the engine does it, and over how many
    connections."""

    type: Literal["generate"] = "generate"
    protocol: int = PROTOCOL
    addresses: tuple[str, ...]
    """``IP:PORT``, ``[IPv6]:PORT`` or ``unix:PATH``; those of ``origins`` are there."""
    seed: int = 0
    """That of ``{random}`` and of shuffled data."""
    connections: int
    pipeline: int
    close: bool
    connect_open: bool = left_out(False)
    """Each request has a connection of its own, which is opened when the request is due."""
    cpus: tuple[int, ...]
    # What reads `--json` has it; it always equals the timeout, and the engine does not get it.
    connect_timeout_ns: int = Field(default_factory=lambda plan: plan["timeout_ns"])
    part: LoadShare = left_out(WHOLE)

    @property
    def every_address(self) -> tuple[str, ...]:
        """Its addresses, or those of all its origins."""
        return self.addresses + tuple(at for origin in self.origins for at in origin.addresses)


SERVE_HTTP = ServeHttp.model_construct()


class Serve(Model, ThreadOptions):
    """What one reference server is to do."""

    type: Literal["serve"] = "serve"
    protocol: int = PROTOCOL
    listen: str
    """Port 0 for a free one; ``ready`` names it."""
    cpus: tuple[int, ...]
    tls: ServeTlsPlan | None = None
    service: ServicePlan = left_out(SERVE_HTTP)
    idle_timeout_ns: int | None = left_out()
    """Connections on which nothing comes or goes for so long are closed; null for never."""
    max_connections: int | None = left_out()
    """The most connections that may be open at once; null for any number."""


class Blob(Model):
    """Bytes named by their SHA-256 (hex, lower case), base64 with padding."""

    type: Literal["blob"] = "blob"
    sha256: str
    base64: str


class Phase(Model):
    """One phase over the existing connections."""

    type: Literal["phase"] = "phase"
    id: str
    load: LoadPlan
    connections: int | None
    """The number of connections for this phase; null for as many as there are."""
    idle: int = 0
    """The last connections, so many, never send."""
    stop: StopPlan
    at_ns: int | None
    """The earliest start, on the engine's clock; null for at once."""
    ahead_ns: int | None = left_out()
    """How far the engine's clock is ahead of the front's, in a broadcast that several engines
    share."""
    from_ns: int = left_out(0)
    """How long others have been sending, since ``at_ns``, when the engine joins them."""
    log_rows: int = left_out(0)
    """The most single requests that are reported (``RequestRows``); 0 for none."""


class Mark(Model):
    """For a server of HTTP that keeps a record: report what it holds since the mark before, and
    begin a new interval."""

    type: Literal["mark"] = "mark"
    id: str
    """That of the ``Seen`` that answers."""


class Lease(Model):
    """The front is alive. Without one for 2 s the engine ends."""

    type: Literal["lease"] = "lease"


class Stop(Model):
    """End now: open requests are cancelled, and what was measured is reported."""

    type: Literal["stop"] = "stop"


ToEngine = (
    Generate
    | Serve
    | Blob
    | Phase
    | Share
    | Mark
    | AskClock
    | AskDistance
    | AskSpeeds
    | AskLock
    | Settle
    | Charge
    | Lease
    | Stop
)


HistogramText = Annotated[str, AfterValidator(hdr.Text)]


class Histograms(Model):
    """HdrHistogram V2 compressed, base64, values in ns; null if empty. They cover ok requests,
    unless a field says otherwise."""

    latency: HistogramText | None
    """Response time: from the scheduled send to the last byte."""
    service: HistogramText | None
    """Service time: from the actual send to the last byte."""
    connect: HistogramText | None
    """Set-up of every connection that was established, including TLS."""
    first_byte: HistogramText | None
    """From the actual send to the first byte."""
    total: HistogramText | None
    """From the attempt to connect to the last byte, if each request has its own connection."""
    send_lag: HistogramText | None = None
    """Every request sent: from when it could be, to when it was handed to the kernel."""
    receive_lag: HistogramText | None = None
    """From the kernel's receive time of the answer's last bytes to when they were read; on a sample
    of the connections."""
    round_trip: HistogramText | None = None
    """From when a request was handed to the kernel to that receive time; on the same sample."""
    handshake: HistogramText | None = None
    """The part of ``connect`` that is the handshake of TLS."""


class Generator(Model):
    """The engine's own load over the window."""

    driver: str
    driver_note: str | None = None
    """Why the driver is not the one that was asked for; null if it is."""
    refill: int = 0
    """A connection's pipeline is filled again as soon as this many places are free."""
    spin_ns: int = 0
    """The time for which a thread polls before it sleeps, in ns."""
    spun_ns: int = 0
    """CPU time in polls without an event."""
    coalesced_ns: int = 0
    """The longest that answers were allowed to wait for each other."""
    threads: int
    cpus: tuple[int, ...]
    start_skew_ns: int | None = None
    """Between the first and the last thread to begin; null if there is one."""
    cpu_ns: int
    saturation: float
    """How busy the busiest thread was, from 0 to 1."""
    peak_rss_bytes: int
    lateness: Lateness = Lateness.model_construct()
    machine: MachineShares | None = None
    """How the whole machine was used meanwhile; null if unknown."""


class TargetCounts(Model):
    """Outcomes of one target's requests."""

    issued: int
    ok: int
    stale: int
    cancelled: int
    skipped: int = left_out(0)
    redirects: int = left_out(0)
    """Redirects that were followed."""
    failed: dict[str, int]
    statuses: dict[str, int]
    latency: Sparse
    """Latencies of the requests that ended well. ``kinds`` covers the same requests."""
    kinds: Kinds = left_out(NO_KINDS)


class Datagrams(Model):
    """Datagrams of a phase that settled no request, or came out of turn."""

    late: int
    """Answers to requests given up as lost."""
    duplicated: int
    """Second answers."""
    reordered: int
    """Answers behind the answer to a later request on the same socket."""
    unsolicited: int
    """Answers to nothing that was sent."""
    dropped: int
    """Datagrams of ours that never left: their requests are lost."""
    overflowed: int
    """Datagrams that found the queue of our socket full: their requests are lost."""


class Measurement(Model):
    """The result of a phase. An account that does not apply is left out."""

    started_ns: int
    """The planned start, on the engine's clock."""
    began_ns: int = 0
    """When the first thread really began."""
    window_ns: int
    drain_ns: int
    partial: bool
    counts: Counts
    bytes_in: int
    bytes_out: int
    histograms: Histograms
    connections: Connections
    slots: Slots
    series: tuple[Second, ...]
    tracks: tuple[tuple[Second, ...], ...] = left_out(())
    """The same of each part of the traffic, as in ticks, in 240 bins at most."""
    flow: Flow | None = left_out()
    generator: Generator
    targets: tuple[TargetCounts, ...] | None = None
    """Counts by target or by step of a scenario, in the plan's order; null if the plan has one
    request."""
    sessions: Sessions | None = left_out()
    origins: tuple[OriginConnections, ...] = left_out(())
    data: DataUse | None = left_out()
    deliveries: Deliveries | None = left_out()
    datagrams: Datagrams | None = left_out()
    http2: Http2 | None = left_out()
    kinds: Kinds = left_out(NO_KINDS)
    """Kinds of answers, if the plan has one request."""
    early: EarlyAnswers = left_out(NO_EARLY)
    streams: Streams | None = left_out()
    openings: Openings | None = left_out()
    redirects: Redirects | None = left_out()
    messages: Messages | None = left_out()
    deflate: Deflate | None = left_out()


class Hello(Model):
    """The engine's first line."""

    type: Literal["hello"]
    protocol: int
    version: str
    pid: int
    machine: Machine = Machine.model_construct()


class Tls(Model):
    """What a TLS handshake agreed on."""

    version: str
    cipher: str
    alpn: str | None
    """The application protocol; null if the server chose none."""


class Ready(Model):
    """Connected (generator) or listening (server)."""

    type: Literal["ready"]
    at_ns: int
    listen: str | None
    """The server's address."""
    requested: int
    established: int
    failed: dict[str, int]
    address: str | None
    """The first address that answered the generator."""
    set_up_ns: int = 0
    """From the first attempt to the last connection."""
    grown_bytes: int = 0
    """Growth of memory meanwhile, without code."""
    driver: str = ""
    """What carries the sockets."""
    driver_note: str | None = None
    """Why it is not the driver that was asked for; null if it is."""
    reasons: dict[str, str] = Field(default_factory=dict)
    """The first failure of each class in words, if more is known than the class."""
    tls: Tls | None = None
    certificate: str | None = None
    """That of a server that made its own, in PEM."""


class PhaseStarted(Model):
    """A phase begins to send."""

    type: Literal["phase_started"]
    id: str
    at_ns: int


class PhaseStopped(Model):
    """A phase has sent its last request; open ones drain."""

    type: Literal["phase_stopped"]
    id: str
    at_ns: int


class RequestRows(Model):
    """Single requests of a phase that logs them. An engine's lines come before its ``PhaseDone``,
    and have them in the order in which they were due."""

    type: Literal["request_rows"]
    id: str
    ended: int
    """Requests that have ended, in the first line of an engine; 0 in the others."""
    level: int
    """One request in 2^level is here: those of at least this level."""
    classes: tuple[str, ...]
    """The failure classes, by the numbers from 1 in the rows."""
    rows: str
    """Rows of 44 bytes as base64: ``trial.request_log`` takes them apart."""
    host: str | None = left_out()
    """The host of the engine; a fleet adds it."""


class PhaseDone(Model):
    """The last request of a phase is settled."""

    type: Literal["phase_done"]
    id: str
    measurement: Measurement


class Served(Model):
    """What a reference server saw since it began."""

    type: Literal["served"]
    at_ns: int
    accepted: int
    open: int
    open_peak: int
    requests: int
    responses: int
    malformed: int
    """Requests, handshakes, frames and messages that are not valid."""
    aborted: int
    """Requests whose connection was gone before the answer could be sent."""
    waiting: int
    """Answers of ``/wait/MS`` that wait for their time now."""
    bytes_in: int
    bytes_out: int
    handshakes_full: int = 0
    handshakes_resumed: int = 0
    tls_failed: int = 0
    deliveries: int = 0
    """Broadcast messages handed to the kernel, one for each listener."""
    slow: int = 0
    """Listeners that were closed because they did not read."""
    timed_out: int = 0
    """Connections that were closed because of a half-sent request, or because nothing came."""
    refused: int = 0
    """Connections that were closed because there were enough."""


class Error(Model):
    """An error in the engine itself or in the plan."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True)

    type: Literal["error"]
    class_: str = Field(alias="class")
    """``plan``, ``listen``, ``machine``, ``engine``, or a class of failures; ``class`` in JSON."""
    message: str


class Done(Model):
    """The last line."""

    type: Literal["done"]
    why: str
    """``finished``, ``stopped``, ``orphaned`` or ``signalled``."""


FromEngine = (
    Hello
    | Clock
    | Distance
    | Speeds
    | Lock
    | Ready
    | PhaseStarted
    | PhaseStopped
    | Tick
    | RequestRows
    | PhaseDone
    | PhaseSent
    | Settled
    | Served
    | ServerReport
    | Error
    | Done
)


def parse_from_engine(line: str | bytes) -> FromEngine:
    """Parse one line from the engine. Raises ``ValueError`` (pydantic's) for anything else."""
    kind = _KIND.match(line if isinstance(line, bytes) else line.encode())
    model = None if kind is None else _from_engine_by_kind().get(kind[1].decode())
    return _from_engine().validate_json(line) if model is None else model.model_validate_json(line)


_KIND = re.compile(rb'\{"type":"(\w+)"')


@cache
def _from_engine_by_kind() -> dict[str, type[FromEngine]]:
    # The validator of each is built when its first line is read: that of all takes 0.1 s.
    kinds: tuple[type[FromEngine], ...] = get_args(FromEngine)
    return {get_args(each.model_fields["type"].annotation)[0]: each for each in kinds}


@cache
def _from_engine() -> TypeAdapter[FromEngine]:
    return TypeAdapter(Annotated[FromEngine, Field(discriminator="type")])


_NOT_SENT = {"connect_timeout_ns"}


def to_line(message: ToEngine | FromEngine) -> bytes:
    """A message as one line of JSON, with its newline."""
    return message.model_dump_json(by_alias=True, exclude=_NOT_SENT).encode() + b"\n"


def to_json(message: Model) -> dict[str, Any]:
    """A message as plain JSON values, for comparing with an example."""
    return message.model_dump(mode="json", by_alias=True, exclude=_NOT_SENT)
