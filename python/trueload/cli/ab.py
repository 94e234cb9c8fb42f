"""``trueload compare URL_A URL_B``: tells which of two servers is better, by alternating pairs.

How: ``commands.ab`` measures, and this shows.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from trueload.commands.ab_options import read_ab
from trueload.commands.flags import command
from trueload.commands.options import check_writable
from trueload.errors import ExitCode
from trueload.store.rows import Row

if TYPE_CHECKING:
    from trueload.commands.ab import AbJob
    from trueload.commands.job import RunWriter
    from trueload.record.schema import Record
    from trueload.record.turn import Turn
    from trueload.report.ab import PairedTrials

HELP = """Compare two servers by pairs of trials, in random order within each pair.

The result is the median, over the pairs, of the ratio B to A of each figure, with the interval in
which it lies. --repeat sets the number of pairs; the default is 6.

A side is a URL, or the name of a subject in the catalogue. A subject is restarted for each of
its trials. It is sent the request of its contract, with the headers given here. With --arrivals
poisson, each pair has its own arrivals, the same for both sides. --targets and --curl hold for both
sides. The lines of --targets have a path alone; with --curl, the URL of a side has no path.

Example: trueload compare http://127.0.0.1:8080/ http://127.0.0.1:8081/ -c 64 -d 5s
"""


def register(app: typer.Typer) -> None:
    app.command("compare", help=HELP)(command(read_ab, run_ab))


def run_ab(job: AbJob) -> int:
    """Measure both sides, save and show; return the exit code."""
    from trueload.commands.ab import measure_ab
    from trueload.commands.host_duration import for_job, print_manifest
    from trueload.commands.output import at_terminal, code_after, exit_code
    from trueload.engines.binary import find_engine

    first = job.jobs[0]
    if first.given.dry_run:
        print_manifest(for_job(first, 2 * job.pairs))
        return ExitCode.OK
    check_writable(first.given.json_path)
    find_engine()
    with at_terminal(first, "ab") as (interrupt, watch, show_report):
        done, saved = measure_ab(job, interrupt, watch=watch)
        strict, interrupted = first.given.strict, interrupt.requested
        code = exit_code(done.records, done.rulings, interrupted=interrupted, strict=strict)
        code = code_after(lambda: _show(job, done, saved), code, interrupted=interrupted)
        show_report(saved.run_id)
        return code


def _show(job: AbJob, done: PairedTrials, saved: RunWriter) -> bool:
    """Show the result; return whether all that was asked for is saved and written."""
    from trueload.commands.output import report_rulings, report_shortfall, write_json
    from trueload.commands.result_files import write_result
    from trueload.report.ab import compared, paired_json, paired_lines
    from trueload.report.colour import write_lines
    from trueload.report.compare import ratio_grid, render
    from trueload.report.export.markdown import markdown_lines

    first = job.jobs[0]
    as_text = job.format == "text"
    talk = replace(first, format=job.format).talk()
    write_lines(talk, [*paired_lines(done), *saved.lines()])
    whole = paired_json(done, saved.run_id)
    unwritten = write_result(
        first.given,
        saved,
        f"{done.names[1]} against {done.names[0]}",
        whole,
        [_row(number, done, turn, record) for number, (turn, record) in enumerate(done.taken, 1)],
        done.rulings,
        table=markdown_lines(ratio_grid(done.ratios)),
    )
    if job.format == "json":
        write_json(Path("-"), whole)
    elif not as_text:
        sys.stdout.write(render(compared(done), job.format))
    report_rulings(done.rulings)
    for turn, record in done.taken:
        report_shortfall(job.jobs["ab".index(turn.letter)], [record])
    return saved.report_unsaved(*unwritten)


def _row(number: int, done: PairedTrials, turn: Turn, record: Record) -> Row:
    from trueload.report.export import measured_row

    subject = done.names["ab".index(turn.letter)]
    labels = {"subject": subject, "side": turn.letter, "pair": str(turn.pair)}
    return measured_row(number, record, labels)
