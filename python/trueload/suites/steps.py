"""Searches as tables show them, and the search of a trial in a suite of broadcasts. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from trueload.protocol.plan import Requests
from trueload.record.schema import Record
from trueload.record.thresholds import CLIENTS_LIMIT, parse_condition
from trueload.search.broadcast_rows import clients_lines
from trueload.search.decide import Purpose, Try
from trueload.search.execute import SearchPlan, make_clients, take
from trueload.stats import Distribution
from trueload.suites.plan import SuitePlan


@dataclass(frozen=True)
class Step:
    """One step of a search: its load, its outcome, and its latency in ns.

    ``decisive_ns`` is the value that the limit is about, None if that is infinite or no time, and
    ``decisive_text`` how it is shown: of too few requests it is not.
    """

    load: float
    stage: str
    outcome: str
    latency: Distribution
    decisive_ns: float | None
    decisive_text: str


@dataclass(frozen=True)
class Search:
    """One search: its steps in the order of measuring, and its result.

    ``largest`` is the confirmed load. ``limit_ns`` is the limit as a time, None if it is about
    something else.
    """

    name: str
    unit: str
    limit: str
    metric: str
    limit_ns: float | None
    largest: float | None
    bound: bool
    sentence: str
    steps: tuple[Step, ...]


def search_plan(plan: SuitePlan, step_clients: int) -> SearchPlan:
    """Return the search for the most clients that keep the suite's limit."""
    assert plan.broadcast is not None
    assert isinstance(plan.stop, Requests)
    return SearchPlan(
        axis="clients",
        limit=parse_condition(plan.broadcast.limit, CLIENTS_LIMIT),
        bounds=make_clients(step_clients, step_clients, plan.broadcast.steps),
        step_ns=None,
        samples=plan.stop.count,
    )


def step_text(plan: SuitePlan, load: float, purpose: str, record: Record) -> str:
    """Return a stored step as it is shown in its subject's table."""
    following = Try(load, cast(Purpose, purpose))
    return "\n".join(clients_lines(take(search_plan(plan, 1), following, record)))
