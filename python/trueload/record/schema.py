"""What a trial leaves: one record, the same for a single command and for a cell of a suite.

All fields are always present; one that does not apply is null, never -1 or 0. Names carry their
unit and are part of the interface (scripts read them): add to them, never rename. The record is
made once, from the engine's measurement. Everything after it (verdict, tables, reports, exports) is
a function of it. This module must not know how a trial is run, stored or shown.
"""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from trueload.protocol.data import DataUse
from trueload.protocol.model import left_out
from trueload.protocol.plan import (
    Counts,
    Datagrams,
    Early,
    Flow,
    Generate,
    Histograms,
    Lateness,
    Model,
    Phase,
    Second,
    Slots,
)
from trueload.record.accounts.answers import Answers
from trueload.record.accounts.client_times import ClientTimes
from trueload.record.accounts.deliveries import Deliveries
from trueload.record.accounts.http2 import Http2
from trueload.record.accounts.idle import Idle
from trueload.record.accounts.openings import Openings
from trueload.record.accounts.origins import OriginRecord
from trueload.record.accounts.redirects import Redirects
from trueload.record.accounts.sessions import SessionsRecord
from trueload.record.accounts.streams import Streams
from trueload.record.accounts.targets import TargetRecord
from trueload.record.accounts.tls import Tls
from trueload.record.bound import verdict_text
from trueload.record.client import ClientEnd
from trueload.stats import Distribution

SCHEMA = 1
"""Version of the record; a reader refuses a newer one."""

Verdict = Literal["valid", "suspect", "invalid"]
Status = Literal["pass", "bound", "warn", "fail", "n/a"]
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
    """What will be said with a trial's figures, since some checks are about a claim.

    ``percentile`` is the one that counts (``p99``), None if none was named. ``maximum``: the server
    cannot carry more (a search, the ranking of a suite). ``same``: each answer to a request must be
    like the others. ``answer_bytes`` is the size of the answer verified before the load, None if
    none was.
    """

    percentile: str | None = None
    maximum: bool = False
    same: bool = False
    answer_bytes: int | None = None


NO_CLAIM = Claim()


class RecordPlan(Model):
    """The plan as sent, with bodies as SHA-256 and secrets redacted. ``payload_bytes`` is the size
    of an echo's message; null if there is none."""

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


class Probes(Model):
    """What a subject was asked under load beside the load's own request: other paths and forms that
    its contract fixes. How many were answered, how many of these wrongly, and the first fault."""

    asked: int
    wrong: int
    fault: str | None


class Tail(Model):
    """What was left of a number of requests when the first connection had no more to send. It took
    ``ns`` until the last was settled, and ``last`` of them took more than half of that."""

    ns: int
    last: int


class Throughput(Model):
    """Requests that ended well, and bytes, per second; null without a window. ``record.throughput``
    has the rule. ``ok_error_per_s`` is the standard error of ``ok_per_s``. The part of the window
    that counts is from ``counted_from_ns`` to ``counted_to_ns`` after its start. ``bytes_in`` and
    ``bytes_out`` are all that went over the connections until the end of the drain. Older records
    have none of these, and their ``ok_per_s`` is the window's requests divided by its length."""

    ok_per_s: float | None
    bytes_in_per_s: float | None
    bytes_out_per_s: float | None
    ok_error_per_s: float | None = None
    counted_from_ns: int | None = None
    counted_to_ns: int | None = None
    bytes_in: int | None = None
    bytes_out: int | None = None


class Connections(Model):
    """Connections of a trial. ``starved`` slots waited too long or for ever. ``jain`` is Jain's
    index of replies per slot; ``least_ok`` and ``most_ok`` are the fewest and the most replies of a
    slot. ``dropped``: closed as soon as they were accepted, with nothing asked. ``unended``: not
    ended by the server after its last answer though our side had, or reset at once because earlier
    ones had shown that. ``idle_closed``: ended by the server while nothing was asked on them, after
    ``idle_closed_after_ns`` at the soonest (null without any). ``down``, ``outages`` and
    ``outage_ns`` are the engine's (protocol/connections.rs). ``family`` is ``ipv4``, ``ipv6`` or
    ``unix``, of the ``address`` that answered. ``failed`` is what the failed first attempts met, by
    class. ``connect_rate_per_s`` is how many were established per second, from the first attempt to
    the last of them. ``server_files`` is the open-file limit of a server on this machine that had
    reached it while connections waited."""

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
    """How long the thread of an end that waited longest for a CPU did so, as shares (0 to 1) of the
    window: ``share`` in all, ``for_others`` because of unrelated processes."""

    share: float
    for_others: float


class Generator(Model):
    """The engine's own load over the window.

    ``cpu_share`` = ``cpu_s`` / window. ``allowed_cpus`` are those that the kernel let it run on.
    ``send_lag_p99_ns`` is null in older records of closed loops. ``lateness`` is when its threads
    did not run although requests were outstanding or due; older records have ``hiccup_ns`` instead,
    by how much its 10 ms heartbeats were late in all. ``driver`` is what carried the sockets,
    ``driver_note`` why that is not what was asked for. ``refill``: free places from which on a
    pipeline is filled again. ``spin_ns``: how long a thread polls before it sleeps. ``spun_s``: the
    time of all threads in such polls, which is in ``cpu_s`` but not in ``saturation``.
    ``coalesced_ns``: the longest that answers were allowed to wait for each other.
    ``bytes_per_connection``: growth of its resident memory, without code, while it connected, for
    each connection; null below 1,000 connections, where fixed costs decide. ``start_skew_ns``: from
    the first to the last thread to begin to send. ``throttled_share``: share of the window in which
    a CPU limit kept the engine from running; null if no cgroup counts that, or if the engine ran on
    another host. ``waited`` is null if it is not known.
    """

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
    """A process of this host that the server has connected to, and its CPU time in the window."""

    pid: int
    name: str
    cpu_s: float


class Server(Model):
    """The server's process tree over the window. ``source``: whether we started it, found it by its
    listening socket, or ``--server-pid`` named it. ``name`` has the names of its processes.
    ``rss_before_bytes`` and ``rss_after_bytes``: resident memory at the window's beginning and end.
    ``bytes_per_connection``: growth of resident memory since before the first connection, for each
    of the most connections that there were; null if that was not seen. ``throttled_share``: share
    of the window in which a CPU limit kept the server from running; null if no cgroup counts that.
    ``waited`` is null if it is not known."""

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


class CoreLatency(Model):
    """Time to hand a cache line over from one CPU to another and back, before and after the load.
    The CPUs are the generator's first, and the server's first other one; null if it was not
    measured."""

    cpus: tuple[int, int]
    before_ns: float | None
    after_ns: float | None


class CpuSpeed(Model):
    """How long the same short work took on a CPU in the window, again and again: first ``from_ns``
    after its start, then every ``every_ns``; 0 where it was not tried."""

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
    """One place where an engine ran; clock fields are null if there is one clock. Each of several
    hosts has its own part: ``connections``, ``counts`` with ``ok`` beside them, ``latency_ns`` with
    its histogram ``latency``, the ``checks`` that a host can fail by itself, and ``start_ns``, by
    how much it began to send after the first host. These are null, or empty, if there is one host.
    ``lost`` says how the host was lost, null if it was not; its part is what it told until then.
    With ``way_lost`` that was the way to it and other hosts, and none of them is to blame.

    ``connections`` of the ``requested`` ones were established, and ``connect_failed`` is what the
    others met, by class. ``service`` is the histogram of service times, ``client_ns`` its part of
    the latency. ``series`` has no latencies, and 120 bins at most. ``group`` is named by the lab.
    ``deliveries`` of a broadcast are those to its own clients. ``joined_s`` is the second of the
    window in which the host joined the others, null if it began with them. Hosts with the same
    ``machine`` are on one machine, those with the same ``network`` in one network namespace; both
    numbers are the host's own unless it shares them, and null if they are not known.
    """

    place: str
    generator: Generator
    environment: Environment
    clock_offset_ns: int | None
    clock_bound_ns: int | None
    connections: int | None = None
    ok: int | None = None
    counts: Counts | None = None
    latency_ns: Distribution | None = None
    latency: str | None = None
    start_ns: int | None = None
    checks: tuple[Check, ...] = ()
    lost: str | None = None
    way_lost: bool = left_out(False)
    machine: int | None = None
    network: int | None = None
    requested: int | None = None
    connect_failed: dict[str, int] = Field(default_factory=dict)
    ok_per_s: float | None = None
    service: str | None = None
    client_ns: ClientTimes | None = None
    series: tuple[Second, ...] = ()
    group: str | None = None
    weight: int = 1
    joined_s: int | None = None
    deliveries: Deliveries | None = None


class HostGroup(Model):
    """What the hosts of a group did together, without those that were ``lost``. ``name`` is null
    for the hosts that are in no group. ``ok_per_s`` is null if it is not known of all."""

    name: str | None
    hosts: int
    lost: int
    connections: int
    ok: int
    failed: int
    unsent: int
    ok_per_s: float | None
    latency_ns: Distribution


class Window(Model):
    """Times of the measured phase on the engine's clock, and of the whole trial.

    The shares are of all CPUs' time over the window: idle; used by processes that are neither
    engine, front, runner nor server; taken by the host of a virtual machine.
    """

    window_ns: int
    drain_ns: int
    connect_wall_s: float
    wall_s: float
    host_idle_share: float | None
    others_share: float | None = None
    stolen_share: float | None = None


class Trouble(Model):
    """Why a trial did not end by its plan: the engine died, ran out of memory, hung, or said what
    it should not; or trueload itself was ``paused``. ``what`` is one line for people."""

    kind: Literal["start", "engine", "died", "memory", "silent", "junk", "late", "lost", "paused"]
    what: str


class Record(Model):
    """What a trial leaves. ``lower_bound``: a faster generator might have shown more throughput.

    These are null: ``targets`` if there is one request, ``sessions`` without a scenario,
    ``origins`` if all requests have one (scheme, host and port), ``server`` if its processes were
    not seen for the whole window, ``data`` if none fills the requests, ``deliveries`` if nothing is
    broadcast, ``datagrams`` if a stream carries the requests, ``http2`` for other protocols,
    ``streams`` without ``--stream``, ``redirects`` without ``--follow``, ``openings`` without
    ``--connect-open``, ``idle`` without ``--idle``, ``cpu_distance`` if both ends are not known to
    run on two CPUs of one machine, ``flow`` in older records and if the engine died, ``tail`` also
    for a duration.

    ``answers`` cover the requests whose bodies were not compared with expected ones. ``early`` are
    answers of warm-up and window about which the kernel was asked. ``probes`` are for subjects
    whose contract fixes more than the load asks for. ``cpu_speeds`` cover the CPUs of this machine
    that the server may use, 16 at most. ``schema_`` is ``schema`` in JSON. ``client_ns`` is about
    our generator; ``round_trip_ns`` is the service time without its part: from when the kernel had
    a request to when it had the answer, on the sample of ``client_ns.receive``. Both are empty in
    older records. ``groups`` is empty if the hosts are in none.

    ``client`` is null if a server was measured. If a client was, ``generator`` is the client's
    process tree, ``server`` our reference server, and ``plan.generate`` what the client was told,
    in a generator's words. ``counts`` are the client's claims, ``throughput`` and ``series`` the
    server's account. What only our generator sees (latency, slots) is null or empty.
    """

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
    sessions: SessionsRecord | None = None
    handshake_ns: Distribution = Distribution()
    tls: Tls | None = None
    data: DataUse | None = None
    deliveries: Deliveries | None = None
    datagrams: Datagrams | None = None
    http2: Http2 | None = None
    streams: Streams | None = None
    openings: Openings | None = None
    redirects: Redirects | None = None
    answers: tuple[Answers, ...] = ()
    early: Early = Early()
    probes: Probes | None = None
    idle: Idle | None = None
    client: ClientEnd | None = None
    cpu_distance: CoreLatency | None = None
    cpu_speeds: tuple[CpuSpeed, ...] = ()
    client_ns: ClientTimes = ClientTimes()
    round_trip_ns: Distribution = Distribution()
    flow: Flow | None = None
    tail: Tail | None = None
    groups: tuple[HostGroup, ...] = ()

    @property
    def verdict_text(self) -> str:
        """The verdict for people: ``valid (lower bound)``."""
        return verdict_text(self.verdict, self.lower_bound)

    def whole_seconds(self) -> tuple[Second, ...]:
        """The bins of the series that lie entirely in the window."""
        window_s = self.window.window_ns // 1_000_000_000
        return tuple(each for each in self.series if each.t_s + each.width_s <= window_s)
