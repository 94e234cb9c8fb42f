"""The way of one run, from its options to its result: to learn how trueload works, begin here.

`trueload http URL` reads its options into a ``Job`` (`measure.make_job`), checked as a whole before
anything is sent; `run_job` does it. `trueload compare`, `suite run` and searches differ in what
they measure next; each trial of theirs is the same.

1. `places.open` opens the hosts of the load, `locked` waits for another run that measures there,
   `server_place` starts a server if one is asked for, and `store.runs` begins a run.
2. `trial.run` runs a trial: it makes the engine's plan (`trial.plan`), starts the engines
   (`engines.launch`), waits for the connections, and follows the warm-up and the window. What the
   engines say meanwhile, and samples of the server and the machine, are an ``Observation``.
3. `assemble.trial` makes the record of it, its figures by `record`, and `verdict` judges whether
   they can be trusted.
4. The store keeps the record, and `report` shows it.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from dataclasses import replace

from trueload.commands.host_duration import for_job, print_manifest
from trueload.commands.job import Job, JobResult, RunWriter
from trueload.commands.locked import locked, served
from trueload.commands.options import check_writable
from trueload.commands.output import (
    at_terminal,
    code_after,
    exit_code,
    note_directions,
    note_recording,
    notes_of,
    report_rulings,
    report_shortfall,
)
from trueload.commands.request_log import write_request_log
from trueload.commands.result_files import write_result
from trueload.engines.binary import find_engine
from trueload.errors import ExitCode
from trueload.interrupt import Interrupt
from trueload.places.open import open_first
from trueload.record.certainty import rule
from trueload.report.colour import write_lines
from trueload.report.export import measured_row, printed
from trueload.report.export.json import result_json
from trueload.report.heading import Heading
from trueload.report.live import Watch, unwatched
from trueload.report.result import repeated_lines, result_lines
from trueload.trial.run import run_trial
from trueload.trial.server_files import files_note
from trueload.trial.spec import repetition


def run_job(job: Job) -> int:
    """Measure, save and show; return the exit code."""
    if job.given.dry_run:
        print_manifest(for_job(job))
        return ExitCode.OK
    note_directions(job)
    check_writable(job.given.json_path)
    find_engine()  # before a run begins in the store that could measure nothing
    if job.search is not None:
        from trueload.commands.search import run_search  # imported late: most runs are none

        return run_search(job, job.search)
    note_recording(job)
    with at_terminal(job, job.workload.kind) as (interrupt, watch, show_report):
        done = measure_job(job, interrupt, watch=watch, announce=notes_of(job))
        strict, interrupted = job.given.strict, interrupt.requested
        code = exit_code(done.records, done.rulings, interrupted=interrupted, strict=strict)
        code = code_after(lambda: _show(job, done), code, interrupted=interrupted)
        show_report(done.saved.run_id)
        return code


def measure_job(
    job: Job, interrupt: Interrupt, *, watch: Watch = unwatched, announce: Callable[[str], object]
) -> JobResult:
    """Measure as often as asked for, saving each trial.

    Shows nothing except through ``watch`` and, beforehand, ``announce``. Raises ``UserError``.
    """
    with contextlib.ExitStack() as stack:
        hosts, late = stack.enter_context(
            open_first(
                for_job(job), find_engine(), announce=announce, stopped=lambda: interrupt.requested
            )
        )
        what = f"{job.workload.kind} {job.workload.url}"
        stack.enter_context(locked(what, job.placement, hosts, interrupt, announce=notes_of(job)))
        spec = replace(job.resolved(), hosts=hosts, late=late)
        spec = stack.enter_context(served(job, spec))
        saved = stack.enter_context(RunWriter.begin(stack, job, job.workload.kind, job.spec.url))
        if note := files_note(spec):
            announce(note)
        records = []
        for number in range(1, job.repeat + 1):
            heading = Heading(f"trueload {job.workload.kind} {spec.url}", number, job.repeat)
            one = repetition(spec, number)
            with watch(one, heading, {"trial": str(number)}) as on_progress:
                record = run_trial(one, on_progress=on_progress, interrupt=interrupt)
            saved.add(record)
            records.append(record)
            if interrupt.requested:
                break
        saved.end(interrupt.requested)
    path = job.workload.request_log
    unwritten = write_request_log(path, spec.request_log, spec.traffic, records[0])
    return JobResult(tuple(records), tuple(rule(job.thresholds, records)), saved, unwritten)


def _show(job: Job, done: JobResult) -> bool:
    """Show the result; return whether all that was asked for is saved and written."""
    records, saved = done.records, done.saved
    lines = result_lines(records[0]) if len(records) == 1 else repeated_lines(records)
    write_lines(job.talk(), [*lines, *saved.lines()])
    whole = result_json(records, saved.run_id)
    rows = [measured_row(number, record) for number, record in enumerate(records, 1)]
    name = f"trueload {job.workload.kind} {job.spec.url}"
    unwritten = write_result(job.given, saved, name, whole, rows, done.rulings)
    sys.stdout.write(printed(job.format, whole, saved.run_id, rows))
    report_rulings(done.rulings)
    report_shortfall(job, records)
    return saved.report_unsaved(done.unwritten, *unwritten)
