"""``trueload runs``: what has been measured, kept in the store.

Runs are named by their id, a prefix that only one has, a tag, or ``last``.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from trueload.cli import compare, runs_delete
from trueload.commands.declarations import with_options
from trueload.commands.measure_options import ShowOptions
from trueload.commands.options import AsJsonOption, OutputOption, check_writable
from trueload.commands.stored_runs import run_argument
from trueload.errors import ExitCode, UserError
from trueload.files.outputs import text_output
from trueload.record.bound import at_least, verdict_text
from trueload.record.head import RecordHead
from trueload.report.grid import Grid, text_lines
from trueload.report.quantile import quantile_text
from trueload.store.rows import DamagedRow, Row, Run
from trueload.store.runs import Store
from trueload.text import folded, plain
from trueload.units import format_count

if TYPE_CHECKING:
    from trueload.record.schema import Record
    from trueload.report.export import Format
    from trueload.suites.load_tables import LoadTable

RunArgument = Annotated[
    str, run_argument("RUN", "Run to use, by id, start of its id, tag, or last.")
]

WhyOption = Annotated[
    bool, typer.Option("--why", help="Explain each check, with what to do about it.")
]
CommandOption = Annotated[
    bool, typer.Option("--command", help="Print only the command that repeats the run.")
]
OF_SEVERAL = ("suite", "search", "ab")
"""Kinds of runs whose trials differ, so that a median says nothing."""
TRIALS_MAX = 100  # more would make the list slow
LISTED = ("run", "kind", "rows", "state", "throughput", "p99", "verdict", "what")


class ExportFormat(StrEnum):
    """Formats of ``runs export``."""

    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    HOSTS = "hosts"
    MARKDOWN = "markdown"
    PARQUET = "parquet"
    HGRM = "hgrm"
    TEXT = "text"
    HTML = "html"


OF_PUBLISHED = (ExportFormat.TEXT, ExportFormat.CSV, ExportFormat.HTML)
FormatOption = Annotated[
    ExportFormat | None,
    typer.Option(
        "--format",
        help=(
            "Output format: text and html only with --published, csv always, the others only"
            " without it; hosts is CSV with a row per host of each trial.  [default: json; text"
            " with --published]"
        ),
    ),
]
PublishedOption = Annotated[
    bool,
    typer.Option(
        "--published",
        help=(
            "Write a suite in the columns of its published source, with the published"
            " figures beside ours."
        ),
    ),
]


def register(app: typer.Typer) -> None:
    runs = typer.Typer(help="List, show, compare, export and delete stored runs.")
    runs.command("list")(list_runs)
    runs.command("show")(show_run)
    runs.command("tag")(tag_run)
    runs.command("export")(export_run)
    runs.command("diff")(compare.compare_runs)
    runs_delete.register(runs)
    app.add_typer(runs, name="runs")


def list_runs(as_json: AsJsonOption = False) -> int:
    """List the stored runs, the newest first; of several trials the medians.

    Example: trueload runs list
    """
    with Store.open() as store:
        runs, damaged = store.runs(), store.damaged_runs()
        if as_json:
            from trueload.report.export.json import run_json  # imported late, as all below

            sys.stdout.write(json.dumps([run_json(run) for run in runs]) + "\n")
        elif not runs and not damaged:
            sys.stderr.write("nothing has been measured yet\n")
        else:
            heads, tags = store.heads(), store.tags()
            cells = tuple(
                _run_cells(store, run, heads.get(run.seq), tags) for run in reversed(runs)
            )
            listed = text_lines(Grid(LISTED, cells))
            sys.stdout.writelines(f"{line}\n" for line in listed)
        _report_damage(store, damaged)
    return ExitCode.OK


def _run_cells(
    store: Store, run: Run, head: RecordHead | None, tags: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the cells in the order of ``LISTED``; figures only if the trials are alike."""
    shown = ("", "", "")
    if head is not None:
        per_s = head.ok_per_s
        rate = "" if per_s is None else at_least(f"{format_count(per_s)}/s", head.lower_bound)
        p99 = quantile_text(head.latency_ns.at("p99"))
        shown = (rate, p99, verdict_text(head.verdict, head.lower_bound))
    elif run.kind not in OF_SEVERAL and 1 < run.row_count <= TRIALS_MAX:
        shown = _medians([row.record for row in store.rows(run) if isinstance(row, Row)])
    names = "".join(f"[{name}] " for name, of in tags.items() if of == run.id)
    what = f"{names}{plain(run.title, 80)}"
    kind = "compare" if run.kind == "ab" else run.kind
    return (run.id, kind, str(run.row_count), run.state, *shown, what)


def _medians(records: Sequence[Record | None]) -> tuple[str, str, str]:
    """The cells of repeated trials."""
    from trueload.report.times import figure_text
    from trueload.suites.figures import figures as figures_of
    from trueload.suites.figures import together
    from trueload.verdict import decide, is_lower_bound, worst_checks

    found = [record for record in records if record is not None]
    if not found:
        return ("", "", "")
    checks, middle = worst_checks(found), together([figures_of(record, {}) for record in found])
    bound, per_s = is_lower_bound(checks), middle.ok_per_s
    rate = "" if per_s is None else at_least(f"{format_count(per_s)}/s", bound)
    return rate, figure_text(middle, "p99"), verdict_text(decide(checks), bound)


def tag_run(
    run: RunArgument,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help=("Name to give, such as baseline or v1.2."))
    ] = "",
    delete: Annotated[
        bool,
        typer.Option("--delete", help=("Remove the name that RUN gives; the run itself stays.")),
    ] = False,
) -> int:
    """Give a run a name that works wherever a run is asked for. If another run has that name, the
    name moves to this one.

    Example: trueload runs tag last baseline
    """
    if delete == bool(name):
        raise UserError(
            "either a run and a name, or --delete and a name", "trueload runs tag last baseline"
        )
    with Store.open() as store:
        if delete:
            store.untag(run)
            return ExitCode.OK
        found, before = store.find_run(run), store.tags().get(name)
        store.tag(found, name)
    instead = "" if before in (None, found.id) else f", no longer {before}"
    sys.stdout.write(f"{name} is {found.id}{instead}\n")
    return ExitCode.OK


@with_options(ShowOptions)
def show_run(
    run: RunArgument,
    given: ShowOptions,
    as_json: AsJsonOption = False,
    command: CommandOption = False,
    why: WhyOption = False,
) -> int:
    """Show a run: its results, and with --why each check with what to do about it.

    Example: trueload runs show last --why
    """
    from trueload.report.colour import write_lines
    from trueload.report.export.json import whole_json
    from trueload.report.suite_json import rows_json

    is_markdown = given.format == "markdown"
    if is_markdown and (as_json or command or why):
        raise UserError("--format markdown shows the tables alone", "leave out the other options")
    with Store.open() as store:
        found = store.find_run(run)
        if command:
            return _show_command(found)
        if as_json:
            tables = _tables(store, found)
            more = {} if tables is None else {"tables": rows_json(tables)}
            sys.stdout.writelines(whole_json(found, store.rows(found), more))
            return ExitCode.OK
        if is_markdown:
            sys.stdout.writelines(_markdown(store, found))
            return ExitCode.OK
        lines = [*_run_head(found), *_search_lines(store, found), *_suite_lines(store, found)]
        sys.stdout.write("\n".join(lines) + "\n")
        write_lines(sys.stdout, _pair_lines(store, found))
        damaged: list[DamagedRow] = []
        for row in _noting(store.rows(found), damaged):
            sys.stdout.write("\n")
            write_lines(sys.stdout, _row_lines(row, why=why))
        _report_damage(store, damaged)
    return ExitCode.OK


def _markdown(store: Store, run: Run) -> Iterable[str]:
    """The ranked tables of a suite, or the trials of another run."""
    from trueload.report import apachebench, table
    from trueload.report.export import export

    tables = _tables(store, run) if run.kind == "suite" else None
    if tables is None:
        return export(run, store.rows(run), "markdown")
    return table.markdown(tables, published=False), apachebench.markdown_text(tables)


def _show_command(run: Run) -> int:
    from trueload.request.redact import FILL_IN, command_text, has_placeholders

    if not run.command:
        raise UserError(f"run {run.id} was not started by a command", "show it without --command")
    sys.stdout.write(command_text(run.command) + "\n")
    if has_placeholders(run.command):
        sys.stderr.write(f"note: {FILL_IN}\n")
    return ExitCode.OK


def export_run(
    run: RunArgument,
    format_: FormatOption = None,
    published: PublishedOption = False,
    output: OutputOption = None,
) -> int:
    """Export a run for other programs.

    Example: trueload runs export last --format csv -o run.csv

             trueload runs export last --published
    """
    from trueload.report.export import export

    chosen = _format(format_, published=published)
    check_writable(output, "-o")
    with Store.open() as store:
        found = store.find_run(run)
        damaged: list[DamagedRow] = []
        rows = _noting(store.rows(found), damaged)
        if chosen is ExportFormat.PARQUET:
            _write_parquet(found, rows, output)
        else:
            pieces = (
                [_as_published(store, found, chosen)]
                if published
                else export(found, rows, cast("Format", chosen.value))
            )
            with text_output(output, newline="") as stream:
                stream.writelines(pieces)
        _report_damage(store, damaged)
    return ExitCode.OK


def _format(given: ExportFormat | None, *, published: bool) -> ExportFormat:
    """Return the given format, or the default. Raises ``UserError``."""
    chosen = given or (ExportFormat.TEXT if published else ExportFormat.JSON)
    if chosen is not ExportFormat.CSV and published != (chosen in OF_PUBLISHED):
        others = "json, jsonl, csv, hosts, markdown, parquet and hgrm"
        has = "text, csv and html" if published else others
        with_it = "with" if published else "without"
        raise UserError(
            f"--format {chosen.value} cannot be used {with_it} --published", f"there are {has}"
        )
    return chosen


def _as_published(store: Store, run: Run, chosen: ExportFormat) -> str:
    from trueload.report import published
    from trueload.report.suite_json import read_plan as read_suite_plan
    from trueload.suites.load_tables import tabulate
    from trueload.suites.summary import collect

    plan = read_suite_plan(run)
    tables = tabulate(collect(plan, store.rows(run)), plan)
    made = published.sheets(plan, tables, store.rows(run))
    return published.WRITERS[cast(published.Format, chosen.value)](made)


def _write_parquet(run: Run, rows: Iterable[Row | DamagedRow], output: Path | None) -> None:
    from trueload.report.export.parquet import write_parquet
    from trueload.report.sheets import trials_sheet

    if output is None or str(output) == "-":
        raise UserError("Parquet is binary", "name a file with -o")
    write_parquet(trials_sheet(run.id, rows), output)


def _noting(
    rows: Iterable[Row | DamagedRow], damaged: list[DamagedRow]
) -> Iterator[Row | DamagedRow]:
    for row in rows:
        if isinstance(row, DamagedRow):
            damaged.append(row)
        yield row


def _run_head(run: Run) -> list[str]:
    from trueload.request.redact import FILL_IN, command_text, has_placeholders

    lines = [f"run          {run.id}", f"started      {run.started_at} ({run.state})"]
    if run.command:
        lines.append(f"command      {command_text(run.command)}")
        lines += [f"             {FILL_IN}"] if has_placeholders(run.command) else []
    return lines


def _search_lines(store: Store, run: Run) -> list[str]:
    """Return the result of a search, from its stored steps."""
    from trueload.search.result import read_plan, read_steps, search_lines

    if run.kind != "search":
        return []
    rows = [row for row in store.rows(run) if isinstance(row, Row)]
    try:
        plan = read_plan(run.plan)
        steps = read_steps(plan, [(row.labels, row.record) for row in rows if row.record])
    except (UserError, ValueError, KeyError, TypeError):
        return ["", "its plan cannot be read by this version"]
    return ["", *search_lines(plan, steps)]


def _pair_lines(store: Store, run: Run) -> list[str]:
    """Return the comparison of a run of `trueload compare`, as that command printed it."""
    from trueload.report.ab import paired_lines, stored_pairs

    if run.kind != "ab":
        return []
    paired = stored_pairs(run, store.rows(run))
    return ["", *paired_lines(paired)] if paired.taken else []


def _tables(store: Store, run: Run) -> list[LoadTable] | None:
    """Return the tables of a suite; None for other runs, or if the plan cannot be read."""
    from trueload.report.suite_json import read_plan as read_suite_plan
    from trueload.suites.load_tables import tabulate
    from trueload.suites.summary import collect

    try:
        plan = read_suite_plan(run)
    except UserError:
        return None
    return tabulate(collect(plan, store.rows(run)), plan)


def _suite_lines(store: Store, run: Run) -> list[str]:
    """Return the tables of a suite, from its stored rows."""
    from trueload.report import apachebench, table

    if run.kind != "suite":
        return []
    tables = _tables(store, run)
    if tables is None:
        return ["", "its plan cannot be read by this version"]
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    shown = [table.text(tables, width=width, published=False), apachebench.report_text(tables)]
    return ["", *(text for text in shown if text)]


def _row_lines(row: Row | DamagedRow, *, why: bool) -> list[str]:
    from trueload.report.result import result_lines

    if isinstance(row, DamagedRow):
        return [plain(str(row))]
    labels = " ".join(row.labels.values())
    title = plain(f"row {row.number}  {row.key or labels}".rstrip())
    if row.record is None:
        return [title, f"{row.outcome}: {plain(row.reason or '')}"]
    checks = ["checks", *check_lines(row.record)] if why else []
    return [title, *result_lines(row.record, whole=why), *checks]


def check_lines(record: Record) -> list[str]:
    """Return each check that applies with its meaning, then the names of the others.

    A check that bounds, warns or fails also has its remedy.
    """
    from trueload.record.schema import REPORTED_STATUSES
    from trueload.verdict import CHECKS

    lines = []
    for check in record.checks:
        if check.status == "n/a":
            continue
        told = [f"  {check.status:<4} {check.name}: {plain(check.why)}"]
        if (explanation := CHECKS.get(check.name)) is not None:
            told.append(f"       {explanation.meaning}")
            if check.status in REPORTED_STATUSES:
                told.append(f"       What to do: {explanation.remedy_for(record)}")
        lines += [line for each in told for line in folded(each, indent=" " * 7)]
    others = [plain(check.name) for check in record.checks if check.status == "n/a"]
    return [*lines, *folded(f"  n/a: {', '.join(others)}")] if others else lines


def _report_damage(store: Store, damaged: list[DamagedRow]) -> None:
    if damaged:
        sys.stderr.write(
            f"warning: {len(damaged)} damaged in {store.path}: {damaged[0].why};"
            " keep a copy of the file\n"
        )
