"""The trial of a suite of broadcasts: the number of clients for which a subject keeps the limit.

How: it is the search of ``trueload ws --mode broadcast``, with the subject's own contract. The
deciding record stands for the trial, and each other step is kept beside it.
"""

from __future__ import annotations

from collections.abc import Sequence

from trueload.record.schema import Record
from trueload.runner.trials import SearchOutcome, Step
from trueload.search.crowd import Crowd
from trueload.search.decide import Done, NoSafeLoad, SafeLoad, Try
from trueload.search.execute import SearchPlan, StepResult, outcome, search, spec_at, take
from trueload.search.result import deciding, labels, limited_by, sentence
from trueload.suites.plan import SuitePlan
from trueload.suites.steps import search_plan
from trueload.trial.spec import Interrupt, OnProgress, TrialSpec


def measure_broadcast(
    plan: SuitePlan, spec: TrialSpec, interrupt: Interrupt, on_progress: OnProgress | None
) -> SearchOutcome:
    """Run all steps of one trial; ends early if interrupted, or if the subject has ended."""
    wanted = search_plan(plan, spec.load.connections)
    with Crowd(interrupt, wanted.bounds.ceiling) as crowd:

        def measure(following: Try, messages: int) -> Record:
            return crowd.measure(spec_at(wanted, spec, following, messages), on_progress)

        taken = list(search(wanted, measure, lambda: interrupt.requested))
        if not taken:
            # Interrupted before the first step: take a record that says so.
            first = Try(wanted.bounds.start, "bracket")
            taken = [take(wanted, first, measure(first, wanted.samples))]
    return searched(wanted, taken)


def _why_unfound(done: Done | None) -> str:
    """Return what prevented a result that can be ranked; '' if nothing did."""
    if done is None:
        return "cut short"
    return done.why if isinstance(done, NoSafeLoad) and done.why != "none" else ""


def searched(plan: SearchPlan, taken: Sequence[StepResult]) -> SearchOutcome:
    """Return the result of a trial. Pure."""
    decided, done = deciding(plan, taken), outcome(plan, taken)
    found = done if isinstance(done, SafeLoad) else None
    steps = tuple(
        Step(each.record, {**labels(each), "step": str(number)})
        for number, each in enumerate(taken, 1)
        if each is not decided
    )
    above = "" if found is None or found.above is None else f"{found.above:.12g}"
    return SearchOutcome(
        record=decided.record,
        labels={
            **labels(decided),
            "clients": f"{found.load:.12g}" if found else "0",
            "unfound": _why_unfound(done),
            "above": above,
            "limited_by": limited_by(taken, found) if found else "",
            "result": sentence(plan, taken),
        },
        steps=steps,
        finished=done is not None,
    )
