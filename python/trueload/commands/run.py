"""Carries out a job: measures as often as asked for, and saves.

How: each trial is saved as soon as it has ended.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace

from trueload.commands.job import Job, Saved
from trueload.commands.open_hosts import open_now
from trueload.commands.server_place import with_server
from trueload.interrupt import Interrupt
from trueload.record.schema import Record
from trueload.record.thresholds import Crossed, crossed
from trueload.report.heading import Heading
from trueload.report.live import Watch, unwatched
from trueload.trial.run import run_trial
from trueload.trial.server_files import files_note
from trueload.trial.spec import repetition


@dataclass(frozen=True)
class Measured:
    """The result of a job: its trials, in order, and the thresholds that they crossed."""

    records: tuple[Record, ...]
    over: tuple[Crossed, ...]
    saved: Saved


def measure_job(
    job: Job, interrupt: Interrupt, *, watch: Watch = unwatched, announce: Callable[[str], object]
) -> Measured:
    """Measure as often as asked for, saving each trial.

    Shows nothing except through ``watch`` and, beforehand, ``announce``. Raises ``UserError``.
    """
    with contextlib.ExitStack() as stack:
        hosts, late = stack.enter_context(open_now(job, announce, interrupt))
        spec = replace(job.resolved(), hosts=hosts, late=late)
        spec = stack.enter_context(with_server(job, spec))
        saved = stack.enter_context(Saved.begin(stack, job, job.asked.kind, job.spec.url))
        if note := files_note(spec):
            announce(note)
        records = []
        for number in range(1, job.repeat + 1):
            heading = Heading(f"trueload {job.asked.kind} {spec.url}", number, job.repeat)
            one = repetition(spec, number)
            with watch(one, heading, {"trial": str(number)}) as on_progress:
                record = run_trial(one, on_progress=on_progress, interrupt=interrupt)
            saved.add(record)
            records.append(record)
            if interrupt.requested:
                break
        saved.end(interrupt.requested)
    return Measured(tuple(records), tuple(crossed(job.thresholds, records)), saved)
