"""Tables of a suite: the published columns, then ours, as text, CSV or Markdown.

How: each load becomes a grid of strings once; the writers only lay it out. A terminal that
is too narrow gets the grid in three parts, each with the names; a pipe gets it whole.
Text that a manifest or a peer has chosen loses its control characters here, and in CSV
what a spreadsheet would run as a formula.

Must not know: how the figures came about.
"""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len

from trueload.escapes import without_escapes
from trueload.report import broadcast_table, client_table
from trueload.report.unmeasured import NO_REASON, reasons_once, titled, under_no_load
from trueload.search.clients import clients_header
from trueload.suites.definition import PublishedTable
from trueload.suites.plan import PlannedLoad
from trueload.suites.summary import SHOWN_RANKS, Figures, LoadTable, Summary
from trueload.units import format_cell

# Exactly the published columns, in their order; times in ms.
PUBLISHED = (
    "Language", "Framework", "Category", "Name", "Res[B]", "Req", "Err", "RPS", "BPS",
    "min", "25%", "50%", "75%", "99%", "max",
)  # fmt: skip
OURS = ("rank", "interval", "CPU", "memory", "verdict")
# Before ours where a load has a rate: beside it an RPS says whether a subject kept up.
RATE = "rate"
# What a CSV line must say for itself, because it has no title above it, and its numbers no mark.
OF_LOAD = (
    "connections", "pipeline", "rate_per_s", "cores", "figures", "latency_at_least", "why",
)  # fmt: skip
NAME_COLUMNS = 4
# Where a grid that is too wide for the terminal is cut: before the times.
CUT = PUBLISHED.index("min")
LEFT_ALIGNED = frozenset(
    {
        "Language",
        "Framework",
        "Category",
        "Name",
        "verdict",
        "interval",
        "published",
        "ours",
        "Client",
    }
)


def plain(text: str) -> str:
    """One line without control characters, so that it is safe on a terminal."""
    text = without_escapes(text)
    shown = "".join(" " if c in "\t\n\r" else c for c in text if c in "\t\n\r" or _is_harmless(c))
    return " ".join(shown.split())


def _is_harmless(character: str) -> bool:
    # Cc and Cf are control and format characters (escape, bidi), Zl and Zp line separators,
    # Cs lone surrogates.
    return unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp")


def csv_text(text: str) -> str:
    """A cell that no spreadsheet takes for a formula (OWASP, CSV injection)."""
    shown = plain(text)
    return f"'{shown}" if shown[:1] in ("=", "+", "-", "@") else shown


@dataclass(frozen=True)
class Grid:
    """A header and rows of strings, all of the same length."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def published_cells(summary: Summary, figures: Figures | None) -> tuple[str, ...]:
    """One row under the published columns."""
    subject = summary.cell.subject
    names = (subject.language, subject.framework, subject.category, subject.variant)
    if figures is None:
        return (*(plain(name) for name in names), *[""] * (len(PUBLISHED) - NAME_COLUMNS))
    return (
        *(plain(name) for name in names),
        format_cell(figures.response_bytes),
        format_cell(figures.requests),
        format_cell(figures.errors),
        format_cell(figures.ok_per_s),
        format_cell(figures.bytes_per_s),
        *(_time(figures, name) for name in ("min", *SHOWN_RANKS, "max")),
    )


def _time(figures: Figures, name: str) -> str:
    ms: float | None = getattr(figures, f"{name}_ms")
    above = "> " if name in figures.latency_at_least else ""
    return "" if ms is None else f"{above}{ms:.3f}"


def our_cells(summary: Summary) -> tuple[str, ...]:
    """Rank, interval, CPU, memory and verdict of one row."""
    figures, interval = summary.figures, summary.interval
    within = ""
    if interval is not None:
        label = " (range)" if interval.kind == "range" else ""
        within = f"{format_cell(interval.low)}-{format_cell(interval.high)}{label}"
    cpu = figures.cpu_share if figures is not None else None
    peak = figures.peak_rss_bytes if figures is not None else None
    return (
        "" if summary.rank is None else str(summary.rank),
        within,
        "" if cpu is None else f"{cpu * 100:.0f}%",
        "" if peak is None else f"{peak / 1024 / 1024:.1f}MiB",
        summary.verdict or summary.outcome,
    )


def grid(summaries: Sequence[Summary]) -> Grid:
    """The published columns and ours; the rate, where there is one. Of broadcasts their own."""
    if any(s.cell.load.pools for s in summaries):
        return Grid(client_table.COLUMNS, tuple(map(client_table.client_cells, summaries)))
    if any(s.cell.load.broadcast for s in summaries):
        return Grid(broadcast_table.COLUMNS, tuple(map(broadcast_table.broadcast_cells, summaries)))
    if all(s.cell.load.rate_per_s is None for s in summaries):
        rows = tuple((*published_cells(s, s.figures), *our_cells(s)) for s in summaries)
        return Grid((*PUBLISHED, *OURS), rows)
    rows = tuple(
        (*published_cells(s, s.figures), f"{_rate(s.cell.load)}/s", *our_cells(s))
        for s in summaries
    )
    return Grid((*PUBLISHED, RATE, *OURS), rows)


def _rate(load: PlannedLoad) -> str:
    return "" if load.rate_per_s is None else f"{load.rate_per_s:.10g}"


def best_grid(table: LoadTable) -> Grid:
    """The best repetition of each ranked row, sorted by RPS: as published tables have it."""
    rows = sorted(table.ranked, key=lambda s: -((s.best and s.best.ok_per_s) or 0.0))
    return Grid(PUBLISHED, tuple(published_cells(s, s.best) for s in rows))


def by_subject(table: LoadTable) -> dict[str, Summary]:
    """The rows of a load, by the names of their subjects."""
    return {summary.cell.subject.name: summary for summary in table.everything}


def beside_grid(ours: Mapping[str, Summary], published: PublishedTable) -> Grid:
    """Published figures and ours, in thousand requests per second."""
    rows = []
    for row in published.rows:
        summary = ours.get(row.subject)
        rows.append((plain(row.name), f"{row.value:g}", *_thousands(summary)))
    return Grid(("published", "k/s", "ours", "k RPS", "within", "verdict"), tuple(rows))


def _thousands(summary: Summary | None) -> tuple[str, str, str, str]:
    if summary is None:
        return ("", "", "", "")
    rate = None if summary.figures is None else summary.figures.ok_per_s
    interval = summary.interval
    within = "" if interval is None else f"{interval.low / 1e3:.1f}-{interval.high / 1e3:.1f}"
    shown = "" if rate is None else f"{rate / 1e3:.1f}"
    return (_full_name(summary), shown, within, summary.verdict or summary.outcome)


def text(tables: Iterable[LoadTable], *, width: int | None, published: bool) -> str:
    """All tables for people. `width` is the terminal's columns; None keeps rows whole."""
    shown = list(tables)
    absent = under_no_load(shown)
    names = {each.subject for each in absent}
    parts = [_text_of_load(t, width, published, without=names) for t in shown]
    parts += [
        "\n".join([title, *(f"  {each}" for each in lines)]) for title, lines in titled(absent)
    ]
    return "\n\n".join(parts) + "\n"


def _text_of_load(
    table: LoadTable, width: int | None, published: bool, without: Container[str]
) -> str:
    """One load; what is not measured of the subjects in `without` is said elsewhere."""
    parts = [table.title, ""]
    if table.ranked:
        parts.append(_laid_out(grid(table.ranked), width))
    else:
        parts.append("No row can be ranked.")
    if published and table.ranked and _as_published(table):
        parts += ["", "As published tables have it, the best repetition of each:", ""]
        parts.append(_laid_out(best_grid(table), width))
    for title, summaries in _apart(table, without):
        parts += ["", title]
        if any(s.figures is not None for s in summaries):
            parts.append(_laid_out(grid(summaries), width))
        parts += [f"  {line}" for line in _reasons(table, summaries)]
    notes = [s for s in table.ranked if s.why]
    if notes:
        parts += ["", "Suspect:"]
        parts += [f"  {_row_name(s)}: {plain(s.why)}" for s in notes]
    for summary in table.everything if table.load.broadcast else ():
        parts += _steps(summary)
    for each in table.published:
        parts += ["", plain(each.title), _aligned(beside_grid(by_subject(table), each))]
    return "\n".join([*parts, *_below(table)])


def _steps(summary: Summary) -> list[str]:
    """The steps of a subject's last search."""
    if not summary.steps:
        return []
    title = f"{_full_name(summary)}, the steps of its last repetition:"
    return ["", title, clients_header(), *(plain_row(step) for step in summary.steps)]


def plain_row(text: str) -> str:
    """A row of columns, without control characters."""
    return "".join(c for c in without_escapes(text) if _is_harmless(c))


def _reasons(table: LoadTable, summaries: Sequence[Summary]) -> list[str]:
    """A line for each row that was measured; of the others one for each subject and reason."""
    if all(s.outcome != "measured" for s in summaries):
        return [each.line() for each in reasons_once(summaries, table.everything)]
    return [f"{_row_name(s)}: {plain(s.why) or NO_REASON}" for s in summaries]


def _apart(table: LoadTable, without: Container[str] = ()) -> list[tuple[str, tuple[Summary, ...]]]:
    """What is not ranked, under the reason for it."""
    unmeasured = [s for s in table.unmeasured if s.cell.subject.name not in without]
    skipped = tuple(s for s in unmeasured if s.outcome == "skipped")
    failed = tuple(s for s in unmeasured if s.outcome == "failed")
    unsupported = tuple(s for s in unmeasured if s.outcome == "unsupported")
    groups = [
        ("Invalid, not ranked:", table.invalid),
        ("Traps, measured to show what a check catches, never ranked:", table.traps),
        ("Failed:", failed),
        ("Unsupported:", unsupported),
        ("Skipped:", skipped),
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


def _legend(ranked: Sequence[Summary]) -> str:
    """What the figures are, in one line."""
    kinds = {s.interval.kind for s in ranked if s.interval is not None}
    counts = sorted({s.counted for s in ranked})
    times = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    plural = "" if counts == [1] else "s"
    meaning = (
        f"interval: the range of RPS over {times} repetition{plural}"
        if kinds == {"range"}
        else f"interval: of the median RPS over {times} repetition{plural}, 95 % by rank"
        + (", or the range where it says so" if "range" in kinds else "")
    )
    return (
        f"RPS, BPS and percentiles are medians of {times} repetition{plural}, Req and Err sums, "
        f"min and max extremes of answers; times in ms.\n{meaning}. "
        "rank: 1 + rows whose interval lies wholly above."
    )


def _below(table: LoadTable) -> list[str]:
    """What the figures and marks of a table mean, after a blank line."""
    if table.load.broadcast:
        return ["", broadcast_table.LEGEND] if table.ranked else []
    if table.load.pools is not None:
        return ["", client_table.LEGEND] if table.ranked else []
    shown = [s.figures for s in table.everything if s.figures is not None]
    lines = [_legend(table.ranked)] if table.ranked else []
    if shown and table.load.rate_per_s is not None:
        lines.append("rate: what was offered; times are from when a request was due.")
    if any(figures.latency_at_least for figures in shown):
        lines.append(
            "A time after > is a lower bound: requests failed, never ended, or were never sent."
        )
    return ["", *lines] if lines else []


def _laid_out(whole: Grid, width: int | None) -> str:
    known = whole.header[: len(PUBLISHED)] == PUBLISHED
    if width is None or _text_width(whole) <= width or not known:
        return _aligned(whole)
    last = len(whole.header)
    names = (PUBLISHED.index("Framework"), PUBLISHED.index("Name"))
    parts: list[Sequence[int]] = [range(CUT), (*names, *range(CUT, len(PUBLISHED)))]
    if last > len(PUBLISHED):
        parts.append((*names, *range(len(PUBLISHED), last)))
    return "\n\n".join(_aligned(_columns(whole, part)) for part in parts)


def _columns(whole: Grid, wanted: Iterable[int]) -> Grid:
    """Some of the columns."""
    indexes = list(wanted)
    return Grid(
        tuple(whole.header[i] for i in indexes),
        tuple(tuple(row[i] for i in indexes) for row in whole.rows),
    )


def _widths(whole: Grid) -> list[int]:
    lines = (whole.header, *whole.rows)
    return [max(cell_len(line[i]) for line in lines) for i in range(len(whole.header))]


def _text_width(whole: Grid) -> int:
    return sum(_widths(whole)) + 2 * (len(whole.header) - 1)


def _aligned(whole: Grid) -> str:
    widths = _widths(whole)
    lines = []
    for line in (whole.header, *whole.rows):
        cells = [
            _padded(cell, width, name in LEFT_ALIGNED)
            for cell, width, name in zip(line, widths, whole.header, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _padded(cell: str, width: int, left: bool) -> str:
    blanks = " " * (width - cell_len(cell))
    return cell + blanks if left else blanks + cell


def markdown(tables: Iterable[LoadTable], *, published: bool) -> str:
    """The same as Markdown tables."""
    shown, parts = list(tables), []
    absent = under_no_load(shown)
    for table in shown:
        parts += [f"### {table.title}", ""]
        parts.append(_markdown_grid(grid(table.ranked)))
        if published and table.ranked and _as_published(table):
            parts += ["", "The best repetition of each:", "", _markdown_grid(best_grid(table))]
        for title, summaries in _apart(table, {each.subject for each in absent}):
            parts += ["", f"**{title}**", ""]
            parts += [f"- {_escaped(line)}" for line in _reasons(table, summaries)]
        for each in table.published:
            parts += ["", f"**{_escaped(plain(each.title))}**", ""]
            parts.append(_markdown_grid(beside_grid(by_subject(table), each)))
        parts += [*_below(table), ""]
    for title, lines in titled(absent):
        parts += [f"**{title}**", "", *(f"- {_escaped(line)}" for line in lines), ""]
    return "\n".join(parts)


def _markdown_grid(whole: Grid) -> str:
    rule = ["---" if name in LEFT_ALIGNED else "---:" for name in whole.header]
    lines = [whole.header, tuple(rule)]
    lines += [tuple(_escaped(cell) for cell in row) for row in whole.rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _escaped(cell: str) -> str:
    """No cell ends its column or becomes HTML."""
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "\\|")):
        cell = cell.replace(character, entity)
    return cell


def csv_lines(tables: Iterable[LoadTable], *, published: bool) -> str:
    """One CSV for all loads; with `published` the best repetitions follow as rows of their
    own, told apart by the column `figures`."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    tables = list(tables)
    if any(table.load.broadcast for table in tables):
        return _broadcast_csv(tables)
    if any(table.load.pools for table in tables):
        return _client_csv(tables)
    writer.writerow((*PUBLISHED, *OURS, *OF_LOAD))
    for table in tables:
        for summary in table.everything:
            writer.writerow(_csv_row(table, summary, summary.figures, "median"))
        for summary in table.ranked if published else ():
            writer.writerow(_csv_row(table, summary, summary.best, "best"))
    return out.getvalue()


def _broadcast_csv(tables: Sequence[LoadTable]) -> str:
    """One CSV for all loads of a suite of broadcasts."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow((*broadcast_table.COLUMNS, "step", "cores", "why"))
    for table in tables:
        for summary in table.everything:
            load = (str(table.load.connections), table.load.cores, summary.why)
            cells = (*broadcast_table.broadcast_cells(summary), *load)
            writer.writerow([csv_text(cell) for cell in cells])
    return out.getvalue()


def _client_csv(tables: Sequence[LoadTable]) -> str:
    """One CSV for all loads of a suite of clients."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow((*client_table.COLUMNS, "files", "why"))
    for table in tables:
        for summary in table.everything:
            pools = summary.cell.load.pools
            files = "" if pools is None or not pools.files else str(pools.files)
            cells = (*client_table.client_cells(summary), files, summary.why)
            writer.writerow([csv_text(cell) for cell in cells])
    return out.getvalue()


def _csv_row(table: LoadTable, summary: Summary, figures: Figures | None, which: str) -> list[str]:
    load = table.load
    # A number stays one: which are only lower bounds stands in a column of its own.
    plain_figures = figures and replace(figures, latency_at_least=())
    cells = [
        *published_cells(summary, plain_figures),
        *our_cells(summary),
        str(load.connections),
        str(load.pipeline),
        _rate(load),
        load.cores,
        which if figures is not None else "",
        "; ".join(figures.latency_at_least) if figures is not None else "",
        summary.why,
    ]
    return [csv_text(cell) for cell in cells]
