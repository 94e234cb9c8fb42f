"""`trueload suite`: runs a suite, or continues one.

How: what is shown is read back from the store, so that what is printed is what was saved.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import typer

from trueload.cli.suite_list import list_suites
from trueload.cli.suite_new import new_suite
from trueload.commands.flags import command
from trueload.commands.options import check_writable
from trueload.commands.suite_job import STDOUT, SuiteJob, read_suite
from trueload.errors import ExitCode, UserError, unsaved
from trueload.files.outputs import text_output
from trueload.interrupt import Interrupt
from trueload.store.rows import Run
from trueload.store.runs import StoreError

if TYPE_CHECKING:
    from trueload.report.export.junit import Case, Kind
    from trueload.suites.execute import Execution
    from trueload.suites.load_tables import LoadTable


def register(app: typer.Typer) -> None:
    suite = typer.Typer(help="Compare many subjects on the same work.")
    suite.command("list")(list_suites)
    suite.command("new")(new_suite)
    suite.command("run")(command(read_suite, run_suite))
    app.add_typer(suite, name="suite")


def run_suite(job: SuiteJob) -> int:
    """Execute, save and show; return the exit code."""
    from trueload.commands.suite import start_suite

    check_writable(job.json_path)  # before hours of measuring
    return start_suite(job, lambda work, interrupt: _finish(work, interrupt, job))


def _finish(work: Execution, interrupt: Interrupt, shown: SuiteJob) -> int:
    """Execute the suite and show its result; return the exit code."""
    from trueload.commands.suite import execute, talk
    from trueload.suites.execute import HostsLostError

    try:
        run = execute(work, interrupt)
    except (StoreError, HostsLostError):
        # Show what had been saved until then; an unreadable store has nothing to show.
        with contextlib.suppress(StoreError):
            _show_saved(work, work.run, shown)
        raise
    tables, unwritten = _show_saved(work, run, shown)
    code = exit_code(tables) if run.state == "finished" else ExitCode.INTERRUPTED
    if run.state == "finished":
        talk(f"saved: trueload runs show {run.id}")
    else:
        talk(f"interrupted; go on with: trueload suite run --resume {run.id}")
    if unwritten is not None:
        raise UserError(unwritten.message, unwritten.hint, unsaved(code))
    return code


def _show_saved(
    work: Execution, run: Run, shown: SuiteJob
) -> tuple[list[LoadTable], UserError | None]:
    """Return the tables, and the error if their JSON could not be written."""
    from trueload.commands.suite import talk
    from trueload.report.suite_json import suite_json
    from trueload.suites.load_tables import tabulate
    from trueload.suites.summary import collect

    collected = collect(work.plan, work.store.rows(run))
    tables = tabulate(collected, work.plan)
    for line in collected.damaged:
        talk(f"note: {line}")
    if collected.moved:
        talk(f"note: {collected.moved}")

    def pieces() -> Iterable[str]:
        rows = work.store.rows(run)
        return suite_json(run, work.plan, tables, collected.checks, collected.damaged, rows)

    unwritten = [_show(tables, pieces, shown), *_write_files(work, run, tables, pieces, shown)]
    return tables, next(filter(None, unwritten), None)


def _write_files(
    work: Execution,
    run: Run,
    tables: Sequence[LoadTable],
    pieces: Callable[[], Iterable[str]],
    shown: SuiteJob,
) -> list[UserError]:
    """Write the files of ``-o``: a summary has the first table, and what is not ranked."""
    from trueload.commands.result_files import Written, write_files
    from trueload.report import table
    from trueload.report.export.markdown import markdown_lines
    from trueload.suites.load_tables import run_verdict

    if not shown.given.output:
        return []
    first, *others = tables
    apart = [f"{s.cell.subject.name}: {s.why}" for s in (*first.invalid, *first.unmeasured)]
    more = [f"{len(others)} more tables, after {first.title}"] if others else []
    rows = table.grid(first, first.ranked, published=False)
    result = Written(
        title=f"{run.title}: {run_verdict(tables) or 'nothing measured'}",
        told=[*more, *apart],
        table=list(markdown_lines(rows)) if first.ranked else [],
        cases=list(_cases(tables)),
        whole=pieces,
        rows=lambda: work.store.rows(run),
        run_id=run.id,
    )
    return write_files(shown.given.output, result)


def _cases(tables: Iterable[LoadTable]) -> Iterator[Case]:
    """A case for each subject under each load: traps and what cannot be measured are skipped."""
    from trueload.report.export.junit import Case

    kinds: dict[str, Kind] = {"invalid": "failure", "failed": "error"}
    for one in tables:
        for each in one.everything:
            outcome = each.verdict or each.outcome
            left_out = each.trap or outcome in ("skipped", "unsupported")
            kind = "skipped" if left_out else kinds.get(outcome)
            yield Case(one.title, each.cell.subject.name, kind, each.why, outcome)


def exit_code(tables: Iterable[LoadTable]) -> ExitCode:
    """Return the exit code by the rows of the tables. Pure.

    It is 0 if a row is ranked, 4 if all measured rows are invalid, and 3 if none was measured.
    """
    tables = list(tables)
    if any(each.ranked for each in tables):
        return ExitCode.OK
    if any(each.invalid or each.traps for each in tables):
        return ExitCode.INVALID
    return ExitCode.NOTHING_MEASURED


def _show(
    tables: list[LoadTable], pieces: Callable[[], Iterable[str]], shown: SuiteJob
) -> UserError | None:
    """Show the tables; return the error if the requested file could not be written."""
    from trueload.report import apachebench, table
    from trueload.report.export.csv import csv_lines

    unwritten = None
    if shown.json_path == STDOUT:
        sys.stdout.writelines(pieces())
        return None
    if shown.json_path is not None:
        try:
            with text_output(shown.json_path) as file:
                file.writelines(pieces())
        except StoreError:
            raise
        except UserError as error:
            unwritten = error
    if shown.given.format == "csv":
        sheet = table.sheet(tables, published=shown.given.published)
        sys.stdout.writelines(csv_lines(sheet))
    elif shown.given.format == "markdown":
        sys.stdout.write(table.markdown(tables, published=shown.given.published))
        sys.stdout.write(apachebench.markdown_text(tables))
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        sys.stdout.write(table.text(tables, width=width, published=shown.given.published))
        if report := apachebench.report_text(tables):
            sys.stdout.write(f"\n{report}")
    sys.stdout.flush()
    return unwritten
