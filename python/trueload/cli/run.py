"""Doing a job: measure, as often as asked for, save, show; the exit code follows.

How: each trial is saved as soon as it has ended. Must not know how a trial works, or any protocol.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from trueload.cli.job import Job, Saved, check_writable, tell_nothing_measured, write_json
from trueload.cli.search import run_search
from trueload.engine import find_engine
from trueload.errors import ExitCode
from trueload.interrupt import Interrupt
from trueload.record import SCHEMA, Record
from trueload.report.live import live_view
from trueload.report.result import repeated_lines, result_lines
from trueload.server_files import files_note
from trueload.spec import repetition
from trueload.thresholds import Crossed, crossed
from trueload.trial import run_trial
from trueload.verdict import decide, worst_checks


def run_job(job: Job) -> int:
    """Measure, save, show; the exit code follows."""
    if job.search is not None:
        return run_search(job, job.search)
    check_writable(job.json_path)
    find_engine()  # before a run is begun in the store that could measure nothing
    with contextlib.ExitStack() as stack:
        interrupt = stack.enter_context(Interrupt())
        saved = stack.enter_context(Saved.begin(stack, job.kind, job.spec.url, save=job.save))
        spec = replace(job.spec, addresses=job.addresses())
        if note := files_note(spec):
            sys.stderr.write(f"{note}\n")
        records = []
        for number in range(1, job.repeat + 1):
            title = f"trueload {job.kind}" + (f"  {number}/{job.repeat}" if job.repeat > 1 else "")
            one = repetition(spec, number)
            with live_view(one, title) as on_progress:
                record = run_trial(one, on_progress=on_progress, interrupt=interrupt)
            saved.add(record)
            records.append(record)
            if interrupt.requested:
                break
        saved.end(interrupt.requested)
        over = crossed(job.thresholds, records)
        code = exit_code(records, over, interrupted=interrupt.requested, strict=job.strict)
        try:
            _show(job, records, over, saved)
        except OSError:
            # A terminal that hung up cannot be written to; what was measured is saved.
            if not interrupt.requested:
                raise
        return code


def exit_code(
    records: Sequence[Record], over: Sequence[Crossed], *, interrupted: bool, strict: bool = False
) -> ExitCode:
    """What the command ends with; where two apply, in this order: 130, 3, 4, 1, 0."""
    if interrupted:
        return ExitCode.INTERRUPTED
    if all(record.connections.established == 0 for record in records):
        return ExitCode.NOTHING_MEASURED
    bad = {"invalid", "suspect"} if strict else {"invalid"}
    if any(record.verdict in bad for record in records):
        return ExitCode.INVALID
    return ExitCode.THRESHOLD if over else ExitCode.OK


def result_json(records: Sequence[Record], run_id: str | None) -> dict[str, Any]:
    """One trial: its record. Several: one object with the worst of each check, and the trials."""
    if len(records) == 1:
        return records[0].model_dump(mode="json")
    checks = worst_checks(records)
    return {
        "schema": SCHEMA,
        "id": run_id or records[0].id,
        "started_at": records[0].started_at,
        "partial": any(record.partial for record in records),
        "verdict": decide(checks),
        "checks": [check.model_dump(mode="json") for check in checks],
        "trials": [record.model_dump(mode="json") for record in records],
    }


def _show(job: Job, records: Sequence[Record], over: Sequence[Crossed], saved: Saved) -> None:
    to_stdout = job.json_path is not None and str(job.json_path) == "-"
    talk = sys.stderr if to_stdout else sys.stdout
    lines = result_lines(records[0]) if len(records) == 1 else repeated_lines(records)
    if saved.run_id:
        lines.append(f"{'saved':<13}{saved.run_id}   (trueload runs show {saved.run_id})")
    talk.write("\n".join(lines) + "\n")
    talk.flush()
    if job.json_path is not None:
        write_json(job.json_path, result_json(records, saved.run_id))
    for crossing in over:
        sys.stderr.write(f"threshold crossed: {crossing.sentence()}\n")
    if all(record.connections.established == 0 for record in records):
        tell_nothing_measured(job, records[0])
    saved.tell()
