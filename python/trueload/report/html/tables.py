"""The tables of a report as rows of text: the figures of entries, steps, published ones, checks.

Numbers are written as the command line writes them. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from trueload.compare.difference import Ratio
from trueload.record.bound import at_least
from trueload.record.figures import BRIEF, TABLED
from trueload.record.schema import Record
from trueload.report import table as suite_table
from trueload.report.accounts import ACCOUNTS
from trueload.report.columns import kind_of, rows_of, verdict_of
from trueload.report.compare import ratio_grid
from trueload.report.grid import Grid
from trueload.report.quantile import quantile_text
from trueload.report.times import figure_text
from trueload.suites.load_tables import LoadTable
from trueload.suites.steps import Search
from trueload.suites.summary import Summary
from trueload.units import counted, format_count, format_share, format_size

ROWS_MAX = 150


ENTRY_HEADER = (
    # The verdict stands where no narrow window cuts it off.
    *("rank", "program", "verdict", "score", "interval"),
    *(each for name in BRIEF for each in (name, f"{name} ours")),
    *("max of answers", "failed", "CPU", "memory"),
)
ENTRY_TEXTS = ("rank", "program", "interval", "verdict")


def entries_table(section: LoadTable, palette: Mapping[str, int]) -> Grid | None:
    """Every entry that was measured, in order; ``palette`` has the number of each one's colour."""
    shown = section.measured[:ROWS_MAX]
    if not shown:
        return None
    left = len(section.measured) - len(shown)
    header = tuple(section.unit if name == "score" else name for name in ENTRY_HEADER)
    rows = tuple(map(_entry_cells, shown))
    used = [at for at in range(len(header)) if at == 1 or any(row[at] for row in rows)]
    used = used if len(shown) > 1 else [at for at in used if at]  # nobody ranks one
    bounds = any(e.figures is not None and e.figures.latency_at_least for e in shown)
    ours = any(e.figures is not None and e.figures.p50_ours_ms is not None for e in shown)
    notes = [
        suite_table.RANGES.capitalize() if any(e.places is not None for e in shown[1:]) else "",
        "≥: at least this much: the generator was at its limit, or the run was disturbed."
        if any(e.lower_bound for e in shown)
        else "",
        "Ours: the part of a time that was spent in the generator." if ours else "",
        "A time after > is a lower bound: requests failed or never ended." if bounds else "",
        f"{counted(left, 'more row is', 'more rows are')} left out here; `trueload runs export`"
        " has all of them."
        if left
        else "",
    ]
    return replace(
        Grid(header, rows, left=frozenset(ENTRY_TEXTS)).columns(used),
        named=used.index(1),
        marks=tuple(entry.verdict or entry.outcome for entry in shown),
        marked=used.index(2),
        series=tuple(palette.get(entry.name) for entry in shown),
        note=" ".join(note for note in notes if note),
    )


def _entry_cells(entry: Summary) -> tuple[str, ...]:
    figures, interval = entry.figures, entry.interval
    within = ""
    if interval is not None and interval.low != interval.high:
        low, high = format_count(interval.low), format_count(interval.high)
        within = f"{low} to {high}{' (range)' if interval.kind == 'range' else ''}"
    cpu = None if figures is None else figures.cpu_share
    peak = None if figures is None else figures.peak_rss_bytes
    times = (*(each for name in BRIEF for each in (name, f"{name}_ours")), "max")
    return (
        "trap" if entry.trap else str(entry.places or ""),
        entry.name,
        verdict_of(entry),
        "" if entry.score is None else at_least(format_count(entry.score), entry.lower_bound),
        within,
        *(_time(entry, name) for name in times),
        "" if figures is None else format_count(figures.errors),
        "" if cpu is None else format_share(cpu),
        "" if peak is None else format_size(peak),
    )


def _time(entry: Summary, name: str) -> str:
    return "" if entry.figures is None else figure_text(entry.figures, name)


def suite_columns(section: LoadTable) -> Grid | None:
    """All columns of a suite's table, as `trueload suite run` has them; None of anything else."""
    found = [entry for entry in section.measured if entry.planned is not None][:ROWS_MAX]
    if not found:
        return None
    kind = kind_of(found[0].cell.load)
    return replace(
        kind.grid(rows_of(found)),
        title="All columns, as `trueload suite run` prints them",
        named=kind.named,
        note="Times in ms, unless they say otherwise.",
        folded=True,
    )


def account_tables(section: LoadTable) -> Iterator[Grid]:
    """The figures or texts of accounts such as streams, of several trials of the middle one."""
    entries = [(e.name, e.figures) for e in section.measured[:ROWS_MAX] if e.figures is not None]
    for account in ACCOUNTS:
        kept = [(name, figures.accounts.get(account.name)) for name, figures in entries]
        found = [
            (name, account.figures(each) or account.texts(each))
            for name, each in kept
            if each is not None
        ]
        if account.title and found:
            yield Grid(
                header=("program", *(label for label, _ in found[0][1])),
                rows=tuple((name, *(text for _, text in texts)) for name, texts in found),
                title=account.title,
                named=0,
            )


def target_tables(records: Sequence[tuple[Summary, Record]]) -> Iterator[Grid]:
    """What became of each request, each origin and each host, of those that had several."""
    for entry, record in records:
        of = f": {entry.name}" if len(records) > 1 else ""
        for account in ACCOUNTS:
            grid = account.grid(record)
            if grid is None:
                continue
            left = len(grid.rows) - ROWS_MAX
            yield replace(
                grid,
                rows=grid.rows[:ROWS_MAX],
                title=f"By {account.grid_of}{of}",
                named=0,
                note=f"{left:,} more are left out here; --json has them all." if left > 0 else "",
            )


def published_tables(section: LoadTable) -> list[Grid]:
    """Published figures, and ours beside them."""
    ours = {e.cell.subject.name: e for e in section.everything if e.planned is not None}
    return [
        replace(suite_table.beside_grid(ours, published), named=0)
        for published in section.published
    ]


def steps_table(search: Search) -> Grid:
    """The steps of a search, in the order of taking."""
    steps = search.steps[:ROWS_MAX]
    return Grid(
        header=("purpose", search.unit, *TABLED, "outcome"),
        rows=tuple(
            (
                step.stage,
                format_count(step.load),
                *(quantile_text(step.latency.at(name)) for name in TABLED),
                step.outcome,
            )
            for step in steps
        ),
        title=f"Steps of the search: {search.name}",
        left=frozenset({"purpose", "outcome"}),
        marks=tuple(step.outcome for step in steps),
        named=0,
        note=search.sentence,
        folded=True,
    )


def ratio_table(title: str, found: Sequence[Ratio], base: str, new: str) -> Grid:
    """One comparison, the verdicts first; the columns of both sides have their names, that of the
    intervals their kind."""
    given = ratio_grid(found)
    grid = given.columns((0, 5, 3, 4, 1, 2))
    kinds = {each.within.kind for each in found if each.within is not None}
    kind = kinds.pop() if len(kinds) == 1 else "interval"
    names = {"base": base, "new": new, "new / base": "ratio", "interval": kind}
    return replace(
        grid,
        header=tuple(names.get(name, name) for name in grid.header),
        rows=tuple(tuple(cell.removesuffix(f" ({kind})") for cell in row) for row in grid.rows),
        title=title,
        left=frozenset({"metric", kind, "verdict"}),
        marks=given.marks,
        marked=1,
        named=0,
    )
