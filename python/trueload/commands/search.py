"""``--limit``: searches the largest load that keeps to it, for any command that measures.

The options become a plan. Each step is a trial of its own, saved as soon as it has ended.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from trueload.commands.job import Job, Saved, notes_of
from trueload.commands.measure_options import MeasureOptions
from trueload.commands.open_hosts import open_hosts
from trueload.commands.server_place import with_server
from trueload.errors import UserError
from trueload.interrupt import Interrupt
from trueload.protocol.load_options import LoadOptions
from trueload.record.schema import Record
from trueload.record.thresholds import LIMIT, Crossed, crossed, parse_condition
from trueload.report.heading import search_heading
from trueload.report.live import Watch, unwatched
from trueload.search.crowd import Crowd
from trueload.search.decide import Try
from trueload.search.execute import UNITS, SearchPlan, Taken, make_bounds, search, spec_at
from trueload.search.result import deciding, labels, plan_json
from trueload.trial.run import ShortageError, run_trial
from trueload.trial.spec import TrialSpec, repetition


def choose_search(given: MeasureOptions, load: LoadOptions, origins: int = 1) -> SearchPlan | None:
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
    limit = parse_condition(given.limit, LIMIT)
    axis = given.search or "rate"
    excluded = [
        ("--requests", load.gave("requests")),
        ("--stages", load.gave("stages")),
        ("--repeat", given.repeat is not None),
        ("--rate", load.gave("rate_per_s") and axis == "connections"),
    ]
    for name, is_given in excluded:
        if is_given:
            what = "--limit" if name != "--rate" else "--search connections"
            raise UserError(f"{what} and {name} exclude each other", "keep one of them")
    start = load.rate_per_s
    if axis == "connections":
        start = load.connections if load.gave("connections") else None
    bounds = make_bounds(axis, start)
    if bounds.whole:
        low = float(origins)
        bounds = replace(bounds, start=max(bounds.start, low), floor=max(bounds.floor, low))
    step_ns = load.duration_ns if load.gave("duration_ns") else None
    return SearchPlan(axis, limit, bounds, step_ns)


def started(load: LoadOptions, plan: SearchPlan | None) -> LoadOptions:
    """Return the options with the load that a search starts at."""
    if plan is None or plan.axis != "rate":
        return load
    return load.model_copy(update={"rate_per_s": plan.bounds.start})


@dataclass(frozen=True)
class Searched:
    """The result of a search: its steps, and the thresholds that the deciding one crossed."""

    taken: tuple[Taken, ...]
    over: tuple[Crossed, ...]
    saved: Saved


def measure_search(
    job: Job,
    plan: SearchPlan,
    interrupt: Interrupt,
    *,
    watch: Watch = unwatched,
    on_step: Callable[[Sequence[Taken]], object] = lambda taken: None,
) -> Searched:
    """Search, saving each step.

    Shows nothing except through ``watch`` and, after each step, ``on_step``. Raises ``UserError``.
    """
    with contextlib.ExitStack() as stack:
        hosts = stack.enter_context(open_hosts(job, notes_of(job), interrupt))
        spec = replace(job.resolved(), hosts=hosts)
        spec = stack.enter_context(with_server(job, spec))
        stored = {**plan_json(plan), "of": job.asked.kind}
        saved = stack.enter_context(Saved.begin(stack, job, "search", job.spec.url, plan=stored))
        taken: list[Taken] = []
        measure = _measure(plan, spec, interrupt, stack, watch, taken)
        for each in search(plan, measure, lambda: interrupt.requested):
            found = labels(each)
            saved.add(each.record, key=f"{found['stage']} {found['load']}", labels=found)
            taken.append(each)
            on_step(taken)
        saved.end(interrupt.requested)
        over = crossed(job.thresholds, [deciding(plan, taken).record] if taken else [])
    return Searched(tuple(taken), tuple(over), saved)


def _measure(
    plan: SearchPlan,
    spec: TrialSpec,
    interrupt: Interrupt,
    stack: contextlib.ExitStack,
    watch: Watch,
    taken: Sequence[Taken],
) -> Callable[[Try, int], Record]:
    """Return the function that measures a step.

    A step is a trial of its own or, for a broadcast, a window over the clients that are there. The
    caller appends each step to ``taken``.
    """
    steps = itertools.count(1)

    def labels_of(following: Try) -> dict[str, str]:
        load = f"{following.load:.12g} {UNITS[plan.axis]}"
        return {"trial": str(next(steps)), "load": load}

    if plan.axis == "clients":
        crowd = stack.enter_context(Crowd(interrupt, plan.bounds.ceiling))

        def measure_crowd(following: Try, messages: int) -> Record:
            one = spec_at(plan, spec, following, messages)
            heading = search_heading(plan, taken, following)
            with watch(one, heading, labels_of(following)) as on_progress:
                return crowd.measure(one, on_progress)

        return measure_crowd
    # A confirming run needs arrivals of its own, not those that found the load.
    numbers = itertools.count(1)

    def measure(following: Try, ns: int) -> Record:
        one = spec_at(plan, repetition(spec, next(numbers)), following, ns)
        heading = search_heading(plan, taken, following)
        with watch(one, heading, labels_of(following)) as on_progress:
            try:
                return run_trial(one, on_progress=on_progress, interrupt=interrupt)
            except ShortageError as short:
                # A shortage at the load that was asked for is refused; later in a search it is our
                # limit.
                if plan.axis == "rate" or following.load <= plan.bounds.start:
                    raise
                return short.record

    return measure
