"""``import trueload``: the commands that measure, as functions.

How: arguments become the words of a command line (``cli.words``), which the command's own code
parses and runs. What it would print is returned as a typed result. So an option is declared once,
and there is one way to measure. Nothing is printed. A signal ends a measurement as on the command
line and what was measured is saved. Then the signal goes to the handler that was installed before:
Ctrl-C becomes a ``KeyboardInterrupt``. A function blocks until its result is there, also in a
thread and under a running asyncio loop. Nothing here needs the main thread or a loop.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from trueload.api.measure import OF_PRINTING, NothingMeasuredError, warn_unsaved
from trueload.api.options import AbOptions, SuiteOptions
from trueload.api.results.result import Result
from trueload.api.signatures import naming
from trueload.errors import ExitCode, UserError

if TYPE_CHECKING:
    from trueload.api.results.ab import AbResult
    from trueload.api.results.suite import SuiteResult
    from trueload.interrupt import Interrupt
    from trueload.store.rows import Run

_OF_SUITES = {
    **OF_PRINTING,
    "published": "trueload runs export RUN --published",
    "dry_run": "`trueload suite run NAME --dry-run` prints the plan",
}


@naming(AbOptions)
def ab(url_a: str, url_b: str, /, **options: Unpack[AbOptions]) -> AbResult:
    """Compare two servers by alternating pairs of trials: ``ab(url_a, url_b, duration=5)``.

    A side is a URL or a subject's name. Options are those of `trueload compare --help`, with ``_``
    for ``-``; ``repeat`` is the number of pairs. A subject that must be built first is reported on
    stderr, as by the command. Raises ``UserError``.
    """
    from trueload.api.body import with_json_body
    from trueload.api.results.ab import AbResult
    from trueload.commands.ab import measure_ab
    from trueload.commands.ab_options import read_ab
    from trueload.commands.command_line import understand
    from trueload.commands.output import announce, nothing_measured
    from trueload.engines.binary import find_engine
    from trueload.interrupt import Interrupt
    from trueload.metrics.exports import exporting
    from trueload.report.live import unwatched

    asked = with_json_body(options)
    understood = understand(("compare",), read_ab, (url_a, url_b), asked, OF_PRINTING)
    find_engine()
    job = understood.value.quietly(understood.words)
    interrupt = Interrupt()
    try:
        with (
            interrupt,
            exporting(job.jobs[0].metrics, {"command": "ab"}, interrupt, announce) as exports,
        ):
            done, saved = measure_ab(job, interrupt, watch=exports.beside(unwatched))
    finally:
        interrupt.hand_on()
    warn_unsaved(saved, stacklevel=4)
    for turn, record in done.taken:
        if record.connections.established == 0:
            why = nothing_measured(job.jobs["ab".index(turn.letter)], record)
            raise NothingMeasuredError(why, Result(records=(record,), run_id=saved.run_id))
    if not done.pairs:
        raise UserError("it was ended before a pair was complete", "measure again")
    return AbResult(done, saved.run_id)


@naming(SuiteOptions)
def suite(name: str | None = None, /, **options: Unpack[SuiteOptions]) -> SuiteResult:
    """Run a suite of the catalogue, or of a file: ``suite("http-servers", subjects=["go"])``.

    Options are those of `trueload suite run --help`, with ``_`` for ``-``. Progress is shown on
    stderr, as by the command. Raises ``UserError``.
    """
    from trueload.api.results.suite import SuiteResult
    from trueload.commands.command_line import understand
    from trueload.commands.suite import execute, start_suite
    from trueload.commands.suite_job import read_suite
    from trueload.suites.execute import Execution

    understood = understand(("suite", "run"), read_suite, (name,), options, _OF_SUITES)
    done: list[SuiteResult] = []
    asked: list[Interrupt] = []

    def finish(work: Execution, interrupt: Interrupt) -> int:
        asked.append(interrupt)
        run = execute(work, interrupt)
        done.append(SuiteResult.read(work.store, run))
        return ExitCode.OK

    try:
        start_suite(replace(understood.value, words=understood.words), finish)
    finally:
        for interrupt in asked:
            interrupt.hand_on()
    return done[0]


def runs() -> list[Run]:
    """Return every run in the store, oldest first."""
    from trueload.store.runs import Store

    with Store.open() as store:
        return store.runs()


def load(run: str = "last", /) -> Result | SuiteResult | AbResult:
    """Return a run of the store. Raises ``UserError``.

    ``run`` is its id, the start of its id, or ``last``.
    """
    from trueload.api.results.stored import load_run
    from trueload.store.runs import Store

    with Store.open() as store:
        return load_run(store, run)
