"""What ``--limit`` and ``--search`` mean: the plan of a search."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trueload.commands.measure_options import MeasureOptions
from trueload.errors import UserError
from trueload.protocol.load_options import LoadOptions
from trueload.record.thresholds import LIMIT, parse_condition

if TYPE_CHECKING:
    from trueload.search.execute import SearchPlan


def choose_search(
    given: MeasureOptions, load: LoadOptions, origins: int = 1, of_sessions: bool = False
) -> SearchPlan | None:
    """Return the search that the options ask for, if any.

    It starts at ``--rate`` or, in a search for connections, at ``--connections``. Each of several
    origins keeps at least one connection. Raises ``UserError`` for options that contradict each
    other.
    """
    if given.limit is None:
        if given.search is not None:
            raise UserError(
                "--search is given, but no --limit", "add for example --limit 'p99<10ms'"
            )
        return None
    from trueload.search.execute import SearchPlan, make_bounds  # imported late: most search none

    limit = parse_condition(given.limit, LIMIT)
    axis = given.search or "rate"
    load.refuse_beside("--limit", "requests", "stages")
    given.refuse_beside("--limit", "repeat")
    start = load.rate_per_s
    if axis == "connections":
        load.refuse_beside("--search connections", "rate_per_s")

        start = load.connections if load.gave("connections") else None
    bounds = make_bounds(axis, start)
    if bounds.whole:
        low = float(origins)
        bounds = replace(bounds, start=max(bounds.start, low), floor=max(bounds.floor, low))
    step_ns = load.duration_ns if load.gave("duration_ns") else None
    return SearchPlan(axis, limit, bounds, step_ns, of_sessions=of_sessions)


def started(load: LoadOptions, plan: SearchPlan | None) -> LoadOptions:
    """Return the options with the load that a search starts at."""
    if plan is None or plan.axis != "rate":
        return load
    return LoadOptions(rate_per_s=plan.bounds.start).over(load)
