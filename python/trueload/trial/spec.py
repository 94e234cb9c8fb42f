"""What a trial is to do, and what it says of itself while it does it: values, hardly any behaviour.

A specification is complete: addresses and not names, bytes and not files, so that running it asks
the network and the user nothing more. Must not know how a trial is run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from trueload.machine.accounting import TreeSample
from trueload.places import EngineHost
from trueload.protocol.cpu_time import CpuTime
from trueload.protocol.load_options import Arrivals
from trueload.protocol.plan import (
    ENGINE_DEFAULTS,
    Closed,
    Duration,
    EngineOptions,
    LoadPlan,
    Open,
    Phase,
    Requests,
    Stage,
    Tick,
    WindowsPlan,
)
from trueload.record.schema import NO_CLAIM, Claim, Record
from trueload.request.exchange import Exchange
from trueload.request.values import ANY_ANSWER, Expect, OriginSpec, Request, TargetSpec, Tls
from trueload.units import DURATION_NS_MAX, NS_PER_S

TEN_SECONDS = Duration(ns=10 * NS_PER_S)
ONE_SECOND = Duration(ns=NS_PER_S)
CLOSED = Closed()
PHASES = ("connect", "warm-up", "window", "drain", "ended")
"""The stages of a trial, as ``Progress`` has them."""
CONNECT, WARMUP, WINDOW, DRAIN, ENDED = PHASES


def open_load(
    rate_per_s: float, stop: Duration | Requests, arrivals: Arrivals = "constant", seed: int = 1
) -> Open:
    """An open loop at one rate, for as long as ``stop`` may take."""
    ns = stop.ns if isinstance(stop, Duration) else DURATION_NS_MAX
    return Open(stages=(make_stage(ns, rate_per_s, rate_per_s),), arrivals=arrivals, seed=seed)


def make_stage(ns: int, first: float, last: float) -> Stage:
    """A stage (its ``from`` is a word of Python)."""
    return Stage.model_validate({"ns": ns, "from": first, "to": last})


def warmup_load(load: LoadPlan, warmup: Duration | Requests) -> LoadPlan:
    """The load of a warm-up: what the window begins with, held for its whole time."""
    ns = warmup.ns if isinstance(warmup, Duration) else DURATION_NS_MAX
    if isinstance(load, Open):
        return load.model_copy(update={"stages": (_held(load.stages[0], ns),)})
    if isinstance(load, Closed) and load.active:
        return Closed(active=(_held(load.active[0], ns),))
    return load


def _held(first: Stage, ns: int) -> Stage:
    return make_stage(ns, first.from_, first.from_)


@dataclass(frozen=True, kw_only=True)
class Load:
    """What a server is put under: so many connections, each with so many requests in flight, that
    send by ``pacing`` until ``stop``. Stages of the pacing must last as long (see ``open_load``).
    ``close``: each request has a connection of its own. ``idle`` are the steps, rising, of
    connections that are held beside the others and never send; the last of them are there in
    warm-up and window."""

    connections: int = 64
    idle: tuple[int, ...] = ()
    pipeline: int = 1
    close: bool = False
    pacing: LoadPlan = CLOSED
    stop: Duration | Requests = TEN_SECONDS
    warmup: Duration | Requests | None = ONE_SECOND

    @property
    def most(self) -> int:
        """Connections at one time, at most."""
        return self.connections + (self.idle[-1] if self.idle else 0)

    @property
    def is_open(self) -> bool:
        """Whether requests are sent by a schedule."""
        return isinstance(self.pacing, Open)


LOAD_DEFAULTS = Load()


class Tree(Protocol):
    """A process tree that can be sampled; ``accounting.ProcessTree`` is one."""

    def sample(self) -> TreeSample:
        """What the tree has used up to now."""
        ...


@dataclass(frozen=True, kw_only=True)
class TrialSpec:
    """Everything a trial needs. Times in ns. ``url`` is shown and stored: it holds no secret.

    ``addresses`` are ``IP:PORT``, ``[IPv6]:PORT`` or ``unix:PATH``, tried in this order. ``server``
    is the tree of a server that the caller started; without one, that of a loopback target is found
    by its listening socket; ``server_place`` is where it is, None for here or nobody knows.
    ``server_pid`` is a process of this machine that counts as the server, with its children.
    Where ``engine.cpus`` is None, ``run_trial`` keeps the engine off the CPUs of a pinned loopback
    server. ``claim`` is what will be said with
    the figures: checks of the claimed percentile and maximum need it. ``targets`` are sent instead
    of ``request``, which is None then; so it is with an ``exchange`` of another protocol than HTTP.
    With ``http2`` requests go over HTTP/2, ``load.pipeline`` streams at once on each connection.
    ``seed`` is that of ``{random}``.
    ``hosts`` is where the load comes from: empty for this machine alone.
    ``origins`` are those of the targets where there are several: then ``addresses`` are those of
    all, and each has its own TLS.
    """

    url: str
    addresses: tuple[str, ...]
    request: Request | None
    expect: Expect = ANY_ANSWER
    targets: tuple[TargetSpec, ...] = ()
    exchange: Exchange | None = None
    http2: WindowsPlan | None = None
    seed: int = 1
    load: Load = LOAD_DEFAULTS
    engine: EngineOptions = ENGINE_DEFAULTS
    local_addresses: tuple[str, ...] = ()
    server: Tree | None = None
    server_place: str | None = None
    server_pid: int | None = None
    claim: Claim = NO_CLAIM
    tls: Tls | None = None
    hosts: tuple[EngineHost, ...] = ()
    origins: tuple[OriginSpec, ...] = ()

    @property
    def message_bytes(self) -> int | None:
        """The size of one message of an echo; None where there are none."""
        echoed = self.exchange.messages if self.exchange is not None else None
        return None if echoed is None else echoed.size_bytes

    @property
    def every_tls(self) -> tuple[Tls, ...]:
        """What TLS is set up with, of each origin that has it."""
        found = (self.tls, *(origin.tls for origin in self.origins))
        return tuple(each for each in found if each is not None)


def repetition(spec: TrialSpec, number: int) -> TrialSpec:
    """The same trial for the ``number``-th time, from 1: with other arrivals and other random
    numbers. Their seeds are in the plan, so that each can be sent again."""
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
    """Where a trial is: a stage (one of ``PHASES``), how long it has lasted, the engine's last tick
    in it, and, of several hosts, each one's; with the last stage comes the record. ``server`` comes
    with a tick where the server is on this machine; ``phase`` is what the warm-up asks for, or
    what the window does or will."""

    stage: str
    elapsed_ns: int
    tick: Tick | None
    hosts: tuple[HostTick, ...] = ()
    record: Record | None = None
    server: CpuTime | None = None
    phase: Phase | None = None


OnProgress = Callable[[Progress], None]


class Interrupt(Protocol):
    """Says whether the user wants the trial to end; ``interrupt.Interrupt`` is one."""

    @property
    def requested(self) -> bool:
        """True from the first Ctrl-C, SIGTERM or SIGHUP on."""
        ...


@dataclass(frozen=True)
class NeverAsked:
    """An ``Interrupt`` where nobody can ask for the end."""

    requested: bool = False
