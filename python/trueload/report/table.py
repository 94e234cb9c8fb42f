"""Tables of a suite as text, as Markdown, and as a sheet, which has every column.

How: each load becomes grids of strings; the writers only lay them out. Text has the columns that
fit, or the published ones in whole rows.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from trueload.record.bound import at_least
from trueload.report import columns
from trueload.report.columns import Kind, Row, kind_of, rows_of, verdict_of
from trueload.report.export.markdown import markdown_cell, markdown_lines
from trueload.report.grid import Grid, text_lines, text_width
from trueload.report.missing_loads import NO_REASON, reasons_once, titled, under_no_load
from trueload.report.sheets import Sheet
from trueload.search.broadcast_rows import clients_header
from trueload.suites.definition import PublishedTable
from trueload.suites.load_tables import LoadTable
from trueload.suites.ranks import REPETITIONS_MIN
from trueload.suites.summary import Summary
from trueload.text import REASON_LINES, folded, plain

TEXT_WIDTH = 100
BOUNDS = (
    "≥: at least this much: the generator was at its limit, or the run was disturbed. A row with a"
    " rank after it carried less."
)
ESTIMATES = (
    "estimate: what the server would carry if it were busy all the time: RPS divided by the share"
    " of the time that its busiest thread was. No row is ranked by it."
)
RATIOS = (
    "ratio: RPS to that of the reference right before and after, the median and its interval."
    " Rows are ranked by it."
)
RANGES = "rank: the ranks that a row may have; all of a table hold together with 95 %."


def grid(table: LoadTable, summaries: Sequence[Summary], *, published: bool) -> Grid:
    """Rows of a table: with the published columns and all of ours, or with the most important."""
    kind = kind_of(table.load)
    return kind.grid(rows_of(summaries), kind.columns if published else kind.brief)


def best_grid(table: LoadTable) -> Grid:
    """The best repetition of each ranked row, sorted by RPS: as published tables have it."""
    rows = sorted(table.ranked, key=lambda s: -((s.best and s.best.ok_per_s) or 0.0))
    return columns.SERVERS.grid([Row(s, s.best, "best") for s in rows], columns.PUBLISHED)


def beside_grid(ours: Mapping[str, Summary], published: PublishedTable) -> Grid:
    """Published figures and ours, in thousand requests per second."""
    rows = []
    for row in published.rows:
        summary = ours.get(row.subject)
        rows.append((row.name, f"{row.value:g}", *_thousands(summary)))
    return Grid(
        ("published", "k/s", "ours", "k RPS", "within", "verdict"),
        tuple(rows),
        title=plain(published.title),
        left=frozenset({"published", "ours", "verdict"}),
        marks=tuple(row[-1].partition(" ")[0] for row in rows),
    )


def _thousands(summary: Summary | None) -> tuple[str, str, str, str]:
    if summary is None:
        return ("", "", "", "")
    rate = None if summary.figures is None else summary.figures.ok_per_s
    interval = summary.interval
    within = "" if interval is None else f"{interval.low / 1e3:.1f}-{interval.high / 1e3:.1f}"
    shown = "" if rate is None else at_least(f"{rate / 1e3:.1f}", summary.lower_bound)
    return (summary.cell.subject.name, shown, within, verdict_of(summary))


@dataclass(frozen=True)
class _Section:
    """A section of what is shown of a load: a title, a table and lines, each where there is one."""

    title: str
    grid: Grid | None = None
    lines: tuple[str, ...] = ()


def text(tables: Iterable[LoadTable], *, width: int | None, published: bool) -> str:
    """All tables for people. `width` is the terminal's columns; None keeps rows whole."""
    shown = list(tables)
    found = []
    for table, sections in _with_sections(shown, published):
        lines = [table.title]
        for section in sections:
            lines += ["", *([section.title] if section.title else [])]
            if section.grid is not None:
                lines += _laid_out(section.grid, kind_of(table.load), width)
            lines += _folded(f"  {line}" for line in section.lines)
        for summary in table.everything if table.load.broadcast else ():
            lines += _steps(summary)
        found.append("\n".join([*lines, *_below(table, published)]))
    for title, reasons in titled(under_no_load(shown)):
        found.append("\n".join([title, *_folded(f"  {each}" for each in reasons)]))
    return "\n\n".join(found) + "\n"


def markdown(tables: Iterable[LoadTable], *, published: bool) -> str:
    shown, lines = list(tables), []
    for table, sections in _with_sections(shown, published):
        lines += [f"### {table.title}", ""]
        for section in sections:
            lines += [f"**{markdown_cell(section.title)}**", ""] if section.title else []
            lines += [*markdown_lines(section.grid), ""] if section.grid is not None else []
            lines += [*_list(section.lines), ""] if section.lines else []
        lines = [*lines[:-1], *_below(table, published), ""]
    for title, reasons in titled(under_no_load(shown)):
        lines += [f"**{title}**", "", *_list(reasons), ""]
    return "\n".join(lines)


def _list(lines: Iterable[str]) -> list[str]:
    return [f"- {markdown_cell(line)}" for line in lines]


def _with_sections(
    tables: Sequence[LoadTable], published: bool
) -> Iterator[tuple[LoadTable, Iterator[_Section]]]:
    """Each load with its sections; what is measured under no load is said below all."""
    without = {each.subject for each in under_no_load(tables)}
    return ((table, _sections(table, published, without)) for table in tables)


def _sections(table: LoadTable, published: bool, without: Container[str]) -> Iterator[_Section]:
    if table.ranked:
        yield _Section("", grid(table, table.ranked, published=published))
    else:
        yield _Section("No row can be ranked.")
    if published and table.ranked and _as_published(table):
        yield _Section(
            "As published tables have it, the best repetition of each:", best_grid(table)
        )
    for title, summaries in _apart(table, without):
        measured = any(summary.figures is not None for summary in summaries)
        whole = grid(table, summaries, published=published) if measured else None
        yield _Section(title, whole, tuple(_reasons(table, summaries)))
    noted = [summary for summary in table.ranked if summary.why]
    for title, notes in (
        ("Suspect:", [s for s in noted if s.verdict == "suspect"]),
        ("Lower bounds:", [s for s in noted if s.verdict == "valid" and s.lower_bound]),
        ("Remarks:", [s for s in noted if s.verdict == "valid" and not s.lower_bound]),
    ):
        if notes:
            yield _Section(title, lines=tuple(f"{_row_name(s)}: {plain(s.why)}" for s in notes))
    of_subject = {summary.cell.subject.name: summary for summary in table.everything}
    for each in table.published:
        beside = beside_grid(of_subject, each)
        yield _Section(beside.title, beside)


def _steps(summary: Summary) -> list[str]:
    """The steps of a subject's last search."""
    if not summary.steps:
        return []
    title = f"{_full_name(summary)}, the steps of its last repetition:"
    return ["", title, clients_header(), *"\n".join(summary.steps).splitlines()]


def _reasons(table: LoadTable, summaries: Sequence[Summary]) -> list[str]:
    """A line for each row that was measured; of the others one for each subject and reason."""
    if all(s.outcome != "measured" for s in summaries):
        return [each.line() for each in reasons_once(summaries, table.everything)]
    return [f"{_row_name(s)}: {plain(s.why) or NO_REASON}" for s in summaries]


def _apart(table: LoadTable, without: Container[str]) -> list[tuple[str, list[Summary]]]:
    """What is not ranked, under the reason for it."""
    unmeasured = [s for s in table.unmeasured if s.cell.subject.name not in without]
    groups = [
        ("Invalid, not ranked:", list(table.invalid)),
        ("Traps, measured to show what a check catches, never ranked:", list(table.traps)),
        *(
            (f"{outcome.capitalize()}:", [s for s in unmeasured if s.outcome == outcome])
            for outcome in ("failed", "unsupported", "skipped")
        ),
    ]
    return [(title, summaries) for title, summaries in groups if summaries]


def _as_published(table: LoadTable) -> bool:
    """Whether published tables have the best repetition under such columns."""
    return not table.load.broadcast and table.load.pools is None


def _row_name(summary: Summary) -> str:
    """A subject, and its load where a table has several."""
    pools = summary.cell.load.pools
    name = _full_name(summary)
    return name if pools is None else f"{name}, {pools.title}"


def _full_name(summary: Summary) -> str:
    return plain(summary.cell.subject.name)


def _legend(ranked: Sequence[Summary], published: bool) -> str:
    """What the figures are, and what the interval is of."""
    kinds = {s.interval.kind for s in ranked if s.interval is not None}
    counts = sorted({s.counted for s in ranked})
    times = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    plural = "" if counts == [1] else "s"
    meaning = (
        f"interval: the range of RPS over {times} repetition{plural}"
        if kinds <= {"range"}
        else f"interval: of the median RPS over {times} repetition{plural}, 95 % by rank"
        + (", or the range where it says so" if "range" in kinds else "")
    )
    extremes = ", Req and Err sums, min and max extremes of answers" if published else ", Err a sum"
    rates = "RPS, BPS" if published else "RPS"
    return (
        f"{rates} and percentiles are medians of {times} repetition{plural}{extremes};"
        f" times in ms. {meaning}."
    )


def _ranks(table: LoadTable) -> Iterator[str]:
    """How the rows are ranked, or why they are not."""
    if len(table.ranked) < 2:
        return
    if (few := table.too_few) is None:
        yield RANGES
        return
    yield (
        f"No ranks: they need {REPETITIONS_MIN} repetitions (--repeat {REPETITIONS_MIN}), and a"
        f" row has {few}. Rows are sorted, the best first."
    )


def _below(table: LoadTable, published: bool) -> list[str]:
    """What the figures and marks of a table mean, after a blank line."""
    if legend := kind_of(table.load).legend:
        return ["", *_folded([legend, *_ranks(table)], None)] if table.ranked else []
    shown = [s.figures for s in table.everything if s.figures is not None]
    measured = [each for each in table.everything if each.figures is not None]
    lines = [_legend(table.ranked or measured, published), *_ranks(table)] if measured else []
    if table.ranked and all(summary.ratios for summary in table.ranked):
        lines.append(RATIOS)
    if shown and table.load.rate_per_s is not None:
        lines.append("rate: what was offered; times are from when a request was due.")
    elif shown and table.load.is_open:
        lines.append("Times are from when a request was due.")
    if any(figures.latency_at_least for figures in shown):
        lines.append(
            "A time after > is a lower bound: requests failed, never ended, or were never sent."
        )
    if any(s.lower_bound for s in table.ranked):
        lines.append(BOUNDS)
    if any(figures.estimate_per_s for figures in shown):
        lines.append(ESTIMATES)
    return ["", *_folded(lines, None)] if lines else []


def _folded(lines: Iterable[str], most: int | None = REASON_LINES) -> list[str]:
    indent = "    " if most else ""
    return [part for line in lines for part in folded(line, most, indent, width=TEXT_WIDTH)]


def _laid_out(grid: Grid, kind: Kind, width: int | None) -> list[str]:
    """The lines of a grid: of a brief one with the columns that fit."""
    is_brief = grid.header[0] == kind.brief[0].heading
    for name in kind.spare if is_brief else ():
        if text_width(grid) > min(width or kind.width, kind.width):
            grid = grid.columns(at for at, each in enumerate(grid.header) if each != name)
    return text_lines(grid)


def sheet(tables: Sequence[LoadTable], *, published: bool) -> Sheet:
    """One sheet for all loads; with `published` the best repetitions follow as rows of their
    own, told apart by the column `figures`."""
    rows: list[Row] = []
    for table in tables:
        rows += [Row(summary, summary.figures, marked=False) for summary in table.everything]
        if published and _as_published(table):
            rows += [Row(summary, summary.best, "best", marked=False) for summary in table.ranked]
    return kind_of(tables[0].load).sheet(rows)
