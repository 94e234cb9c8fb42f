"""What a trial leaves: one record, the same for a single command and for a cell of a suite.

All fields are always present; one that does not apply is null, never -1 or 0. Names carry their
unit and are part of the interface (scripts read them): add to them, never rename. The record is
made once, from the engine's measurement. Everything after it (verdict, tables, reports, exports) is
a function of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import ConfigDict, Field

from trueload.protocol.connections import Slots
from trueload.protocol.data import DataUse
from trueload.protocol.deflate import Deflate
from trueload.protocol.early_answers import EarlyAnswers
from trueload.protocol.flow import Flow
from trueload.protocol.lateness import Lateness
from trueload.protocol.model import Model, left_out
from trueload.protocol.plan import Datagrams, Generate, Histograms, Phase
from trueload.protocol.tick import Counts, Second
from trueload.record.accounts.answers import Answers
from trueload.record.accounts.deliveries import Deliveries
from trueload.record.accounts.generator_times import GeneratorTimes
from trueload.record.accounts.http2 import Http2
from trueload.record.accounts.idle import Idle
from trueload.record.accounts.messages import Messages
from trueload.record.accounts.openings import Openings
from trueload.record.accounts.origins import OriginRecord
from trueload.record.accounts.redirects import Redirects
from trueload.record.accounts.sessions import SessionsRecord
from trueload.record.accounts.streams import Streams
from trueload.record.accounts.targets import TargetRecord
from trueload.record.accounts.tls import Tls
from trueload.record.accounts.tracks import TrackRecord
from trueload.record.bound import verdict_text
from trueload.record.client import ClientEnd
from trueload.stats import Distribution

SCHEMA = 1
"""Version of the record; a reader refuses a newer one."""

Verdict = Literal["valid", "suspect", "invalid"]
Status = Literal["pass", "bound", "warn", "fail", "n/a"]
Direction = Literal["exact", "at_most", "at_least", "unknown"]
"""``bound``: nothing is wrong, but the throughput is only a lower bound."""
REDIRECT = "a redirect to "
"""What the engine's reason has before the URL that a redirect leads to."""
REPORTED_STATUSES: tuple[Status, ...] = ("bound", "warn", "fail")
"""Statuses whose reason is reported."""


class Check(Model):
    """One check of validity: what was computed, its limit, and why it matters here."""

    name: str
    status: Status
    value: float | None
    limit: float | None
    why: str


class Claim(Model):
    """What will be said with a trial's figures, since some checks are about a claim."""

    percentile: str | None = None
    """The one that counts (``p99``); None if none was named."""
    maximum: bool = False
    """The server cannot carry more (a search, the ranking of a suite)."""
    same: bool = False
    """Each answer to a request must be like the others."""
    answer_bytes: int | None = None
    """Size of the answer that was verified before the load; None if none was."""


NO_CLAIM = Claim.model_construct()


class RecordPlan(Model):
    """The plan as sent, with bodies as SHA-256 and secrets redacted."""

    url: str
    generate: Generate
    warmup: Phase | None
    window: Phase
    claim: Claim = NO_CLAIM
    payload_bytes: int | None = None
    """Size of an echo's message; null if there is none."""


class Warmup(Model):
    """What was sent before the window."""

    counts: Counts
    wall_s: float
    """0 without a warm-up."""
    reconnects: int = 0
    dropped: int = 0


class Probes(Model):
    """What a subject was asked under load beside the load's own request: other paths and forms that
    its contract fixes."""

    asked: int
    """The number of probes that were answered."""
    wrong: int
    """The number of wrong answers to probes."""
    fault: str | None
    """The first fault."""


class Tail(Model):
    """What was left of a number of requests when the first connection had no more to send."""

    ns: int
    """Time until the last was settled."""
    last: int
    """How many of them took more than half of that."""


class Throughput(Model):
    """Requests that ended well, and bytes, per second; null without a window. ``record.throughput``
    has the rule. Older records have the first three only, and their ``ok_per_s`` is the window's
    requests divided by its length."""

    ok_per_s: float | None
    bytes_in_per_s: float | None
    bytes_out_per_s: float | None
    ok_error_per_s: float | None = None
    """The standard error of ``ok_per_s``."""
    counted_from_ns: int | None = None
    """The part of the window that counts, from its start."""
    counted_to_ns: int | None = None
    bytes_in: int | None = None
    """All that came over the connections until the end of the drain."""
    bytes_out: int | None = None
    estimate_per_s: float | None = left_out()
    """Beside a lower bound: what the server would carry at its limit, by how busy it was."""


class Connections(Model):
    """Connections of a trial."""

    requested: int
    established: int
    failed: dict[str, int]
    """What the failed first attempts met, by class."""
    reconnects: int
    dropped: int = 0
    """Closed as soon as they were accepted, with nothing asked."""
    unended: int = 0
    """Not ended by the server after its last answer though our side had, or reset at once because
    earlier ones had shown that."""
    idle_closed: int = 0
    """Ended by the server while nothing was asked on them."""
    idle_closed_after_ns: int | None = None
    """How long that took at the least; null without any."""
    starved: int | None = None
    """Slots that waited too long or for ever."""
    jain: float | None = None
    """Jain's index of replies per slot, less what chance spreads if requests are independent. In a
    scenario those of a session are slow together, and the check ``fairness`` allows for that."""
    least_ok: int | None = None
    """The fewest replies of a slot."""
    most_ok: int | None = None
    down: int | None = None
    """As ``outages`` and ``outage_ns``, the engine's (protocol/connections.rs)."""
    outages: int | None = None
    outage_ns: int | None = None
    family: str | None
    """``ipv4``, ``ipv6`` or ``unix``."""
    address: str | None = None
    """The one that answered."""
    connect_rate_per_s: float | None = None
    """Connections established per second, from the first attempt to the last connection."""
    reasons: dict[str, str] = Field(default_factory=dict)
    server_files: int | None = None
    """Open-file limit of a server on this machine that had reached it while connections waited."""


class CpuWait(Model):
    """How long the thread of an end that waited longest for a CPU did so, as shares (0 to 1) of the
    window."""

    share: float
    for_others: float
    """Because of unrelated processes."""


class Generator(Model):
    """The engine's own load over the window."""

    driver: str | None
    """What carried the sockets."""
    driver_note: str | None = None
    """Why that is not what was asked for."""
    refill: int | None = None
    """Free places from which on a pipeline is filled again."""
    spin_ns: int | None = None
    """How long a thread polls before it sleeps."""
    spun_s: float | None = None
    """Time of all threads in such polls: it is in ``cpu_s``, but not in ``saturation``."""
    coalesced_ns: int | None = None
    """The longest that answers were allowed to wait for each other."""
    threads: int
    cpus: tuple[int, ...]
    allowed_cpus: tuple[int, ...]
    """The CPUs that the kernel let the engine run on."""
    start_skew_ns: int | None = None
    """From the first to the last thread to begin to send."""
    cpu_s: float | None
    cpu_share: float | None
    """``cpu_s`` / window."""
    saturation: float | None
    peak_rss_bytes: int | None
    bytes_per_connection: float | None = None
    """Growth of its resident memory, without code, while it connected, for each connection; null
    below 1,000 connections, where fixed costs decide."""
    send_lag_p99_ns: int | None
    """Null in older records of closed loops."""
    hiccup_ns: int | None = None
    """In older records: by how much its 10 ms heartbeats were late in all."""
    lateness: Lateness | None = None
    """When its threads did not run although requests were outstanding or due."""
    throttled_share: float | None = None
    """Share of the window in which a CPU limit kept it from running; null if no cgroup counts that,
    or if it ran on another host."""
    waited: CpuWait | None = None
    """Null if it is not known."""


class Lifetime(Model):
    """CPU time since the process tree began."""

    user_s: float
    system_s: float


ServerSource = Literal["started", "found", "named"]


class Backend(Model):
    """A process of this host that the server has connected to, and its CPU time in the window."""

    pid: int
    name: str
    cpu_s: float


class Server(Model):
    """The server's process tree over the window."""

    source: ServerSource
    """Whether we started it, found it by its listening socket, or ``--server-pid`` named it."""
    name: str | None = None
    """The names of its processes."""
    cpu_s: float
    user_s: float
    system_s: float
    saturation: float | None
    peak_rss_bytes: int | None
    threads: int
    lifetime: Lifetime
    pids: tuple[int, ...]
    allowed_cpus: tuple[int, ...]
    rss_before_bytes: int | None = None
    """Resident memory at the window's beginning."""
    rss_after_bytes: int | None = None
    bytes_per_connection: float | None = None
    """Growth of resident memory since before the first connection, for each of the most connections
    that there were; null if that was not seen."""
    throttled_share: float | None = None
    """Share of the window in which a CPU limit kept it from running; null if no cgroup counts that.
    """
    waited: CpuWait | None = None
    """Null if it is not known."""
    backends: tuple[Backend, ...] = ()


class CoreLatency(Model):
    """Time to hand a cache line over from one CPU to another and back; null if not measured."""

    cpus: tuple[int, int]
    """The generator's first, and the server's first other one."""
    before_ns: float | None
    """Before the load."""
    after_ns: float | None


class CpuSpeed(Model):
    """How long the same short work took on a CPU in the window, again and again."""

    cpu: int
    from_ns: int
    """The first time, after the window's start."""
    every_ns: int
    work_ns: tuple[int, ...]
    """0 where it was not tried."""


class Environment(Model):
    """The machine and the versions that made a record."""

    kernel: str
    cpu_model: str | None
    cpu_count: int
    governor: str | None
    limits: dict[str, int]
    versions: dict[str, str]
    measured_beside: str | None = left_out()
    """What another trueload measured at the same time."""
    hostname: str | None = left_out()
    memory_bytes: int | None = left_out()
    """All memory of the machine, used or not."""
    load_average: float | None = left_out()
    """Threads that ran or waited to run in the minute before the trial, on average."""


class Host(Model):
    """One place where an engine ran. Each of several hosts has its own part; what it is made of is
    null, or empty, if there is one host."""

    place: str
    generator: Generator
    environment: Environment
    clock_offset_ns: int | None = None
    """Null if there is one clock."""
    clock_bound_ns: int | None = None
    connections: int | None = None
    """The connections that were established, of the ``requested`` ones."""
    ok: int | None = None
    counts: Counts | None = None
    latency_ns: Distribution | None = None
    latency: str | None = None
    """The histogram of ``latency_ns``."""
    start_ns: int | None = None
    """By how much it began to send after the first host."""
    checks: tuple[Check, ...] = ()
    """The checks that a host can fail by itself."""
    lost: str | None = None
    """How the host was lost, null if it was not; its part is what it told until then."""
    way_lost: bool = left_out(False)
    """What was lost was the way to it and other hosts, and none of them is to blame."""
    machine: int | None = None
    """The same for hosts on one machine, else the host's own; null if it is not known."""
    network: int | None = None
    """Likewise for hosts in one network namespace."""
    requested: int | None = None
    connect_failed: dict[str, int] = Field(default_factory=dict)
    """What the connections that were not established met, by class."""
    ok_per_s: float | None = None
    service: str | None = None
    """The histogram of service times."""
    client_ns: GeneratorTimes | None = None
    series: tuple[Second, ...] = ()
    """Without latencies, in 120 bins at most."""
    group: str | None = None
    """Named by the lab."""
    weight: int = 1
    joined_s: int | None = None
    """The second of the window in which it joined the others; null if it began with them."""
    deliveries: Deliveries | None = None
    """Deliveries to its own clients."""


class HostGroup(Model):
    """What the hosts of a group did together, without those that were lost."""

    name: str | None
    """Null for the hosts that are in no group."""
    hosts: int
    lost: int
    connections: int
    ok: int
    failed: int
    unsent: int
    ok_per_s: float | None
    """Null if it is not known of all."""
    latency_ns: Distribution


class Window(Model):
    """Times of the measured phase on the engine's clock, and of the whole trial. The shares are of
    all CPUs' time over the window."""

    window_ns: int
    drain_ns: int
    connect_wall_s: float
    wall_s: float
    host_idle_share: float | None
    others_share: float | None = None
    """Used by processes that are neither engine, front, runner nor server."""
    stolen_share: float | None = None
    """Taken by the host of a virtual machine."""


class Trouble(Model):
    """Why a trial did not end by its plan: the engine died, ran out of memory, hung, or said what
    it should not; or trueload itself was ``paused``."""

    kind: Literal["start", "engine", "died", "memory", "silent", "junk", "late", "lost", "paused"]
    what: str
    """One line for people."""


class Bounds(Model):
    """Where the truth lies, seen from a figure: a disturbed run still bounds what it moved one way.
    Every figure of a kind is moved alike."""

    latency: Direction = "exact"
    throughput: Direction = "exact"
    errors: Direction = "exact"


class RequestLogCounts(Model):
    """How many of the requests that ended are in the log of single requests (``--request-log``)."""

    rows: int
    requests: int
    one_in: int
    """One request in this many is in the log, drawn evenly; 1 if all are."""


class Record(Model):
    """What a trial leaves. If a client was measured, ``generator`` is the client's process tree,
    ``server`` our reference server, and ``plan.generate`` what the client was told, in a
    generator's words. ``counts`` are the client's claims then, ``throughput`` and ``series`` the
    server's account. What only our generator sees (latency, slots) is null or empty."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_by_name=True, serialize_by_alias=True
    )

    schema_: int = Field(alias="schema")
    id: str
    started_at: str
    plan: RecordPlan
    partial: bool
    verdict: Verdict
    lower_bound: bool = False
    """A faster generator might have shown more throughput."""
    bounds: Bounds | None = left_out()
    """What the figures are certain of, whatever the verdict; null in records of before."""
    checks: tuple[Check, ...]
    counts: Counts
    warmup: Warmup
    throughput: Throughput
    latency_ns: Distribution = Distribution()
    service_ns: Distribution = Distribution()
    connection_service_ns: Distribution = Distribution()
    connect_ns: Distribution = Distribution()
    first_byte_ns: Distribution = Distribution()
    total_ns: Distribution = Distribution()
    histograms: Histograms
    connections: Connections
    slots: Slots | None = None
    series: tuple[Second, ...]
    generator: Generator
    server: Server | None
    """Null if its processes were not seen for the whole window."""
    hosts: tuple[Host, ...]
    environment: Environment
    window: Window
    trouble: Trouble | None = None
    targets: tuple[TargetRecord, ...] | None = None
    """Null if there is one request."""
    origins: tuple[OriginRecord, ...] | None = None
    """Null if all requests have one (scheme, host and port)."""
    sessions: SessionsRecord | None = None
    """Null without a scenario."""
    handshake_ns: Distribution = Distribution()
    tls: Tls | None = None
    data: DataUse | None = None
    """Null if no data fill the requests."""
    deliveries: Deliveries | None = None
    """Null if nothing is broadcast."""
    datagrams: Datagrams | None = None
    """Null if a stream carries the requests."""
    http2: Http2 | None = None
    """Null for other protocols."""
    streams: Streams | None = None
    """Null without ``--stream``."""
    openings: Openings | None = None
    """Null without ``--connect-open``."""
    redirects: Redirects | None = None
    """Null without ``--follow``."""
    messages: Messages | None = None
    """Null without a conversation over WebSocket."""
    deflate: Deflate | None = None
    """Null without ``--deflate``."""
    answers: tuple[Answers, ...] = ()
    """Kinds of answers to requests whose bodies were not compared with an expected one."""
    early: EarlyAnswers = EarlyAnswers.model_construct()
    """Answers of warm-up and window about which the kernel was asked."""
    probes: Probes | None = None
    """For subjects whose contract fixes more than the load asks for."""
    idle: Idle | None = None
    """Null without ``--idle``."""
    client: ClientEnd | None = None
    """Null if a server was measured."""
    cpu_distance: CoreLatency | None = None
    """Null if both ends are not known to run on two CPUs of one machine."""
    cpu_speeds: tuple[CpuSpeed, ...] = ()
    """The speeds of the CPUs of this machine that the server may use, 16 CPUs at most."""
    client_ns: GeneratorTimes = GeneratorTimes.model_construct()
    """Our generator's part of the times; empty in older records, as ``round_trip_ns``."""
    round_trip_ns: Distribution = Distribution()
    """The service time without that part: from when the kernel had a request to when it had the
    answer, on the sample of ``client_ns.receive``."""
    flow: Flow | None = None
    """Null in older records, and if the engine died."""
    tail: Tail | None = None
    """Likewise, and for a duration."""
    request_log: RequestLogCounts | None = None
    """Null without ``--request-log``."""
    groups: tuple[HostGroup, ...] = ()
    """Empty if the hosts are in none."""
    tracks: tuple[TrackRecord, ...] = left_out(())
    """Parts of the traffic over time; left out for one request whose answers are no streams."""

    @property
    def verdict_text(self) -> str:
        """The verdict for people: ``valid (lower bound)``."""
        return verdict_text(self.verdict, self.lower_bound)

    def whole_seconds(self, series: Sequence[Second] | None = None) -> tuple[Second, ...]:
        """The bins of the series, or of a track's, that lie entirely in the window."""
        window_s = self.window.window_ns // 1_000_000_000
        found = self.series if series is None else series
        return tuple(each for each in found if each.t_s + each.width_s <= window_s)
