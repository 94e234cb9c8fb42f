"""The tables of a report as rows of text: the figures of entries, steps, published ones, checks.

Numbers are written as the command line writes them. Pure. Must not know HTML.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from trueload.compare.difference import Ratio
from trueload.report import table as suite_table
from trueload.report.compare import HEADER as RATIO_HEADER
from trueload.report.compare import ratio_cells
from trueload.report.html.entries import CheckTally, Entry, Search, Section
from trueload.report.times import bounded, quantile_text
from trueload.text import plain
from trueload.units import format_count, format_share, format_size
from trueload.verdict import CHECKS

ROWS_MAX = 150
NS_PER_MS = 1e6
STATUSES = ("fail", "warn", "pass", "n/a")


@dataclass(frozen=True)
class Line:
    """One row. ``mark`` is a verdict, an outcome or a status, which the page colours; ``series``
    the number of the colour that the row has in charts, None if it is in none."""

    cells: tuple[str, ...]
    mark: str = ""
    series: int | None = None


@dataclass(frozen=True)
class Table:
    """A header and its rows; the first ``texts`` columns are text, the others numbers, unless they
    are named in ``left``. ``folded`` tables are behind a line to click at."""

    title: str
    header: tuple[str, ...]
    lines: tuple[Line, ...]
    texts: int = 1
    note: str = ""
    folded: bool = False
    left: frozenset[str] = frozenset()


ENTRY_HEADER = (
    *(
        "rank",
        "program",
        "score",
        "where it lies",
        "p50",
        "p50 ours",
        "p99",
        "p99 ours",
        "max of answers",
    ),
    *("failed", "CPU", "memory", "verdict"),
)


def entries_table(section: Section, drawn: Sequence[str]) -> Table | None:
    """Every entry that was measured, in order; the colours of those in ``drawn``."""
    shown = section.measured[:ROWS_MAX]
    if not shown:
        return None
    left = len(section.measured) - len(shown)
    header = tuple(section.unit if name == "score" else name for name in ENTRY_HEADER)
    lines = tuple(_entry_line(entry, drawn) for entry in shown)
    used = [at for at in range(len(header)) if at == 1 or any(e.cells[at] for e in lines)]
    bounds = any(e.figures is not None and e.figures.latency_at_least for e in shown)
    ours = any(e.figures is not None and e.figures.p50_ours_ms is not None for e in shown)
    notes = [
        "Rank: 1 + the rows that are better; rows of one rank cannot be told apart."
        if len(section.ranked) > 1
        else "",
        "Ours: the part of a time that was spent in the generator." if ours else "",
        "A time after > is a lower bound: requests failed or never ended." if bounds else "",
        f"{left:,} more rows are left out here; `trueload runs export` has them." if left else "",
    ]
    return Table(
        title="",
        header=tuple(header[at] for at in used),
        lines=tuple(replace(e, cells=tuple(e.cells[at] for at in used)) for e in lines),
        texts=used.index(1) + 1,
        note=" ".join(note for note in notes if note),
        left=frozenset({"verdict", "where it lies"}),
    )


def _entry_line(entry: Entry, drawn: Sequence[str]) -> Line:
    figures, interval = entry.figures, entry.interval
    within = ""
    if interval is not None and interval.low != interval.high:
        low, high = format_count(interval.low), format_count(interval.high)
        within = f"{low} to {high}{' (range)' if interval.kind == 'range' else ''}"
    cpu = None if figures is None else figures.cpu_share
    peak = None if figures is None else figures.peak_rss_bytes
    times = ("p50", "p50_ours", "p99", "p99_ours", "max")
    return Line(
        cells=(
            "trap" if entry.trap else "" if entry.rank is None else str(entry.rank),
            entry.name,
            "" if entry.score is None else format_count(entry.score),
            within,
            *(_time(entry, name) for name in times),
            "" if figures is None else format_count(figures.errors),
            "" if cpu is None else format_share(cpu),
            "" if peak is None else format_size(peak),
            entry.verdict or entry.outcome,
        ),
        mark=entry.verdict or entry.outcome,
        series=drawn.index(entry.name) if entry.name in drawn else None,
    )


def _time(entry: Entry, name: str) -> str:
    figures = entry.figures
    ms: float | None = None if figures is None else getattr(figures, f"{name}_ms")
    if figures is None or ms is None:
        return ""
    return bounded(ms * NS_PER_MS, above=name in figures.latency_at_least)


def suite_columns(section: Section) -> Table | None:
    """All columns of a suite's table, as `trueload suite run` has them; None of anything else."""
    found = [e.summary for e in section.measured if e.summary is not None][:ROWS_MAX]
    if not found:
        return None
    grid = suite_table.grid(found)
    return Table(
        title="All columns, as `trueload suite run` prints them",
        header=grid.header,
        lines=tuple(
            Line(row, summary.verdict or summary.outcome)
            for row, summary in zip(grid.rows, found, strict=True)
        ),
        texts=1 if any(each.cell.load.pools for each in found) else suite_table.NAME_COLUMNS,
        note="Times in ms, unless they say otherwise.",
        folded=True,
        left=suite_table.LEFT_ALIGNED,
    )


def published_tables(section: Section) -> list[Table]:
    """Published figures, and ours beside them."""
    ours = {e.summary.cell.subject.name: e.summary for e in section.entries if e.summary}
    found = []
    for published in section.published:
        grid = suite_table.beside_grid(ours, published)
        lines = tuple(Line(row, row[-1]) for row in grid.rows)
        left = suite_table.LEFT_ALIGNED
        found.append(Table(plain(published.title), grid.header, lines, left=left))
    return found


def steps_table(search: Search) -> Table:
    """The steps of a search, in the order of taking."""
    return Table(
        title=f"Steps of the search: {search.name}",
        header=("stage", search.unit, "p50", "p95", "p99", "outcome"),
        lines=tuple(
            Line(
                (
                    step.stage,
                    format_count(step.load),
                    *(quantile_text(step.latency.at(name)) for name in ("p50", "p95", "p99")),
                    step.outcome,
                ),
                step.outcome,
            )
            for step in search.steps[:ROWS_MAX]
        ),
        note=search.sentence,
        folded=True,
        left=frozenset({"outcome"}),
    )


def ratio_table(title: str, found: Sequence[Ratio], base: str, new: str) -> Table:
    """One comparison; the columns of both sides have their names."""
    header = tuple({"base": base, "new": new}.get(name, name) for name in RATIO_HEADER)
    lines = tuple(Line(tuple(map(plain, ratio_cells(each))), each.word) for each in found)
    return Table(title, header, lines, left=frozenset({"where it lies", "verdict"}))


@dataclass(frozen=True)
class Checked:
    """One check, for people: what came of it over all records, and what to do about it."""

    name: str
    status: str
    counts: str
    why: str
    where: str
    meaning: str
    remedy: str


def checked(tallies: Sequence[CheckTally]) -> list[Checked]:
    """The checks, the worst first, each with what it is for and what to do."""
    found = []
    for tally in tallies:
        explained = CHECKS.get(tally.name)
        counts = [
            f"{format_count(tally.counts[status])} {status}"  # type: ignore[index]
            for status in STATUSES
            if tally.counts.get(status)  # type: ignore[call-overload]
        ]
        found.append(
            Checked(
                name=plain(tally.name),
                status=tally.status,
                counts=", ".join(counts),
                why=plain(tally.worst.why) if tally.worst is not None else "",
                where=tally.where,
                meaning=explained.meaning if explained else "",
                remedy=explained.remedy if explained else "",
            )
        )
    return sorted(found, key=lambda each: STATUSES.index(each.status))
