"""The messages between the front and the engine, mirrored from crates/engine/src/protocol.rs.

Every line is one JSON object with a ``type``. Unknown fields are refused, so that a front and an
engine of different versions never partly understand each other. All times are nanoseconds on the
engine's monotonic clock. ``schema/examples`` holds lines that both languages read and write back
unchanged.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter

from trueload import hdr
from trueload.protocol.broadcast import Charge as Charge
from trueload.protocol.broadcast import Deliveries as Deliveries
from trueload.protocol.broadcast import DeliveryHistograms as DeliveryHistograms
from trueload.protocol.broadcast import PhaseSent as PhaseSent
from trueload.protocol.broadcast import Settle as Settle
from trueload.protocol.broadcast import Settled as Settled
from trueload.protocol.connections import Connections as Connections
from trueload.protocol.connections import IdleClosed as IdleClosed
from trueload.protocol.connections import Slots as Slots
from trueload.protocol.data import DataPlan as DataPlan
from trueload.protocol.data import DataUse as DataUse
from trueload.protocol.early import Early as Early
from trueload.protocol.engine_options import CONNECT_RATE_PER_S as CONNECT_RATE_PER_S
from trueload.protocol.engine_options import ENGINE_DEFAULTS as ENGINE_DEFAULTS
from trueload.protocol.engine_options import DriverName as DriverName
from trueload.protocol.engine_options import EngineOptions as EngineOptions
from trueload.protocol.engine_options import ThreadOptions as ThreadOptions
from trueload.protocol.exchange import ServeHttp, ServicePlan
from trueload.protocol.expect import ExpectPlan as ExpectPlan
from trueload.protocol.faults import Faults as Faults
from trueload.protocol.flow import Backlog as Backlog
from trueload.protocol.flow import Flow as Flow
from trueload.protocol.flow import Work as Work
from trueload.protocol.http2 import Http2 as Http2
from trueload.protocol.kinds import Kinds as Kinds
from trueload.protocol.lateness import Lateness as Lateness
from trueload.protocol.lateness import Stalls as Stalls
from trueload.protocol.model import Model as Model
from trueload.protocol.model import left_out
from trueload.protocol.openings import Openings as Openings
from trueload.protocol.origins import OriginConnections as OriginConnections
from trueload.protocol.origins import OriginPlan as OriginPlan
from trueload.protocol.part import WHOLE
from trueload.protocol.part import AskClock as AskClock
from trueload.protocol.part import AskDistance as AskDistance
from trueload.protocol.part import AskSpeeds as AskSpeeds
from trueload.protocol.part import Clock as Clock
from trueload.protocol.part import CpuLooks as CpuLooks
from trueload.protocol.part import Distance as Distance
from trueload.protocol.part import Machine as Machine
from trueload.protocol.part import MachineShares as MachineShares
from trueload.protocol.part import Part as Part
from trueload.protocol.part import Share as Share
from trueload.protocol.part import Speeds as Speeds
from trueload.protocol.redirects import Redirects as Redirects
from trueload.protocol.replay import ReplayPlan as ReplayPlan
from trueload.protocol.scenario import Sessions as Sessions
from trueload.protocol.scenario import StepPlan as StepPlan
from trueload.protocol.seen import Concurrent as Concurrent
from trueload.protocol.seen import Quantiles as Quantiles
from trueload.protocol.seen import Seen as Seen
from trueload.protocol.seen import Span as Span
from trueload.protocol.streams import StreamPlan as StreamPlan
from trueload.protocol.streams import Streams as Streams
from trueload.protocol.tick import Counts as Counts
from trueload.protocol.tick import Second as Second
from trueload.protocol.tick import Sparse as Sparse
from trueload.protocol.tick import Tick as Tick
from trueload.protocol.tls import ServeGiven as ServeGiven
from trueload.protocol.tls import ServeSelfSigned as ServeSelfSigned
from trueload.protocol.tls import ServeTlsPlan as ServeTlsPlan
from trueload.protocol.tls import TlsPlan as TlsPlan
from trueload.protocol.tls import TrustAnybody as TrustAnybody
from trueload.protocol.tls import TrustGiven as TrustGiven
from trueload.protocol.tls import TrustPlan as TrustPlan
from trueload.protocol.tls import TrustSystem as TrustSystem
from trueload.protocol.traffic import TargetPlan as TargetPlan
from trueload.protocol.traffic import TrafficPlan as TrafficPlan

PROTOCOL = 1
"""Version of the protocol; ``hello`` has it, and a plan must name it. The comment on the engine's
own constant says when to raise it (crates/engine/src/protocol.rs)."""

NO_KINDS = Kinds()
NO_EARLY = Early()


class Stage(Model):
    """A stretch of time over which a quantity changes linearly."""

    ns: int
    from_: float = Field(alias="from")
    to: float


class Closed(Model):
    """A closed loop: each free slot sends at once.

    ``active`` is how many connections take part, over time; empty for all of them throughout.
    """

    kind: Literal["closed"] = "closed"
    active: tuple[Stage, ...] = ()


Spacing = Literal["constant", "poisson", "recorded"]
"""How the requests of an open loop are spaced."""


class Open(Model):
    """An open loop: requests are sent at scheduled times, whatever became of those before.

    ``stages`` are requests per second over time; ``seed`` decides the gaps of ``poisson``. With
    ``recorded`` the times are those of the plan's replay, which begins at ``from_ns``.
    """

    kind: Literal["open"] = "open"
    stages: tuple[Stage, ...]
    arrivals: Spacing
    seed: int
    from_ns: int = left_out(0)


class Turns(Model):
    """The load of a broadcast: ``concurrent`` messages in flight over all connections, sent in
    turn."""

    kind: Literal["turns"] = "turns"
    concurrent: int


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


class Generate(EngineOptions, TrafficPlan):
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
    # The engine and stored plans have it; it always equals the timeout.
    connect_timeout_ns: int = Field(default_factory=lambda plan: plan["timeout_ns"])
    part: Part = left_out(WHOLE)

    @property
    def every_address(self) -> tuple[str, ...]:
        """Its addresses, or those of all its origins."""
        return self.addresses + tuple(at for origin in self.origins for at in origin.addresses)


SERVE_HTTP = ServeHttp()


class Serve(ThreadOptions):
    """What one reference server is to do. Port 0 for a free one; ``ready`` names it."""

    type: Literal["serve"] = "serve"
    protocol: int = PROTOCOL
    listen: str
    cpus: tuple[int, ...]
    tls: ServeTlsPlan | None = None
    service: ServicePlan = left_out(SERVE_HTTP)


class Blob(Model):
    """Bytes named by their SHA-256 (hex, lower case), base64 with padding."""

    type: Literal["blob"] = "blob"
    sha256: str
    base64: str


class Phase(Model):
    """One phase over the existing connections. The last ``idle`` of them never send. Of a broadcast
    that several engines share, ``ahead_ns`` is how far the engine's clock is ahead of the front's.
    ``from_ns`` is how long others have been sending, since ``at_ns``, when the engine joins them.
    """

    type: Literal["phase"] = "phase"
    id: str
    load: LoadPlan
    connections: int | None
    idle: int = 0
    stop: StopPlan
    at_ns: int | None
    ahead_ns: int | None = left_out()
    from_ns: int = left_out(0)


class Mark(Model):
    """For a server of HTTP that keeps a record: report what it holds since the mark before
    (``Seen``, with the same ``id``), and begin a new interval."""

    type: Literal["mark"] = "mark"
    id: str


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
    | Settle
    | Charge
    | Lease
    | Stop
)


HistogramText = Annotated[str, AfterValidator(hdr.Text)]


class Histograms(Model):
    """HdrHistogram V2 compressed, base64, values in ns; null if empty.

    They cover ok requests only, with four exceptions. ``connect``: every connection established.
    ``send_lag``: every request sent, from when it could be, to when it was handed to the kernel.
    ``round_trip``: from then to the kernel's receive time of the answer's last bytes.
    ``receive_lag``: from that to when they were read. The last two are on a sample of the
    connections.
    """

    latency: HistogramText | None
    service: HistogramText | None
    connect: HistogramText | None
    first_byte: HistogramText | None
    total: HistogramText | None
    send_lag: HistogramText | None = None
    receive_lag: HistogramText | None = None
    round_trip: HistogramText | None = None
    handshake: HistogramText | None = None


class Generator(Model):
    """The engine's own load over the window; ``saturation`` is from 0 to 1. ``driver_note``: why
    the driver is not the one that was asked for. ``spun_ns``: time in polls without an event.
    ``coalesced_ns``: the longest that answers were allowed to wait for each other."""

    driver: str
    driver_note: str | None = None
    refill: int = 0
    spin_ns: int = 0
    spun_ns: int = 0
    coalesced_ns: int = 0
    threads: int
    cpus: tuple[int, ...]
    start_skew_ns: int | None = None
    cpu_ns: int
    saturation: float
    peak_rss_bytes: int
    lateness: Lateness = Lateness()
    machine: MachineShares | None = None


class TargetCounts(Model):
    """Outcomes of one target's requests; ``latency`` and ``kinds`` cover those that ended well.
    ``redirects`` of them were followed."""

    issued: int
    ok: int
    stale: int
    cancelled: int
    skipped: int = left_out(0)
    redirects: int = left_out(0)
    failed: dict[str, int]
    statuses: dict[str, int]
    latency: Sparse
    kinds: Kinds = left_out(NO_KINDS)


class Datagrams(Model):
    """Datagrams of a phase that settled no request, or came out of turn. ``late``: answers to
    requests given up as lost. ``duplicated``: second answers. ``reordered``: answers behind the
    answer to a later request on the same socket. ``unsolicited``: answers to nothing that was sent.
    ``dropped``: our datagrams that never left. ``overflowed``: those that found the queue of our
    socket full. The requests of the last two are lost."""

    late: int
    duplicated: int
    reordered: int
    unsolicited: int
    dropped: int
    overflowed: int


class Measurement(Model):
    """The result of a phase. ``started_ns`` is the planned start, ``began_ns`` when the first
    thread really began. ``kinds`` are those of answers if the plan has one request."""

    started_ns: int
    began_ns: int = 0
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
    flow: Flow | None = left_out()
    generator: Generator
    targets: tuple[TargetCounts, ...] | None = None
    sessions: Sessions | None = left_out()
    origins: tuple[OriginConnections, ...] = left_out(())
    data: DataUse | None = left_out()
    deliveries: Deliveries | None = left_out()
    datagrams: Datagrams | None = left_out()
    http2: Http2 | None = left_out()
    kinds: Kinds = left_out(NO_KINDS)
    early: Early = left_out(NO_EARLY)
    streams: Streams | None = left_out()
    openings: Openings | None = left_out()
    redirects: Redirects | None = left_out()


class Hello(Model):
    """The engine's first line."""

    type: Literal["hello"]
    protocol: int
    version: str
    pid: int
    machine: Machine = Machine()


class Tls(Model):
    """What a TLS handshake agreed on; ``alpn`` is null if the server chose none."""

    version: str
    cipher: str
    alpn: str | None


class Ready(Model):
    """Connected (generator) or listening (server), and on which driver. ``set_up_ns``: from the
    first attempt to the last connection. ``grown_bytes``: growth of memory meanwhile, without code.
    """

    type: Literal["ready"]
    at_ns: int
    listen: str | None
    requested: int
    established: int
    failed: dict[str, int]
    address: str | None
    set_up_ns: int = 0
    grown_bytes: int = 0
    driver: str = ""
    driver_note: str | None = None
    reasons: dict[str, str] = Field(default_factory=dict)
    tls: Tls | None = None
    certificate: str | None = None


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


class PhaseDone(Model):
    """The last request of a phase is settled."""

    type: Literal["phase_done"]
    id: str
    measurement: Measurement


class Served(Model):
    """What a reference server saw since it began; see protocol/served.rs for each field."""

    type: Literal["served"]
    at_ns: int
    accepted: int
    open: int
    open_peak: int
    requests: int
    responses: int
    malformed: int
    aborted: int
    waiting: int
    bytes_in: int
    bytes_out: int
    handshakes_full: int = 0
    handshakes_resumed: int = 0
    tls_failed: int = 0
    deliveries: int = 0
    slow: int = 0


class Error(Model):
    """An error in the engine itself or in the plan; ``class`` is ``class_`` here."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True)

    type: Literal["error"]
    class_: str = Field(alias="class")
    message: str


class Done(Model):
    """The last line: finished, stopped, orphaned or signalled."""

    type: Literal["done"]
    why: str


FromEngine = (
    Hello
    | Clock
    | Distance
    | Speeds
    | Ready
    | PhaseStarted
    | PhaseStopped
    | Tick
    | PhaseDone
    | PhaseSent
    | Settled
    | Served
    | Seen
    | Error
    | Done
)


def parse_from_engine(line: str | bytes) -> FromEngine:
    """Parse one line from the engine. Raises ``ValueError`` (pydantic's) for anything else."""
    return _from_engine().validate_json(line)


def parse_to_engine(line: str | bytes) -> ToEngine:
    """Parse one line to the engine; the inverse of ``to_line``. Raises ``ValueError``."""
    return _to_engine().validate_json(line)


# Built when the first line is read: they take 0.1 s, and `--help` reads none.
@cache
def _from_engine() -> TypeAdapter[FromEngine]:
    return TypeAdapter(Annotated[FromEngine, Field(discriminator="type")])


@cache
def _to_engine() -> TypeAdapter[ToEngine]:
    return TypeAdapter(Annotated[ToEngine, Field(discriminator="type")])


def to_line(message: ToEngine | FromEngine) -> bytes:
    """A message as one line of JSON, with its newline."""
    return message.model_dump_json(by_alias=True).encode() + b"\n"


def to_json(message: Model) -> dict[str, Any]:
    """A message as plain JSON values, for comparing with an example."""
    return message.model_dump(mode="json", by_alias=True)
