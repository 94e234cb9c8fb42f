"""What a trial leaves: one record, the same for a single command and for a cell of a suite.

All fields are always present; what does not apply is null, never -1 or 0. Names carry their unit
and are part of the interface (scripts read them): add to them, never rename. The record is made
once, from the engine's measurement, and everything after (verdict, tables, reports, exports) is a
function of it. This module must not know how a trial is run, stored or shown.
"""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from trueload.protocol.plan import (
    Counts,
    Datagrams,
    DeliveryHistograms,
    Early,
    Flow,
    Generate,
    Histograms,
    Lateness,
    Model,
    Phase,
    Second,
    Slots,
    Sparse,
)
from trueload.record.answers import Answers, Probes
from trueload.record.bound import verdict_text
from trueload.record.client import ClientEnd
from trueload.record.http2 import Http2
from trueload.stats import Distribution

SCHEMA = 1
"""Version of the record; a reader refuses a newer one."""

Verdict = Literal["valid", "suspect", "invalid"]
Status = Literal["pass", "bound", "warn", "fail", "n/a"]
"""``bound``: nothing is wrong, but the throughput is only a lower bound."""
REDIRECT = "a redirect to "
"""How the engine's reason of the class `status` begins where it knows where that leads."""
TOLD: tuple[Status, ...] = ("bound", "warn", "fail")
"""Statuses whose reason people are told."""


class Check(Model):
    """One validity test: what was computed, against what, and why it matters here."""

    name: str
    status: Status
    value: float | None
    limit: float | None
    why: str


class Claim(Model):
    """What will be said with a trial's figures: some checks are about a claim.

    ``percentile`` is the one that counts (``p99``), None if nobody named one; ``maximum``: that
    the server cannot carry more (a search, the ranking of a suite). ``same``: each answer to a
    request must be like the others; ``answer_bytes`` is the size of one that was verified before
    the load, None where none was.
    """

    percentile: str | None = None
    maximum: bool = False
    same: bool = False
    answer_bytes: int | None = None


NO_CLAIM = Claim()


class RecordPlan(Model):
    """The plan as sent: bodies by their SHA-256, secrets redacted. ``payload_bytes`` is the size
    of an echo's message; null where there is none."""

    url: str
    generate: Generate
    warmup: Phase | None
    window: Phase
    claim: Claim = NO_CLAIM
    payload_bytes: int | None = None


class Warmup(Model):
    """What was sent before the window; ``wall_s`` is 0 without a warm-up."""

    counts: Counts
    wall_s: float
    reconnects: int = 0
    dropped: int = 0


class Tail(Model):
    """What was left of a number of requests when the first connection had no more to send: it took
    ``ns`` until the last was settled, and ``last`` of them took more than half of that."""

    ns: int
    last: int


class Throughput(Model):
    """Requests that ended well, and bytes, per second; null without a window. ``record.throughput``
    has the rule. ``ok_error_per_s`` is the standard error of ``ok_per_s``. Of the window counts
    what is from ``counted_from_ns`` to ``counted_to_ns`` after its start. ``bytes_in`` and
    ``bytes_out`` are all that went over the connections until the end of the drain. Older records
    have none of these, and their ``ok_per_s`` are the window's requests per second of it."""

    ok_per_s: float | None
    bytes_in_per_s: float | None
    bytes_out_per_s: float | None
    ok_error_per_s: float | None = None
    counted_from_ns: int | None = None
    counted_to_ns: int | None = None
    bytes_in: int | None = None
    bytes_out: int | None = None


class Connections(Model):
    """``starved`` slots waited too long or for ever; ``jain`` is Jain's index of replies per slot;
    ``least_ok`` and ``most_ok`` the replies of the slot with the fewest and the most.
    ``dropped`` were closed as soon as they were taken, with nothing asked; ``unended`` were not
    ended by the server after its last answer though our side had, or reset at once because those
    before had shown that; ``idle_closed`` were ended by the server while nothing was asked on them,
    after ``idle_closed_after_ns`` at the soonest (null without any);
    ``down``, ``outages`` and ``outage_ns`` are the engine's (protocol.rs); ``family`` is ``ipv4``,
    ``ipv6`` or ``unix`` of the ``address`` that answered; ``failed`` is what the first attempts
    that failed met, by class; ``connect_rate_per_s`` is how many were established per second, from
    the first attempt to the last of them; ``server_files`` is the limit of open files of a server
    on this machine that had reached it while connections waited."""

    requested: int
    established: int
    failed: dict[str, int]
    reconnects: int
    dropped: int = 0
    unended: int = 0
    idle_closed: int = 0
    idle_closed_after_ns: int | None = None
    starved: int | None
    jain: float | None
    least_ok: int | None
    most_ok: int | None
    down: int | None
    outages: int | None
    outage_ns: int | None
    family: str | None
    address: str | None
    connect_rate_per_s: float | None = None
    reasons: dict[str, str] = Field(default_factory=dict)
    server_files: int | None = None


class Waited(Model):
    """How long the thread of an end that waited longest for a CPU did so, of the window (0 to 1):
    ``share`` in all, ``for_others`` because of processes that have nothing to do with the run."""

    share: float
    for_others: float


class Generator(Model):
    """The engine's own load over the window. ``cpu_share`` = ``cpu_s`` / window;
    ``allowed_cpus`` are those that the kernel let it run on; ``send_lag_p99_ns`` is null in
    older records of closed loops;
    ``lateness`` is when its threads did not run although requests were outstanding or due; older
    records have ``hiccup_ns`` instead, by how much its 10 ms heartbeats were late in all.
    ``driver`` is what really carried the sockets, ``driver_note`` why that is not what was asked
    for; ``refill``: free places from which on a pipeline was filled again; ``spin_ns``: for so long
    a thread polled before it slept; ``spun_s``: the time of all threads that went into such polls,
    which is in ``cpu_s`` but not in ``saturation``; ``coalesced_ns``: the longest that answers were
    allowed to wait for each other. ``bytes_per_connection`` is by how much its resident memory, but
    for its code, grew while it connected, each; null below 1,000 connections, where what it needs
    once decides. ``start_skew_ns`` is between the first and the last thread to begin to send.
    ``throttled_share`` is of the window: for so long a CPU limit kept the engine from running; null
    where no cgroup counts that, and where the engine ran on another host. ``waited`` is null where
    it is not known."""

    driver: str | None
    driver_note: str | None = None
    refill: int | None = None
    spin_ns: int | None = None
    spun_s: float | None = None
    coalesced_ns: int | None = None
    threads: int
    cpus: tuple[int, ...]
    allowed_cpus: tuple[int, ...]
    start_skew_ns: int | None = None
    cpu_s: float | None
    cpu_share: float | None
    saturation: float | None
    peak_rss_bytes: int | None
    bytes_per_connection: float | None = None
    send_lag_p99_ns: int | None
    hiccup_ns: int | None = None
    lateness: Lateness | None = None
    throttled_share: float | None = None
    waited: Waited | None = None


class Lifetime(Model):
    """CPU time since the process tree began."""

    user_s: float
    system_s: float


ServerSource = Literal["started", "found", "named"]


class Backend(Model):
    """A process of this host that serves what the server has connected to, and the CPU time that it
    used in the window."""

    pid: int
    name: str
    cpu_s: float


class Server(Model):
    """The server's whole process tree over the window. ``source`` is how it was come by: we started
    it, found it by its listening socket, or ``--server-pid`` named it; ``name`` has the names of
    its processes. ``rss_before_bytes`` and ``rss_after_bytes`` are its resident memory at the
    beginning and the end of the window. ``bytes_per_connection`` is by how much that had grown
    since before the first connection, for each of the most that there were; null where that was not
    seen. ``throttled_share`` is of the window: for so long a CPU limit kept the server from
    running; null where no cgroup counts that. ``waited`` is null where it is not known."""

    source: ServerSource
    name: str | None = None
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
    rss_after_bytes: int | None = None
    bytes_per_connection: float | None = None
    throttled_share: float | None = None
    waited: Waited | None = None
    backends: tuple[Backend, ...] = ()


class CpuDistance(Model):
    """What it takes to hand a cache line over from one of two CPUs to the other and back: the first
    one of the generator and the first other one of the server; null where it was not measured."""

    cpus: tuple[int, int]
    before_ns: float | None
    after_ns: float | None


class CpuSpeed(Model):
    """How long the same short work took a CPU in the window, again and again: the first time
    ``from_ns`` after its start, then every ``every_ns``; 0 where it was not tried."""

    cpu: int
    from_ns: int
    every_ns: int
    work_ns: tuple[int, ...]


class Environment(Model):
    """The machine and the versions that made a record."""

    kernel: str
    cpu_model: str | None
    cpu_count: int
    governor: str | None
    limits: dict[str, int]
    versions: dict[str, str]


class Host(Model):
    """One place where an engine ran; clock fields are null where there is one clock. Of several
    hosts each has its own part: ``connections`` and ``ok`` requests, ``latency_ns``, the ``checks``
    that a host can fail by itself, and ``start_ns``, by how much it began to send after the first;
    null, or empty, where there is one host."""

    place: str
    generator: Generator
    environment: Environment
    clock_offset_ns: int | None
    clock_bound_ns: int | None
    connections: int | None = None
    ok: int | None = None
    latency_ns: Distribution | None = None
    start_ns: int | None = None
    checks: tuple[Check, ...] = ()


class Window(Model):
    """Times of the measured phase on the engine's clock, and of the whole trial.

    The shares are of all CPUs' time over the window: idle; used by processes that are neither
    engine, front, runner nor server; taken by the machine's own host.
    """

    window_ns: int
    drain_ns: int
    connect_wall_s: float
    wall_s: float
    host_idle_share: float | None
    others_share: float | None = None
    stolen_share: float | None = None


class Tls(Model):
    """TLS of a trial. ``verification`` is ``off`` under ``--insecure``: then nobody vouches for who
    was measured. ``version``, ``cipher`` and ``alpn`` are of the first handshake, null when there
    was none; handshakes are those of the whole trial."""

    server_name: str
    verification: Literal["on", "off"]
    client_certificate: bool
    resumption: bool
    version: str | None
    cipher: str | None
    alpn: str | None
    handshakes_full: int
    handshakes_resumed: int


class ClientTime(Model):
    """One part of the time that the generator itself spent on requests, in ns; ``count`` says how
    many were timed."""

    count: int
    p50: int
    p99: int
    max: int


class ClientTimes(Model):
    """How much of the latency was spent in the generator, each part null where it was not timed.
    ``send`` is from when a request could be sent (its schedule come, a connection free) to when it
    was handed to the kernel. ``receive`` is from the kernel's receive time of an answer's last
    bytes to when they were read; it is timed on one connection in sixteen. Both histograms are in
    ``histograms``, as ``send_lag`` and ``receive_lag``."""

    send: ClientTime | None = None
    receive: ClientTime | None = None


class Deliveries(Model):
    """What became of the messages of a broadcast: each was to reach every receiver once.
    ``delivery_ns`` is of every delivery, from the send of its message; ``first_ns``, ``median_ns``,
    ``p95_ns`` and ``last_ns`` are of one value a message: when its first, median, 95th and last
    receiver had it. ``per_s`` is null without a window. Of several hosts each times what its own
    clients sent and had; ``untimed`` of those delivered came from another host's clients, and
    ``spread_ns`` is of those messages, from their first receiver on a host to the last there."""

    expected: int
    delivered: int
    lost: int
    duplicate: int
    out_of_order: int
    per_s: float | None
    delivery_ns: Distribution
    first_ns: Distribution
    median_ns: Distribution
    p95_ns: Distribution
    last_ns: Distribution
    untimed: int = 0
    spread_ns: Distribution | None = None
    histograms: DeliveryHistograms


class IdleStep(Model):
    """So many idle connections beside the others. ``established`` are those of all that were ever
    there, ``failed`` what the others met, by class, ``connect_rate_per_s`` is that of the new
    ones; ``server_rss_bytes`` is the resident memory of the server's tree while they were held,
    null where it could not be seen."""

    idle: int
    connections: int
    established: int | None
    failed: dict[str, int]
    connect_rate_per_s: float | None
    server_rss_bytes: int | None


class Idle(Model):
    """Idle connections beside those that send. ``held`` were still open at the end of the window,
    null without a measurement. ``server_bytes_per_connection`` is the growth of the server's memory
    from the first step to the last, for each connection that was added; null where none was, or
    where it did not grow."""

    connections: int
    held: int | None
    server_bytes_per_connection: float | None
    steps: tuple[IdleStep, ...]


class Trouble(Model):
    """Why a trial ended other than by its plan: the engine died, ran out of memory, hung, or said
    what it should not.

    ``what`` is one line for people.
    """

    kind: Literal["start", "engine", "died", "memory", "silent", "junk", "late", "lost"]
    what: str


class Outcomes(Model):
    """Requests of one target: the fields as in ``counts``."""

    issued: int
    ok: int
    stale: int
    cancelled: int
    failed: dict[str, int]
    statuses: dict[str, int]


class TargetRecord(Model):
    """What became of one of several requests. ``latency_ns`` is made from ``latency``, the sparse
    histogram of two digits that the series has, too."""

    name: str | None
    method: str
    url: str
    weight: int
    counts: Outcomes
    latency_ns: Distribution
    latency: Sparse


class OriginRecord(Model):
    """One of several origins: connections asked for, and those that were ever established (null
    without a measurement), what the others met, by class, and what became of the requests of its
    targets (null without a measurement, too)."""

    url: str
    requested: int | None
    established: int | None
    connect_failed: dict[str, int]
    counts: Outcomes | None

    @property
    def is_unreached(self) -> bool:
        """Whether not one of its connections was ever established."""
        return bool(self.requested) and self.established == 0


class Record(Model):
    """What a trial leaves. ``lower_bound``: the server can carry at least the throughput, and
    perhaps more, as a quicker generator might have shown. ``targets`` is null where there is one
    request, ``origins`` where these have one (scheme, host and port), ``server`` where its
    processes were not seen, or not for the whole window, ``deliveries`` where nothing is broadcast,
    ``datagrams`` where a stream carries the requests, ``http2`` of other protocols, ``idle`` where
    no idle connection was asked for, ``answers`` are of the requests whose bodies were not compared
    with those expected, ``early`` are answers of warm-up and window about which the kernel was
    asked, ``probes`` are of subjects whose contract fixes more than the load asks for,
    ``cpu_distance`` where generator and server are not known to run on two CPUs of one machine;
    ``cpu_speeds`` is of the CPUs of this machine that the server may use, 16 at most;
    ``schema_`` is ``schema`` in JSON. ``client_ns`` is about our generator, and ``round_trip_ns``
    is the service time without its part, from when the kernel had a request to when it had the
    answer, on the sample that ``client_ns.receive`` is of; both are empty in records that are
    older. ``flow`` is null in these, too, and where the engine died; ``tail`` also of a duration.

    ``client`` is null where a server was measured. Where a client was, ``generator`` is the
    client's process tree, ``server`` our reference server, ``plan.generate`` what the client was
    told, in a generator's words; ``counts`` are the client's claims, ``throughput`` and ``series``
    the server's account; what only our generator sees (latency, slots) is null or empty."""

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
    checks: tuple[Check, ...]
    counts: Counts
    warmup: Warmup
    throughput: Throughput
    latency_ns: Distribution
    service_ns: Distribution
    connection_service_ns: Distribution = Distribution()
    connect_ns: Distribution
    first_byte_ns: Distribution
    total_ns: Distribution
    histograms: Histograms
    connections: Connections
    slots: Slots | None
    series: tuple[Second, ...]
    generator: Generator
    server: Server | None
    hosts: tuple[Host, ...]
    environment: Environment
    window: Window
    trouble: Trouble | None
    targets: tuple[TargetRecord, ...] | None = None
    origins: tuple[OriginRecord, ...] | None = None
    handshake_ns: Distribution = Distribution()
    tls: Tls | None = None
    deliveries: Deliveries | None = None
    datagrams: Datagrams | None = None
    http2: Http2 | None = None
    answers: tuple[Answers, ...] = ()
    early: Early = Early()
    probes: Probes | None = None
    idle: Idle | None = None
    client: ClientEnd | None = None
    cpu_distance: CpuDistance | None = None
    cpu_speeds: tuple[CpuSpeed, ...] = ()
    client_ns: ClientTimes = ClientTimes()
    round_trip_ns: Distribution = Distribution()
    flow: Flow | None = None
    tail: Tail | None = None

    @property
    def verdict_text(self) -> str:
        """The verdict for people: ``valid (lower bound)``."""
        return verdict_text(self.verdict, self.lower_bound)

    def whole_seconds(self) -> tuple[Second, ...]:
        """The bins of the series that lie in the window as a whole."""
        window_ns = self.window.window_ns
        return tuple(
            second
            for second in self.series
            if (second.t_s + second.width_s) * 1_000_000_000 <= window_ns
        )
