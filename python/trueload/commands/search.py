"""``--limit``: searches the largest load that keeps to it, for any command that measures.

Each step is a trial of its own, saved as soon as it has ended.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from trueload.commands.host_duration import for_job
from trueload.commands.job import Job, JobResult, RunWriter
from trueload.commands.locked import locked, served
from trueload.commands.output import (
    at_terminal,
    code_after,
    notes_of,
    report_rulings,
    report_shortfall,
)
from trueload.commands.result_files import write_result
from trueload.engines.binary import find_engine
from trueload.interrupt import Interrupt
from trueload.places.open import open_places
from trueload.record.certainty import rule
from trueload.record.schema import Record
from trueload.report.colour import write_lines
from trueload.report.export import measured_row, printed
from trueload.report.heading import search_heading
from trueload.report.live import Watch, is_terminal, unwatched
from trueload.search.broadcast_rows import is_published, shootout_line
from trueload.search.crowd import Crowd
from trueload.search.decide import SafeLoad, Try
from trueload.search.execute import SearchPlan, StepResult, outcome, search, spec_at
from trueload.search.result import (
    deciding,
    exit_code,
    labels,
    plan_json,
    search_json,
    search_lines,
    sentence,
    step_header,
    step_lines,
)
from trueload.trial.run import ShortageError, run_trial
from trueload.trial.spec import TrialSpec, repetition


def measure_search(
    job: Job,
    plan: SearchPlan,
    interrupt: Interrupt,
    *,
    watch: Watch = unwatched,
    on_step: Callable[[Sequence[StepResult]], object] = lambda taken: None,
) -> JobResult:
    """Search, saving each step.

    Shows nothing except through ``watch`` and, after each step, ``on_step``. Raises ``UserError``.
    """
    with contextlib.ExitStack() as stack:
        hosts = stack.enter_context(
            open_places(
                for_job(job),
                find_engine(),
                announce=notes_of(job),
                stopped=lambda: interrupt.requested,
            )
        )
        what = f"{job.workload.kind} {job.workload.url}"
        stack.enter_context(locked(what, job.placement, hosts, interrupt, announce=notes_of(job)))
        spec = replace(job.resolved(), hosts=hosts)
        spec = stack.enter_context(served(job, spec))
        stored = {**plan_json(plan), "of": job.workload.kind}
        saved = stack.enter_context(
            RunWriter.begin(stack, job, "search", job.spec.url, plan=stored)
        )
        taken: list[StepResult] = []
        measure = _measure(plan, spec, interrupt, stack, watch, taken)
        for each in search(plan, measure, lambda: interrupt.requested):
            found = labels(each)
            saved.add(each.record, key=f"{found['stage']} {found['load']}", labels=found)
            taken.append(each)
            on_step(taken)
        saved.end(interrupt.requested)
        records = (deciding(plan, taken).record,) if taken else ()
        rulings = tuple(rule(job.thresholds, records)) if taken else ()
    return JobResult(records, rulings, saved, taken=tuple(taken))


def _measure(
    plan: SearchPlan,
    spec: TrialSpec,
    interrupt: Interrupt,
    stack: contextlib.ExitStack,
    watch: Watch,
    taken: Sequence[StepResult],
) -> Callable[[Try, int], Record]:
    """Return the function that measures a step.

    A step is a trial of its own or, for a broadcast, a window over the clients that are there. The
    caller appends each step to ``taken``.
    """
    steps = itertools.count(1)

    def labels_of(following: Try) -> dict[str, str]:
        load = f"{following.load:.12g} {plan.unit}"
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


def run_search(job: Job, plan: SearchPlan) -> int:
    """Search, save and show; return the exit code."""
    with at_terminal(job, job.workload.kind) as (interrupt, watch, show_report):

        def on_step(taken: Sequence[StepResult]) -> None:
            _report_step(job, plan, taken)

        done = measure_search(job, plan, interrupt, watch=watch, on_step=on_step)
        interrupted = interrupt.requested
        code = exit_code(
            plan,
            done.taken,
            rulings=done.rulings,
            interrupted=interrupted,
            strict=job.given.strict,
        )
        show = partial(_show, job, plan, done, interrupted=interrupted)
        code = code_after(show, code, interrupted=interrupted)
        show_report(done.saved.run_id)
        return code


def _report_step(job: Job, plan: SearchPlan, taken: Sequence[StepResult]) -> None:
    """Show a step that has ended, in the published form if asked for."""
    last = taken[-1]
    if job.format == "shootout" and is_published(last):
        sys.stdout.write(shootout_line(last) + "\n")
        sys.stdout.flush()
    if is_terminal(sys.stderr) and not job.given.quiet:
        head = step_header(plan) if len(taken) == 1 else []
        with contextlib.suppress(OSError):
            sys.stderr.write("\n".join([*head, *step_lines(plan, last)]) + "\n")


def _show(job: Job, plan: SearchPlan, done: JobResult, *, interrupted: bool) -> bool:
    """Show the result; return whether all that was asked for is saved and written."""
    taken, saved = done.taken, done.saved
    talk = job.talk()
    seen = is_terminal(sys.stderr) and talk.isatty()
    lines = search_lines(plan, taken, steps=not seen, by_user=interrupted)
    write_lines(talk, [*lines, *saved.lines()])
    whole = _json(plan, taken, saved, interrupted=interrupted)
    rows = [measured_row(number, each.record, labels(each)) for number, each in enumerate(taken, 1)]
    name, limit = f"trueload {job.workload.kind} {job.spec.url}", f"--limit {plan.limit.text}"
    told = [sentence(plan, taken)] if taken else ["nothing was tried"]
    goal = (limit, bool(taken) and isinstance(outcome(plan, taken), SafeLoad))
    unwritten = write_result(
        job.given, saved, name, whole, rows, done.rulings, told=told, goal=goal
    )
    sys.stdout.write(printed(job.format, whole, saved.run_id, rows))
    if taken:
        report_shortfall(job, [taken[0].record])
    report_rulings(done.rulings)
    return saved.report_unsaved(*unwritten)


def _json(
    plan: SearchPlan, taken: Sequence[StepResult], saved: RunWriter, *, interrupted: bool
) -> dict[str, Any]:
    if taken:
        return search_json(plan, taken, saved.run_id, interrupted=interrupted)
    return {
        "schema": 1,
        "id": saved.run_id,
        "partial": True,
        "verdict": "invalid",
        "checks": [],
        "search": plan_json(plan),
        "result": None,
        "steps": [],
    }
