"""What a suite run is to do, as a pure value that is saved with its rows.

How: subjects x loads x repetitions. Each repetition goes once through all cells, in an
order shuffled by the seed, so that what drifts on the machine (heat, neighbours) falls on
all alike. The trials are generated, never held: a plan of 10,000 cells is two short lists.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

from trueload.errors import UserError
from trueload.protocol.client import ClientContract
from trueload.protocol.engine_options import EngineOptions
from trueload.protocol.exchange import WindowsPlan
from trueload.protocol.load_options import Arrivals
from trueload.protocol.model import Model, left_out
from trueload.protocol.plan import Duration, LoadPlan, Requests, Turns
from trueload.runner.trials import Setting
from trueload.subjects.contracts import AnyContract, Contract
from trueload.subjects.manifest import Cores, Subject
from trueload.suites.changes import Changes, check_role
from trueload.suites.definition import Broadcast, PublishedTable, Report, Suite, combined
from trueload.suites.http import PlannedHttp, planned_http
from trueload.suites.pools import PlannedPools, planned_pools
from trueload.suites.ranks import REPETITIONS_MIN
from trueload.suites.window import PlannedStages, plan_window
from trueload.trial.spec import CLOSED, Load, open_load
from trueload.units import (
    NS_PER_MS,
    NS_PER_S,
    close_text,
    counted,
    format_rate,
    idle_text,
    parse_duration,
    parse_rate,
    parse_size,
)

# Start, verification, connect, drain and stop of one trial, as seen with small subjects.
OVERHEAD_NS = 600_000_000
# A trial of the reference, at least.
REFERENCE_NS = 1_300_000_000 + OVERHEAD_NS
# Start, first orders and end of a client's process, as seen with the catalogue's.
CLIENT_OVERHEAD_NS = 2_000_000_000

# A row for all repetitions of a cell: it was skipped, or given up.
ALL_REPETITIONS = "r*"
# Ends the key of a trial that the user interrupted.
PARTIAL = " partial"


class PlannedSubject(Model):
    """A subject of the plan."""

    name: str
    language: str
    framework: str
    variant: str
    category: str
    trap: bool
    digest: str
    """Stands for everything that its figures depend on."""


class PlannedBroadcast(Model):
    """How each trial searches for the most clients."""

    limit: str
    concurrent: int
    """Messages in flight."""
    padding_bytes: int
    steps: int | None
    """Null for as many as it takes."""

    @classmethod
    def of(cls, written: Broadcast) -> PlannedBroadcast:
        """As a suite has it."""
        same = written.model_dump(exclude={"padding"})
        return cls(**same, padding_bytes=parse_size(written.padding))


class PlannedLoad(Model):
    """One load of the plan."""

    connections: int
    """The connections to the server. In a broadcast: the clients of each step. Where HTTP clients
    are measured: the connections that their pools have room for."""
    pipeline: int
    cores: Cores
    rate_per_s: float | None = None
    broadcast: bool = False
    close: bool | None = None
    """Null for what the plan says."""
    idle: tuple[int, ...] = ()
    """The steps of idle connections beside the others."""
    pools: PlannedPools | None = None
    """Null where servers are measured."""
    http: PlannedHttp | None = left_out()
    """What a load over HTTP/2, over TLS or of a path of its own has besides."""
    stages: PlannedStages | None = left_out()

    @property
    def at_once(self) -> int:
        """Requests in flight on a connection."""
        streams = None if self.http is None else self.http.streams
        return self.pipeline if streams is None else streams

    @property
    def over_tls(self) -> bool:
        """Whether the subject answers over TLS."""
        return self.http is not None and self.http.tls

    @property
    def most(self) -> int:
        """Connections at one time, at most."""
        return self.connections + (self.idle[-1] if self.idle else 0)

    @property
    def offered(self) -> str:
        """The rate or the stages, for people; empty for a closed loop."""
        if self.stages is not None:
            return self.stages.title
        return "" if self.rate_per_s is None else format_rate(self.rate_per_s)

    @property
    def is_open(self) -> bool:
        """Whether requests are sent by a schedule."""
        return self.rate_per_s is not None or (self.stages is not None and self.stages.of == "rate")

    @property
    def title(self) -> str:
        """For people: ``64 connections, pipelining 10, single core``."""
        if self.pools is not None:
            return self.pools.title
        plural = "s" if self.connections > 1 else ""
        pipelining = f", pipelining {self.pipeline}" if self.pipeline > 1 else ""
        cores = "single core" if self.cores == "single" else "multi core"
        rate = f", {self.offered}" if self.offered else ""
        if self.broadcast:
            more = counted(self.connections, "client")
            return f"broadcast to {more} more with each step, {cores}"
        close = {None: "", True: ", one per request", False: ", kept"}[self.close]
        idle = f" beside {counted(self.idle[-1], 'idle one')}" if self.idle else ""
        head = f"{self.connections} connection{plural}{idle}"
        http = "" if self.http is None else f", {self.http.title}"
        return f"{head}{close}{pipelining}{http}{rate}, {cores}"

    @property
    def key(self) -> str:
        """Names the load within the plan, and in the store."""
        if self.pools is not None:
            return f"{self.pools.key} {self.cores}"
        rate = "" if self.rate_per_s is None else f" {self.rate_per_s:.10g}/s"
        rate = rate if self.stages is None else f" {self.stages.title}"
        close, idle = close_text(self.close), idle_text(self.idle)
        words = f"{' ' if close else ''}{close}{' idle ' if idle else ''}{idle}"
        http = "" if self.http is None else f" {self.http.key}"
        return f"c{self.connections} p{self.pipeline}{http}{rate}{words} {self.cores}"


class SuitePlan(Model, EngineOptions):
    """The whole plan; times in ns."""

    suite: str
    contract: str
    subjects: tuple[PlannedSubject, ...]
    loads: tuple[PlannedLoad, ...]
    stop: Duration | Requests
    warmup: Duration | Requests | None
    arrivals: Arrivals = left_out("constant")
    close: bool
    repeat: int
    seed: int
    files: int
    share_cpus: bool
    port: int | None
    """Null for a free one."""
    published_tables: tuple[PublishedTable, ...] = ()
    broadcast: PlannedBroadcast | None = None
    report: Report = "table"
    client_wait_ms: int | None = None
    """Where clients are measured, the server's time for each answer; else null."""
    client_rounds: int = 1
    """The repetitions of a cell are divided among so many processes of a client."""
    http2: WindowsPlan | None = left_out()
    patience_ns: int = 0
    """How long repetitions that the machine disturbed may be taken again."""
    reference: PlannedSubject | None = left_out()
    """Measured before and after each trial, if trials are paired with it."""

    @property
    def takes_again(self) -> bool:
        """Whether repetitions that the machine disturbed are taken again: not those of a first
        look, nor orders to clients, nor searches."""
        of_one_trial = self.broadcast is None and self.client_wait_ms is None
        return of_one_trial and self.repeat >= REPETITIONS_MIN

    def setting(self, contract: AnyContract, planned: PlannedLoad) -> Setting:
        """What a trial of that load needs besides it."""
        http = planned.http or PlannedHttp()
        return Setting(
            contract=contract,
            engine=self.engine,
            files=self.files,
            port=self.port,
            padding_bytes=None if self.broadcast is None else self.broadcast.padding_bytes,
            seed=self.seed,
            http2=self.http2,
            tls=http.tls,
            path=http.path or None,
        )

    def load_of(self, planned: PlannedLoad) -> Load:
        """What a subject is put under."""
        load = Load(
            connections=planned.connections,
            idle=planned.idle,
            pipeline=planned.at_once,
            close=self.close if planned.close is None else planned.close,
            pacing=self._pacing(planned),
            stop=self.stop,
            warmup=self.warmup,
        )
        if planned.stages is None:
            return load
        return planned.stages.over(load, self.arrivals, self.seed)

    def _pacing(self, planned: PlannedLoad) -> LoadPlan:
        if self.broadcast is not None:
            return Turns(concurrent=self.broadcast.concurrent)
        rate_per_s = planned.rate_per_s
        if rate_per_s is None:
            return CLOSED
        return open_load(rate_per_s, self.stop, self.arrivals, self.seed)


@dataclass(frozen=True)
class Cell:
    """A subject under a load: what all its repetitions have in common."""

    subject: PlannedSubject
    load: PlannedLoad

    @property
    def key(self) -> str:
        """Names the cell within the plan, and in the store."""
        return f"{self.subject.name} {self.load.key}"


@dataclass(frozen=True)
class Trial:
    """One cell, one repetition (from 1)."""

    cell: Cell
    repetition: int

    @property
    def key(self) -> str:
        """Names the trial within the plan, and in the store."""
        return f"{self.cell.key} r{self.repetition}"


def was_cut_short(key: str) -> bool:
    """Whether a row is of a trial that the user interrupted, or a step of its search."""
    return key.partition(" step ")[0].endswith(PARTIAL)


def check_contract(suite: Suite, contract: AnyContract | ClientContract) -> None:
    """Raises ``UserError`` for a contract of another version of HTTP, or without a path that is
    asked for."""
    if not isinstance(contract, Contract | ClientContract):
        return
    if (contract.http == "2") != (suite.http2 is not None):
        raise UserError(
            f"the contract {suite.contract!r} is one of HTTP/{contract.http}, and the suite's"
            f" requests go over HTTP/{'2' if suite.http2 is not None else '1.1'}",
            "add the table [http2] to the suite, or remove it",
        )
    if isinstance(contract, ClientContract):
        return
    known = {exchange.path for exchange in contract.exchanges if exchange.form == "plain"}
    for path in sorted({path for block in suite.loads for path in block.path} - known):
        raise UserError(
            f"the contract {suite.contract!r} does not say what {path} answers",
            f"paths are {', '.join(sorted(known))}",
        )


def make_plan(
    name: str,
    suite: Suite,
    subjects: Sequence[PlannedSubject],
    changes: Changes,
    reference: PlannedSubject | None = None,
) -> SuitePlan:
    """The plan of a suite with what the command line changes; trials are paired with ``reference``.
    Pure. Raises ``UserError`` for both a duration and a count, for an option of the other role, and
    without any subject."""
    check_role(suite, changes)
    if not subjects:
        raise UserError("no subject is selected", "`trueload subjects list` shows them")
    axes = {"--connections": changes.connections, "--rate": changes.rate_per_s}
    window = plan_window(suite, changes.window, axes)
    loads = tuple(dict.fromkeys(_loads(suite, changes, window.stages)))
    if changes.window.gave("arrivals") and not any(load.is_open for load in loads):
        raise UserError("--arrivals is for an open loop", "add --rate")
    return SuitePlan(
        suite=name,
        contract=suite.contract,
        subjects=tuple(subjects),
        loads=loads,
        stop=window.stop,
        warmup=window.warmup,
        arrivals=changes.window.over(suite.window).arrivals,
        close=suite.close if changes.close is None else changes.close,
        repeat=_first(changes.repeat, suite.repeat),
        # Its short trials would be of the beginning of the stages alone.
        reference=reference if window.stages is None else None,
        patience_ns=_first(changes.patience_ns, parse_duration(suite.patience)),
        seed=_first(changes.seed, suite.seed),
        files=suite.files,
        share_cpus=changes.share_cpus,
        port=changes.port,
        published_tables=suite.published_tables,
        broadcast=None if suite.broadcast is None else PlannedBroadcast.of(suite.broadcast),
        report=suite.report,
        client_wait_ms=None
        if suite.clients is None
        else parse_duration(suite.clients.wait) // NS_PER_MS,
        client_rounds=1 if suite.clients is None else suite.clients.rounds,
        http2=None if suite.http2 is None else suite.http2.windows,
        **changes.engine.over(suite.engine).values,
    )


def _first(changed: int | None, otherwise: int) -> int:
    return otherwise if changed is None else changed


def _loads(suite: Suite, changes: Changes, stages: PlannedStages | None) -> Iterator[PlannedLoad]:
    """Every combination of each block; an axis that was given replaces the suite's."""
    if suite.clients is not None:
        yield from _client_loads(suite, changes)
        return
    for block in suite.loads:
        rates: Sequence[float | None] = (
            changes.rate_per_s or tuple(parse_rate(rate) for rate in block.rate) or (None,)
        )
        numbers = changes.connections or block.connections
        if stages is not None:
            rates, numbers = (None,), (stages.connections,) if stages.connections else numbers
        axes: dict[str, Sequence[Any]] = {
            "cores": changes.cores or block.cores,
            "pipeline": changes.pipeline or block.pipeline,
            "connections": numbers,
            "rate_per_s": rates,
            "close": (None,) if changes.close is not None else block.close or (None,),
            "http": tuple(planned_http(block, changes.streams, http2=suite.http2 is not None)),
        }
        is_broadcast = suite.broadcast is not None
        for each in combined(axes):
            yield PlannedLoad(**each, broadcast=is_broadcast, idle=block.idle, stages=stages)


def _client_loads(suite: Suite, changes: Changes) -> Iterator[PlannedLoad]:
    """The same for clients."""
    for block in suite.full if changes.full else suite.loads:
        found = planned_pools(block, changes, suite.files, http2=suite.http2 is not None)
        for cores, pools in product(changes.cores or block.cores, found):
            yield PlannedLoad(connections=pools.room, pipeline=1, cores=cores, pools=pools)


def planned(subject: Subject, digest: str) -> PlannedSubject:
    return PlannedSubject(
        name=subject.name,
        language=subject.language,
        framework=subject.framework,
        variant=subject.variant,
        category=subject.manifest.category,
        trap=subject.manifest.trap,
        digest=digest,
    )


def cells(plan: SuitePlan) -> Iterator[Cell]:
    """Every cell, in the order of subjects and loads."""
    for subject in plan.subjects:
        for load in plan.loads:
            yield Cell(subject, load)


def trials(plan: SuitePlan) -> Iterator[Trial]:
    """Every trial in the order of running. Pure: the same plan gives the same order. Of clients
    the repetitions of a round follow each other, because they are orders to one process."""
    loads = len(plan.loads)
    if plan.client_wait_ms is not None:
        for number, of_round in enumerate(rounds(plan), 1):
            order = list(cells(plan))
            random.Random(f"{plan.seed}/{number}").shuffle(order)
            for cell in order:
                yield from (Trial(cell, repetition) for repetition in of_round)
        return
    for repetition in range(1, plan.repeat + 1):
        chance = random.Random(f"{plan.seed}/{repetition}")
        if plan.reference is not None:
            yield from (Trial(cell, repetition) for cell in _load_by_load(plan, chance))
            continue
        numbers = list(range(len(plan.subjects) * loads))
        chance.shuffle(numbers)
        for each in numbers:
            cell = Cell(plan.subjects[each // loads], plan.loads[each % loads])
            yield Trial(cell, repetition)


def _load_by_load(plan: SuitePlan, chance: random.Random) -> Iterator[Cell]:
    """All cells, those of a load together: neighbours share a trial of the reference."""
    for load in chance.sample(plan.loads, len(plan.loads)):
        for subject in chance.sample(plan.subjects, len(plan.subjects)):
            yield Cell(subject, load)


def rounds(plan: SuitePlan) -> list[range]:
    """The repetitions of each round of clients, the larger rounds first. Pure."""
    count = min(plan.client_rounds, plan.repeat)
    size, more = divmod(plan.repeat, count)
    ends = [number * size + min(number, more) for number in range(count + 1)]
    return [range(begin + 1, end + 1) for begin, end in pairwise(ends)]


def trial_count(plan: SuitePlan) -> int:
    """How many trials the plan has."""
    return len(plan.subjects) * len(plan.loads) * plan.repeat


def duration_ns(plan: SuitePlan) -> int | None:
    """About how long its trials take, builds aside; None for trials by count."""
    if isinstance(plan.stop, Requests):
        return None
    warmup_ns = plan.warmup.ns if isinstance(plan.warmup, Duration) else 0
    if plan.client_wait_ms is not None:
        count = trial_count(plan) // plan.repeat
        once_ns = len(rounds(plan)) * (warmup_ns + CLIENT_OVERHEAD_NS)
        return count * (plan.repeat * plan.stop.ns + once_ns)
    beside_ns = 0 if plan.reference is None else REFERENCE_NS
    return trial_count(plan) * (plan.stop.ns + warmup_ns + OVERHEAD_NS + beside_ns)


def describe(plan: SuitePlan) -> str:
    """``24 trials, about 14 min: 4 subjects x 2 loads x 3 repetitions, seed 7``."""
    total_ns = duration_ns(plan)
    about = f", about {_rough(total_ns)}" if total_ns is not None else ""
    parts = " x ".join(
        (
            counted(len(plan.subjects), "subject"),
            counted(len(plan.loads), "load"),
            counted(plan.repeat, "repetition"),
        )
    )
    again = f", up to {_rough(plan.patience_ns)} more for what the machine disturbs"
    more = again if plan.takes_again and plan.patience_ns else ""
    beside = "" if plan.reference is None else f", each beside {plan.reference.name}"
    spaced = "" if plan.arrivals == "constant" else f", {plan.arrivals} arrivals"
    return (
        f"{counted(trial_count(plan), 'trial')}{about}: {parts}{beside}{spaced},"
        f" seed {plan.seed}{more}"
    )


def _rough(ns: int) -> str:
    seconds = ns / NS_PER_S
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
