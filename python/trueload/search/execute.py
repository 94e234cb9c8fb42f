"""Does the steps of a search: decides, measures, judges, until there is nothing left to try.

How: a load becomes a specification by its axis (a rate, or connections), and measuring it is a
function that comes as an argument; so every protocol that can be measured can be searched.

Must not know: protocols, the store, what is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from trueload.plan import Duration, Open
from trueload.record import Claim, Record
from trueload.search.decide import Bounds, Done, Step, Try, decide
from trueload.search.judge import Judgement, judge_step, step_ns
from trueload.spec import TrialSpec, open_load
from trueload.stats import parse_percentile
from trueload.thresholds import Condition

Axis = Literal["rate", "connections"]
UNITS: dict[Axis, str] = {"rate": "requests/s", "connections": "connections"}

RATE_START, RATE_FLOOR, RATE_CEILING = 1_000.0, 1.0, 10_000_000.0
CONNECTIONS_START, CONNECTIONS_FLOOR, CONNECTIONS_CEILING = 8.0, 1.0, 1_000_000.0


@dataclass(frozen=True)
class SearchPlan:
    """What to look for, and where. ``step_ns`` is the length of each step; None lets each be as
    long as its percentiles need."""

    axis: Axis
    limit: Condition
    bounds: Bounds
    step_ns: int | None


@dataclass(frozen=True)
class Taken:
    """A step that was taken."""

    next: Try
    record: Record
    judgement: Judgement

    @property
    def step(self) -> Step:
        """As the decision sees it."""
        return Step(self.next.load, self.judgement.outcome, self.next.stage)


Measure = Callable[[Try, int], Record]
"""Measures a load for so many ns."""


def make_bounds(axis: Axis, start: float | None) -> Bounds:
    """Where to search on an axis, from ``start`` or a load that most servers keep to."""
    if axis == "rate":
        return Bounds(start or RATE_START, min(RATE_FLOOR, start or RATE_FLOOR), RATE_CEILING)
    return Bounds(start or CONNECTIONS_START, CONNECTIONS_FLOOR, CONNECTIONS_CEILING, whole=True)


def spec_at(plan: SearchPlan, spec: TrialSpec, following: Try, ns: int) -> TrialSpec:
    """The specification of one step."""
    shares = [(parse_percentile(part.metric) or 0.0, part.metric) for part in plan.limit.parts]
    share, name = max(shares)
    claim = Claim(percentile=name if share else None, maximum=following.stage == "confirm")
    spec = replace(spec, stop=Duration(ns=ns), claim=claim)
    if plan.axis == "connections":
        count = int(following.load)
        return replace(spec, connections=count, threads=min(spec.threads, count))
    if isinstance(spec.load, Open):
        arrivals, seed = spec.load.arrivals, spec.load.seed
        return replace(spec, load=open_load(following.load, spec.stop, arrivals, seed))
    return replace(spec, load=open_load(following.load, spec.stop))


def search(
    plan: SearchPlan, measure: Measure, stopped: Callable[[], bool] = lambda: False
) -> Iterator[Taken]:
    """Each step as it has been taken; ends when there is nothing left to try, when nothing can be
    measured at all, or when stopped (the last step may then be cut short)."""
    taken: list[Taken] = []
    while not stopped():
        following = decide(plan.bounds, [each.step for each in taken])
        if not isinstance(following, Try):
            return
        ns = plan.step_ns or step_ns(plan.limit, _per_s(plan, following, taken), following.stage)
        record = measure(following, ns)
        judged = judge_step(record, plan.limit, following.stage)
        taken.append(Taken(following, record, judged))
        yield taken[-1]
        if record.connections.established == 0 and len(taken) == 1:
            return


def outcome(plan: SearchPlan, taken: Sequence[Taken]) -> Done | None:
    """What came of a search; None if it was cut short."""
    done = decide(plan.bounds, [each.step for each in taken])
    return None if isinstance(done, Try) else done


def _per_s(plan: SearchPlan, following: Try, taken: Sequence[Taken]) -> float | None:
    """Requests per second that a step will have."""
    if plan.axis == "rate":
        return following.load
    return taken[-1].record.throughput.ok_per_s if taken else None
