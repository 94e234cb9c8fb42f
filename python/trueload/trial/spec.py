"""What a trial is to do, and the progress it reports: values with hardly any behaviour.

A specification is complete: addresses instead of names, bytes instead of files. Running it asks the
network and the user nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from trueload.machine.accounting import TreeSample
from trueload.places import EngineHost
from trueload.places.late_hosts import LateHosts
from trueload.protocol.cpu_time import CpuTime
from trueload.protocol.engine_options import ENGINE_DEFAULTS, EngineOptions
from trueload.protocol.load_options import LoadOptions, StagesOf
from trueload.protocol.plan import Closed, Duration, LoadPlan, Open, Phase, Requests, Spacing, Stage
from trueload.protocol.tick import Tick
from trueload.record.schema import NO_CLAIM, Claim, Record
from trueload.request.traffic import Traffic
from trueload.trial.request_log import RequestLog
from trueload.units import DURATION_NS_MAX, NS_PER_S, Ramp

TEN_SECONDS = Duration.model_construct(ns=10 * NS_PER_S)
ONE_SECOND = Duration.model_construct(ns=NS_PER_S)
CLOSED = Closed.model_construct()
PHASES = ("connect", "warm-up", "window", "drain", "ended")
"""The phases of a trial, by the names that ``Progress`` uses."""
CONNECT, WARMUP, WINDOW, DRAIN, ENDED = PHASES


def stop_of(given: LoadOptions) -> Duration | Requests:
    """Return when to stop, without stages."""
    if given.requests is not None:
        return Requests(count=given.requests)
    return Duration(ns=given.duration_ns)


def open_load(
    rate_per_s: float, stop: Duration | Requests, arrivals: Spacing = "constant", seed: int = 1
) -> Open:
    """Return an open loop at one rate, for as long as ``stop`` may take."""
    ns = stop.ns if isinstance(stop, Duration) else DURATION_NS_MAX
    return Open(stages=(make_stage(ns, rate_per_s, rate_per_s),), arrivals=arrivals, seed=seed)


def staged_load(
    load: Load, ramps: Sequence[Ramp], of: StagesOf, arrivals: Spacing, seed: int
) -> Load:
    """Return the load changed over time by ``ramps``, whose values are those ``of`` what."""
    stages = tuple(make_stage(ramp.ns, ramp.first, ramp.last) for ramp in ramps)
    stop = Duration(ns=sum(ramp.ns for ramp in ramps))
    if of == "rate":
        pacing = Open(stages=stages, arrivals=arrivals, seed=seed)
        return replace(load, pacing=pacing, stop=stop)
    return replace(
        load, connections=most_connections(ramps), pacing=Closed(active=stages), stop=stop
    )


def most_connections(ramps: Sequence[Ramp]) -> int:
    """Return how many connections stages of connections need."""
    return round(max(max(ramp.first, ramp.last) for ramp in ramps))


def make_stage(ns: int, first: float, last: float) -> Stage:
    """Return a stage from its ends; its field ``from`` is a Python keyword."""
    return Stage.model_validate({"ns": ns, "from": first, "to": last})


def warmup_load(load: LoadPlan, warmup: Duration | Requests) -> LoadPlan:
    """Return the load of a warm-up: the load at the window's start, held for the whole warm-up."""
    ns = warmup.ns if isinstance(warmup, Duration) else DURATION_NS_MAX
    if isinstance(load, Open):
        return load.model_copy(update={"stages": (_held(load.stages[0], ns),), "from_ns": 0})
    if isinstance(load, Closed) and load.active:
        return Closed(active=(_held(load.active[0], ns),))
    return load


def _held(first: Stage, ns: int) -> Stage:
    return make_stage(ns, first.from_, first.from_)


@dataclass(frozen=True, kw_only=True)
class Load:
    """The load on a server."""

    connections: int = 64
    """With ``connect_open``, how many there may be at once."""
    idle: tuple[int, ...] = ()
    """Rising numbers of connections that are held beside the others and never send. The last number
    is held in warm-up and window."""
    pipeline: int = 1
    """Requests in flight on each connection."""
    close: bool = False
    """Each request has a connection of its own."""
    connect_open: bool = False
    """With ``close``: it is opened when the request is due."""
    pacing: LoadPlan = CLOSED
    """Stages of it must last as long as ``stop`` (see ``open_load``)."""
    stop: Duration | Requests = TEN_SECONDS
    warmup: Duration | Requests | None = ONE_SECOND

    @property
    def most(self) -> int:
        """The largest number of connections at one time."""
        return self.connections + (self.idle[-1] if self.idle else 0)

    @property
    def is_open(self) -> bool:
        """Whether requests are sent by a schedule."""
        return isinstance(self.pacing, Open)


LOAD_DEFAULTS = Load()


class Tree(Protocol):
    """A process tree that can be sampled; ``accounting.ProcessTree`` is one."""

    def sample(self) -> TreeSample:
        """Return what the tree has used up to now."""
        ...


@dataclass(frozen=True, kw_only=True)
class TrialSpec:
    """Everything a trial needs. Times in ns."""

    url: str
    """Shown and stored: it holds no secret."""
    addresses: tuple[str, ...]
    """``IP:PORT``, ``[IPv6]:PORT`` or ``unix:PATH``, tried in this order; those of all origins."""
    traffic: Traffic
    seed: int = 1
    """That of ``{random}`` and of shuffled data."""
    load: Load = LOAD_DEFAULTS
    engine: EngineOptions = ENGINE_DEFAULTS
    """If its ``cpus`` are None, the engine is kept off the CPUs of a pinned loopback server."""
    server: Tree | None = None
    """The processes of a server that the caller started. Without them, the server of a loopback
    target is found by its listening socket."""
    server_place: str | None = None
    """Where the server is; None if it is here or unknown."""
    server_pid: int | None = None
    """A process of this machine that counts as the server, with its children."""
    claim: Claim = NO_CLAIM
    """The percentile and maximum that will be claimed from the figures; checks need to know."""
    hosts: tuple[EngineHost, ...] = ()
    """Where the load comes from: empty for this machine alone."""
    allow_lost: int = 0
    """So many hosts may be lost while the others go on."""
    late: LateHosts | None = None
    """Hosts that may join while it lasts."""
    request_log: RequestLog | None = None
    """Takes the single requests of the window, which are reported only if it is there."""


def repetition(spec: TrialSpec, number: int) -> TrialSpec:
    """Return the specification for the ``number``-th repetition, counted from 1.

    It has other arrivals and other random numbers. Their seeds are in the plan, so each repetition
    can be sent again.
    """
    again = replace(spec, seed=spec.seed + number - 1)
    pacing = spec.load.pacing
    if not isinstance(pacing, Open):
        return again
    paced = pacing.model_copy(update={"seed": pacing.seed + number - 1})
    return replace(again, load=replace(spec.load, pacing=paced))


@dataclass(frozen=True)
class HostTick:
    """The last tick of one of several hosts; its time is on the front's clock."""

    place: str
    tick: Tick


@dataclass(frozen=True)
class Progress:
    """The progress of a trial."""

    phase: str
    """One of ``PHASES``."""
    elapsed_ns: int
    """How long it has lasted."""
    tick: Tick | None
    """The engine's last tick in it."""
    hosts: Callable[[], Sequence[HostTick]] = tuple
    """Looks up the last tick of each of several hosts."""
    record: Record | None = None
    """Comes with the last phase."""
    server: CpuTime | None = None
    """Comes with a tick if the server is on this machine."""
    plan: Phase | None = None
    """The warm-up during the warm-up, and otherwise the window."""
    news: tuple[str, ...] = ()
    """What cannot wait for the result: the hosts that were lost just now, and why."""


OnProgress = Callable[[Progress], None]


class Interrupt(Protocol):
    """Tells whether the user wants the trial to end; ``interrupt.Interrupt`` is one."""

    @property
    def requested(self) -> bool:
        """True from the first Ctrl-C, SIGTERM or SIGHUP on."""
        ...


@dataclass(frozen=True)
class NoInterrupt:
    """An ``Interrupt`` that is never requested."""

    requested: bool = False
