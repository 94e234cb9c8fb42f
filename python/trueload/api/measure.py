"""Runs the job of a command for a function, shows nothing, and returns a typed result."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trueload.api.results.result import Result, Search
from trueload.errors import UserError

if TYPE_CHECKING:
    from trueload.commands.command_line import CommandLine
    from trueload.commands.job import Job, RunWriter
    from trueload.interrupt import Interrupt
    from trueload.record.certainty import Ruling

# Options of what is printed and where; a caller of a function cannot use them.
OF_PRINTING = {
    "json": "call .to_dict() of the result; to send a body as JSON use body={…}",
    "output": "`trueload report RUN` and `trueload runs export RUN` write files",
    "format": "print the result, or call .to_dict() of it",
    "quiet": "leave it out: nothing is printed",
    "no_live": "leave it out: nothing is printed",
    "dry_run": "leave it out: nothing is printed",
    "live": "leave it out: nothing is printed",
    "web": "leave it out: it is for the command line",
}


class NothingMeasuredError(UserError):
    """No connection became usable; ``result`` holds what is known all the same."""

    def __init__(self, why: UserError, result: Result) -> None:
        super().__init__(why.message, why.hint, why.exit_code)
        self.result = result


def load_server(protocol: str, where: str | None, options: Mapping[str, Any]) -> Result:
    """Load a server, as the command of that protocol does."""
    from trueload.commands.command_line import understand
    from trueload.commands.protocols import reader_of_job

    read = reader_of_job(protocol)
    return _measured(understand((protocol,), read, (where,), options, OF_PRINTING))


def _measured(understood: CommandLine[Job]) -> Result:
    """Run a job as the command does, without showing anything."""
    from trueload.commands.output import nothing_measured
    from trueload.engines.binary import find_engine
    from trueload.interrupt import Interrupt

    find_engine()
    job = replace(understood.value, words=understood.words)
    interrupt = Interrupt()
    try:
        with interrupt:
            result = _tried(job, interrupt)
    finally:
        interrupt.hand_on()
    if result is None:
        raise UserError("it was ended before anything was measured", "measure again")
    if all(record.connections.established == 0 for record in result.records):
        raise NothingMeasuredError(nothing_measured(job, result.records[0]), result)
    return result


def _tried(job: Job, interrupt: Interrupt) -> Result | None:
    """Measure or search; None if a search was ended before its first step."""
    from trueload.commands.run import measure_job
    from trueload.metrics.exports import exporting
    from trueload.report.live import unwatched

    notes: list[str] = []
    with exporting(job.metrics, {"command": job.workload.kind}, interrupt, notes.append) as exports:
        watch = exports.beside(unwatched)
        if job.search is None:
            done = measure_job(job, interrupt, watch=watch, announce=notes.append)
        else:
            from trueload.commands.search import measure_search  # late: most runs are none

            done = measure_search(job, job.search, interrupt, watch=watch)
    warn_unsaved(done.saved)
    if done.unwritten is not None:
        warnings.warn(f"{done.unwritten.message}; {done.unwritten.hint}", stacklevel=6)
    if not done.records:
        return None
    return Result(
        records=done.records,
        run_id=done.saved.run_id,
        crossed=_sentences(done.rulings, "crossed"),
        undecided=_sentences(done.rulings, "undecided"),
        notes=tuple(notes),
        search=None if job.search is None else Search(job.search, done.taken),
    )


def _sentences(rulings: Iterable[Ruling], state: str) -> tuple[str, ...]:
    return tuple(ruling.why for ruling in rulings if ruling.state == state)


def warn_unsaved(saved: RunWriter, stacklevel: int = 7) -> None:
    """Warn of a store that failed during the run; the result is complete all the same."""
    if saved.error is not None:
        warnings.warn(f"{saved.error.message}; {saved.error.hint}", stacklevel=stacklevel)
