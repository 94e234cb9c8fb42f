"""A search on the command line: shows its steps as they end, and then its result."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from typing import Any

from trueload.commands.job import Job, Saved, notes_of, report_shortfall, write_json
from trueload.commands.options import check_writable
from trueload.commands.search import Searched, measure_search
from trueload.engines.engine import find_engine
from trueload.errors import unsaved
from trueload.interrupt import Interrupt
from trueload.metrics.exports import exporting
from trueload.report.colour import write_lines
from trueload.report.export import measured_row, printed
from trueload.report.live import is_terminal, stop_key, watch
from trueload.search.broadcast_rows import is_published, shootout_line
from trueload.search.execute import SearchPlan, Taken
from trueload.search.result import (
    exit_code,
    labels,
    plan_json,
    search_json,
    search_lines,
    step_header,
    step_line,
)


def run_search(job: Job, plan: SearchPlan) -> int:
    """Search, save and show; return the exit code."""
    check_writable(job.given.json_path)
    find_engine()
    announce = notes_of(job)
    with (
        Interrupt() as interrupt,
        stop_key(interrupt.request, wanted=job.live),
        exporting(job.metrics, {"command": job.asked.kind}, interrupt, announce) as exports,
    ):

        def on_step(taken: Sequence[Taken]) -> None:
            _report_step(job, plan, taken)

        seen = exports.beside(watch(live=job.live))
        done = measure_search(job, plan, interrupt, watch=seen, on_step=on_step)
        code = exit_code(
            plan,
            done.taken,
            crossed=bool(done.over),
            interrupted=interrupt.requested,
            strict=job.given.strict,
        )
        with contextlib.suppress(*([OSError] if interrupt.requested else [])):
            if not _show(job, plan, done, interrupted=interrupt.requested):
                code = unsaved(code)
        return code


def _report_step(job: Job, plan: SearchPlan, taken: Sequence[Taken]) -> None:
    """Show a step that has ended, in the published form if asked for."""
    last = taken[-1]
    if job.format == "shootout" and is_published(last):
        sys.stdout.write(shootout_line(last) + "\n")
        sys.stdout.flush()
    if is_terminal(sys.stderr) and not job.given.quiet:
        head = step_header(plan) if len(taken) == 1 else []
        with contextlib.suppress(OSError):
            sys.stderr.write("\n".join([*head, step_line(plan, last)]) + "\n")


def _show(job: Job, plan: SearchPlan, done: Searched, *, interrupted: bool) -> bool:
    """Show the result; return whether all that was asked for is saved and written."""
    taken, saved = done.taken, done.saved
    talk = job.talk()
    seen = is_terminal(sys.stderr) and talk.isatty()
    lines = search_lines(plan, taken, steps=not seen, by_user=interrupted)
    if saved.run_id:
        lines.append(f"{'saved':<13}{saved.run_id}   (trueload runs show {saved.run_id})")
    write_lines(talk, lines)
    whole = _json(plan, taken, saved, interrupted=interrupted)
    unwritten = write_json(job.given.json_path, whole)
    rows = [measured_row(number, each.record, labels(each)) for number, each in enumerate(taken, 1)]
    sys.stdout.write(printed(job.format, whole, saved.run_id, rows))
    if taken:
        report_shortfall(job, [taken[0].record])
    for crossing in done.over:
        sys.stderr.write(f"threshold crossed: {crossing.sentence()}\n")
    return saved.report_unsaved(unwritten)


def _json(
    plan: SearchPlan, taken: Sequence[Taken], saved: Saved, *, interrupted: bool
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
