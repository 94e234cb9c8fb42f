"""Runs the steps of a search: decides, measures and judges, until nothing is left to try.

How: the axis (a rate, or connections) turns a load into a specification. Measuring is a function
passed as an argument, so every protocol that can be measured can be searched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from trueload.protocol.engine_options import EngineOptions
from trueload.protocol.plan import Duration, Open, Requests
from trueload.record.figures import RECEIPT, percentile_share
from trueload.record.schema import NO_CLAIM, Record
from trueload.record.thresholds import Condition
from trueload.search.decide import Bounds, Done, NoSafeLoad, SafeLoad, Step, Try, decide
from trueload.search.judge import (
    Judgement,
    confirming_messages,
    has_good_answer,
    is_cut,
    judge_broadcast,
    judge_recovery,
    judge_step,
    step_ns,
    unreached,
)
from trueload.trial.spec import TrialSpec, open_load

Axis = Literal["rate", "connections", "clients"]

RATE_START, RATE_FLOOR, RATE_CEILING = 1_000.0, 1.0, 10_000_000.0
CONNECTIONS_START, CONNECTIONS_FLOOR, CONNECTIONS_CEILING = 8.0, 1.0, 1_000_000.0
# The best possible width of the interval of a p95 from the published method's 100 samples.
CLIENTS_PRECISION = 0.02


@dataclass(frozen=True)
class SearchPlan:
    """What to search for, and where.

    ``step_ns`` is the length of each step; None lets each be as long as its percentiles need. On
    the axis ``clients``, of broadcasts, ``samples`` is the number of messages in each step but the
    confirming one, which has as many as its percentile needs. ``stop_on_loss`` ends the search at a
    lost or doubled delivery. With ``of_sessions`` a rate is of whole sessions of a scenario.
    """

    axis: Axis
    limit: Condition
    bounds: Bounds
    step_ns: int | None
    samples: int = 0
    stop_on_loss: bool = False
    of_sessions: bool = False

    @property
    def unit(self) -> str:
        """The unit of the load: ``requests/s``, ``sessions/s``, ``connections`` or ``clients``."""
        if self.axis != "rate":
            return self.axis
        return "sessions/s" if self.of_sessions else "requests/s"


@dataclass(frozen=True)
class StepResult:
    """One step that was measured and judged."""

    next: Try
    record: Record
    judgement: Judgement

    @property
    def is_kept(self) -> bool:
        """Whether the load kept to the limit; a probe of recovery says nothing of that."""
        return self.judgement.outcome == "kept" and self.next.purpose != "recover"

    @property
    def step(self) -> Step:
        """The step in the form that ``decide`` reads."""
        answered = has_good_answer(self.record)
        away = bool(self.record.connections.outages)
        return Step(self.next.load, self.judgement.outcome, self.next.purpose, answered, away)


Measure = Callable[[Try, int], Record]
"""Measures a load for a length in ns or, for a broadcast, in messages."""


def make_bounds(axis: Axis, start: float | None) -> Bounds:
    """Return the range of an axis, from ``start`` or from a load that most servers carry."""
    if axis == "rate":
        return Bounds(start or RATE_START, min(RATE_FLOOR, start or RATE_FLOOR), RATE_CEILING)
    return Bounds(start or CONNECTIONS_START, CONNECTIONS_FLOOR, CONNECTIONS_CEILING, whole=True)


def make_clients(start: int, step: int, steps: int | None) -> Bounds:
    """Return the range for clients of a broadcast, with ``step`` more clients in each step."""
    ceiling = CONNECTIONS_CEILING if steps is None else float(start + (steps - 1) * step)
    floor = min(CONNECTIONS_FLOOR, float(start))
    return Bounds(float(start), floor, ceiling, True, CLIENTS_PRECISION, float(step))


def spec_at(plan: SearchPlan, spec: TrialSpec, following: Try, length: int) -> TrialSpec:
    """Return the specification of one step; ``length`` has the unit of ``Measure``."""
    share, name = max(
        (percentile_share(part.metric) or 0.0, part.metric.removeprefix(RECEIPT))
        for part in plan.limit.parts
    )
    update = {"percentile": name if share else None, "maximum": following.largest}
    claim = spec.claim.model_copy(update=update)
    if plan.axis == "clients":
        # The published method's steps are too short to claim a percentile from one alone.
        return replace(
            spec,
            load=replace(spec.load, connections=int(following.load), stop=Requests(count=length)),
            claim=claim if following.purpose == "confirm" else NO_CLAIM,
        )
    load = replace(spec.load, stop=Duration(ns=length))
    if plan.axis == "connections":
        count = int(following.load)
        threads = min(spec.engine.threads, count)
        engine = EngineOptions(threads=threads).over(spec.engine)
        return replace(spec, load=replace(load, connections=count), engine=engine, claim=claim)
    if isinstance(load.pacing, Open):
        paced = open_load(following.load, load.stop, load.pacing.arrivals, load.pacing.seed)
    else:
        paced = open_load(following.load, load.stop)
    return replace(spec, load=replace(load, pacing=paced), claim=claim)


def search(
    plan: SearchPlan, measure: Measure, stopped: Callable[[], bool] = lambda: False
) -> Iterator[StepResult]:
    """Yield each step once it has been measured.

    Ends if nothing is left to try, if the server or one of several cannot be reached from the
    start, or if stopped; the last step may then be cut short.
    """
    taken: list[StepResult] = []
    while not stopped():
        following = decide(plan.bounds, [each.step for each in taken])
        if not isinstance(following, Try):
            return
        record = measure(following, _length(plan, following, taken))
        taken.append(take(plan, following, record, taken))
        yield taken[-1]
        if _never_began(taken) or _ends_by_loss(plan, record):
            return


def take(
    plan: SearchPlan, following: Try, record: Record, before: Sequence[StepResult] = ()
) -> StepResult:
    """Return a step with its judgement; ``before`` are the steps before it."""
    if following.purpose == "recover":
        same = [each for each in before if each.next.load == following.load]
        # A stored search is judged by today's rules: perhaps none has kept the limit by them.
        rested = [each for each in same if each.judgement.outcome == "kept"] or same
        judgement = judge_recovery(record, plan.limit, rested[0].record)
    elif plan.axis == "clients":
        judgement = judge_broadcast(record, plan.limit, following.purpose)
    else:
        judgement = judge_step(record, plan.limit, following.purpose)
    return StepResult(following, record, judgement)


def _ends_by_loss(plan: SearchPlan, record: Record) -> bool:
    found = record.deliveries
    return plan.stop_on_loss and found is not None and found.lost + found.duplicate > 0


def _never_began(taken: Sequence[StepResult]) -> bool:
    """Whether the first step did not reach every server that it is for.

    Most servers can carry that step, so no other load would be measured whole.
    """
    return len(taken) == 1 and bool(unreached(taken[0].record))


def outcome(plan: SearchPlan, taken: Sequence[StepResult]) -> Done | None:
    """Return the result of a search; None if it was cut short."""
    if taken and is_cut(taken[-1].record):
        return None
    if _never_began(taken) and taken[0].record.trouble is None and not taken[0].record.partial:
        return NoSafeLoad("gone", taken[0].next.load)
    if taken and _ends_by_loss(plan, taken[-1].record):
        return NoSafeLoad("lost", taken[-1].next.load)
    done = decide(plan.bounds, [each.step for each in taken])
    if isinstance(done, Try):
        return None
    # If a server leaves clients out, a smaller load without losses proves nothing.
    above = done.above if isinstance(done, SafeLoad) else done.lowest
    is_lossy = any(each.next.load == above and each.judgement.is_loss for each in taken)
    return NoSafeLoad("lost", above) if is_lossy and above is not None else done


def _length(plan: SearchPlan, following: Try, taken: Sequence[StepResult]) -> int:
    per_s = _per_s(plan, following, taken)
    if plan.axis != "clients":
        of_plan = plan.step_ns if following.purpose != "recover" else None
        return of_plan or step_ns(plan.limit, per_s, following.purpose)
    if following.purpose != "confirm":
        return plan.samples
    return confirming_messages(plan.limit, plan.samples, per_s)


def _per_s(plan: SearchPlan, following: Try, taken: Sequence[StepResult]) -> float | None:
    """Return the requests, or messages, per second that a step will have.

    On the rate axis that is its load; otherwise it is the throughput of the last kept step.
    """
    if plan.axis == "rate":
        return following.load
    if following.purpose == "recover":
        return None
    kept = [each for each in taken if each.is_kept]
    last = kept or taken
    return last[-1].record.throughput.ok_per_s if last else None
