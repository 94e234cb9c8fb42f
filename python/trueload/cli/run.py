"""A job on the command line: measures, saves, shows, and returns the exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from trueload.cli.search import run_search
from trueload.commands.host_duration import for_job, print_manifest
from trueload.commands.job import (
    Job,
    Saved,
    note_directions,
    note_recording,
    notes_of,
    report_shortfall,
    write_json,
)
from trueload.commands.options import check_writable
from trueload.commands.run import measure_job
from trueload.engines.engine import find_engine
from trueload.errors import ExitCode, unsaved
from trueload.interrupt import Interrupt
from trueload.metrics.exports import exporting
from trueload.record.schema import Record
from trueload.record.shortage import memory_fault
from trueload.record.thresholds import Crossed
from trueload.report.colour import write_lines
from trueload.report.export import measured_row, printed, result_json
from trueload.report.live import stop_key, watch
from trueload.report.result import repeated_lines, result_lines


def run_job(job: Job) -> int:
    """Measure, save and show; return the exit code."""
    if job.given.dry_run:
        print_manifest(for_job(job))
        return ExitCode.OK
    note_directions(job)
    if job.search is not None:
        return run_search(job, job.search)
    check_writable(job.given.json_path)
    announce = notes_of(job)
    find_engine()  # before a run begins in the store that could measure nothing
    note_recording(job)
    with (
        Interrupt() as interrupt,
        stop_key(interrupt.request, wanted=job.live),
        exporting(job.metrics, {"command": job.asked.kind}, interrupt, announce) as exports,
    ):
        seen = exports.beside(watch(live=job.live))
        done = measure_job(job, interrupt, watch=seen, announce=announce)
        code = exit_code(
            done.records, done.over, interrupted=interrupt.requested, strict=job.given.strict
        )
        try:
            whole = _show(job, done.records, done.over, done.saved)
        except OSError:
            # A terminal that hung up cannot be written to; what was measured is saved.
            if not interrupt.requested:
                raise
            return code
        return code if whole else unsaved(code)


def exit_code(
    records: Sequence[Record], over: Sequence[Crossed], *, interrupted: bool, strict: bool = False
) -> ExitCode:
    """Return the exit code of the command.

    If several apply, the first of 130, 71, 3, 4, 74, 1, 0 is taken.
    """
    if interrupted:
        return ExitCode.INTERRUPTED
    if any(memory_fault(record) for record in records):
        return ExitCode.MACHINE
    if all(record.connections.established == 0 for record in records):
        return ExitCode.NOTHING_MEASURED
    bad = {"invalid", "suspect"} if strict else {"invalid"}
    if any(record.verdict in bad for record in records):
        return ExitCode.INVALID
    return ExitCode.THRESHOLD if over else ExitCode.OK


def _show(job: Job, records: Sequence[Record], over: Sequence[Crossed], saved: Saved) -> bool:
    """Show the result; return whether all that was asked for is saved and written."""
    talk = job.talk()
    lines = result_lines(records[0]) if len(records) == 1 else repeated_lines(records)
    if saved.run_id:
        lines.append(f"{'saved':<13}{saved.run_id}   (trueload runs show {saved.run_id})")
    write_lines(talk, lines)
    whole = result_json(records, saved.run_id)
    unwritten = write_json(job.given.json_path, whole)
    rows = [measured_row(number, record) for number, record in enumerate(records, 1)]
    sys.stdout.write(printed(job.format, whole, saved.run_id, rows))
    for crossing in over:
        sys.stderr.write(f"threshold crossed: {crossing.sentence()}\n")
    report_shortfall(job, records)
    return saved.report_unsaved(unwritten)
