"""A suite's results in the columns of its published source, with the published rows beside ours.

How: each suite becomes tables of strings. Below each row of ours stands what was published for the
same subject under the same load. The writers lay them out as text, CSV or HTML, and make any text
of a peer or a manifest inert. Published and own figures were measured on different machines: they
stand side by side, and are never ranked together. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Literal

from trueload.published import tables as published
from trueload.record import figures
from trueload.record.bound import at_least
from trueload.report.columns import CLIENTS, SERVERS, Kind, rows_of, verdict_of
from trueload.report.export.csv import csv_rows
from trueload.report.grid import Grid, html_cell, html_table, text_lines
from trueload.stats import Quantile
from trueload.store.rows import DamagedRow, Row
from trueload.suites.load_tables import LoadTable
from trueload.suites.plan import PlannedLoad, SuitePlan
from trueload.suites.summary import Summary
from trueload.text import plain
from trueload.units import TOO_FEW, largest_text
from trueload.verdict.apachebench import ApacheBench, Times

Format = Literal["text", "csv", "html"]
OURS, PUBLISHED = "ours", "published"
NOTE = (
    "Published times are of answers alone. In ours a request without an answer counts as slower"
    " than any (after >: a lower bound); min and max are of answers."
)
AB_NOTE = (
    "Ours: medians and percentages count requests that failed, never ended or were never sent as"
    " slower than any; min, mean, sd and max are of answers."
)
BROADCAST_COLUMNS = ("clients", "95per-rtt", "min-rtt", "median-rtt", "max-rtt")
# The published load: a connection per request.
C10K_SUBJECT = "javascript/node-http"


def sheets(
    plan: SuitePlan, tables: Sequence[LoadTable], rows: Iterable[Row | DamagedRow]
) -> list[Grid]:
    """Return all tables of a run; ``rows`` are those of the store, for the steps of broadcasts."""
    if plan.broadcast is not None:
        return _broadcasts(rows)
    if plan.report == "apachebench":
        return [_apachebench(each) for each in tables if _blocks(each)]
    if plan.client_wait_ms is not None:
        return [_clients(tables)]
    if plan.contract == "tcp-echo":
        return [_thousands(each) for each in tables]
    beside = [_thousands(each) for each in tables if each.published]
    return [*(_servers(each) for each in tables), *beside]


def _servers(each: LoadTable) -> Grid:
    load = each.load
    theirs = {
        row.subject: tuple(row.cells.get(name, "") for name in _headings(SERVERS))
        for row in published.server_rows()
        if row.subject and (row.connections, row.pipeline) == (load.connections, load.pipeline)
    }
    made = _beside(load.title, SERVERS, each.everything, lambda s: theirs.get(s.cell.subject.name))
    return replace(made, note=NOTE)


def _clients(tables: Iterable[LoadTable]) -> Grid:
    theirs = {
        (row.subject, row.pools, row.pool_size, row.concurrency, row.files): row.cells
        for row in published.client_rows()
    }

    def found(summary: Summary) -> tuple[str, ...] | None:
        pools, name = summary.cell.load.pools, summary.cell.subject.name
        if pools is None:
            return None
        return theirs.get((name, pools.pools, pools.pool_size, pools.concurrency, pools.files))

    return _beside("Clients", CLIENTS, (row for each in tables for row in each.everything), found)


def _headings(kind: Kind) -> tuple[str, ...]:
    return tuple(column.heading for column in kind.columns[: kind.published])


def _beside(
    title: str,
    kind: Kind,
    summaries: Iterable[Summary],
    theirs: Callable[[Summary], tuple[str, ...] | None],
) -> Grid:
    """Return our rows in the published columns, each followed by the published row."""
    rows: list[tuple[str, ...]] = []
    for row in rows_of(summaries):
        cells = kind.cells(row, kind.columns[: kind.published])
        rows.append((OURS, *cells, verdict_of(row.summary)))
        if (same := theirs(row.summary)) is not None:
            rows.append((PUBLISHED, *same, ""))
    return Grid(("whose", *_headings(kind), "verdict"), tuple(rows), title)


def _broadcasts(rows: Iterable[Row | DamagedRow]) -> list[Grid]:
    """Return a table per repetition of a subject: its steps, then the published ones."""
    ours: dict[tuple[str, str], list[tuple[str, ...]]] = {}
    for row in rows:
        if isinstance(row, Row) and row.record is not None and "load" in row.labels:
            latency = figures.latency(row.record).figures
            cells = tuple(_in_ms(latency.at(name)) for name in ("p95", "min", "p50", "max"))
            key = (row.labels.get("subject", ""), row.labels.get("repetition", ""))
            step = (OURS, f"{float(row.labels['load']):.0f}", *cells, row.record.verdict_text)
            ours.setdefault(key, []).append(step)
    steps = published.broadcast_steps()
    made = []
    for (subject, repetition), mine in ours.items():
        theirs = steps.get(published.OF_BROADCASTS.get(subject, ""), [])
        beside = [(PUBLISHED, str(step.clients), *step.cells, "") for step in theirs]
        header = ("whose", *BROADCAST_COLUMNS, "verdict")
        made.append(Grid(header, (*mine, *beside), f"{subject}, {repetition}", note=NOTE))
    return made


def _in_ms(found: Quantile) -> str:
    if found.value is None or found.too_few:
        return "" if found.value is None else TOO_FEW
    text = f"{'> ' if found.above else ''}{found.value / 1e6:.0f}"
    return largest_text(text, found.largest_of)


def _thousands(each: LoadTable) -> Grid:
    """Return a table of thousand requests per second, with a server per row."""
    of_subject: dict[str, list[tuple[str, ...]]] = {}
    for one in each.published:
        for row in one.rows:
            cells = (PUBLISHED, row.name, f"{row.value:g}", "")
            of_subject.setdefault(row.subject, []).append(cells)
    rows: list[tuple[str, ...]] = []
    for summary in each.everything:
        per_s = None if summary.figures is None else summary.figures.ok_per_s
        shown = "" if per_s is None else at_least(f"{per_s / 1e3:.1f}", summary.lower_bound)
        name = summary.cell.subject.name
        rows += [(OURS, name, shown, verdict_of(summary)), *of_subject.pop(name, [])]
    rows += [cells for found in of_subject.values() for cells in found]
    return Grid(("whose", "server", "k requests/s", "verdict"), tuple(rows), each.load.title)


def _blocks(each: LoadTable) -> list[tuple[Summary, ApacheBench]]:
    found = ((row, row.figures) for row in each.everything)
    return [
        (row, figures.apachebench)
        for row, figures in found
        if figures is not None and figures.apachebench is not None
    ]


def _apachebench(each: LoadTable) -> Grid:
    """Return a table with a figure per row and a subject per column.

    The published run has a column of its own.
    """
    blocks = _blocks(each)
    theirs = published.c10k_figures() if _as_published(each.load) else {}
    columns = [_figures(found) for _, found in blocks]
    rows = [
        (name, *([theirs.get(name, "")] if theirs else []), *(column[name] for column in columns))
        for name in columns[0]
    ]
    verdicts = tuple(verdict_of(row) for row, _ in blocks)
    rows.append(("verdict", *([""] if theirs else []), *verdicts))
    beside = (f"{PUBLISHED} ({C10K_SUBJECT})",) if theirs else ()
    header = ("figure", *beside, *(row.cell.subject.name for row, _ in blocks))
    return Grid(header, tuple(rows), each.load.title, note=AB_NOTE)


def _as_published(load: PlannedLoad) -> bool:
    return load.connections == 10_000 and load.close is True


def _figures(found: ApacheBench) -> dict[str, str]:
    """Return the figures by their published names, in the published order."""
    peak = found.server_peak_rss_bytes
    cells: dict[str, str] = {
        "Time taken for tests [s]": f"{found.taken_s:.3f}",
        "Complete requests": str(found.complete),
        "Failed requests": str(found.failed_count),
        "Requests per second": _number(found.per_s, 2),
        "Time per request [ms]": _number(found.per_request_ms, 3),
        "Time per request across all [ms]": _number(found.across_all_ms, 3),
        "Transfer rate [KiB/s]": _number(found.received_kib_per_s, 2),
    }
    for name, times in found.parts:
        cells |= _times(name, times)
    for each in found.percentiles:
        shown = "" if each.ms is None else f"{'> ' if each.above else ''}{each.ms:.0f}"
        cells[f"{each.percent} % [ms]"] = TOO_FEW if each.too_few else shown
    return {
        **cells,
        "Server user time [s]": _number(found.server_user_s, 2),
        "Server system time [s]": _number(found.server_system_s, 2),
        "Server peak memory [KiB]": "" if peak is None else f"{peak / 1024:.0f}",
    }


def _times(name: str, times: Times) -> dict[str, str]:
    median = f"{'> ' if times.median_above else ''}{_number(times.median, 0)}"
    return {
        f"{name} min [ms]": _number(times.min, 0),
        f"{name} mean [ms]": _number(times.mean, 0),
        f"{name} sd [ms]": _number(times.sd, 1),
        f"{name} median [ms]": TOO_FEW if times.median_too_few else median,
        f"{name} max [ms]": largest_text(_number(times.max, 0), times.largest_of),
    }


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def as_text(made: Sequence[Grid]) -> str:
    parts = ["\n".join([plain(grid.title), "", *text_lines(grid)]) for grid in made]
    return "\n\n".join([*parts, *_notes(made)]) + "\n"


def _notes(made: Sequence[Grid]) -> list[str]:
    """Return the notes on all tables, each once."""
    return list(dict.fromkeys(grid.note for grid in made if grid.note))


def as_csv(made: Sequence[Grid]) -> str:
    """Return one table after the other, each with its header, and the load in the first column."""
    pieces: list[str] = []
    for number, grid in enumerate(made):
        if not number or grid.header != made[number - 1].header:
            pieces += ["\n"] if number else []
            pieces.append(csv_rows([("load", *grid.header)]))
        pieces.append(csv_rows((grid.title, *row) for row in grid.rows))
    return "".join(pieces)


def as_html(made: Sequence[Grid]) -> str:
    """Return a self-contained page without any active content."""
    notes = [f"<p>{html_cell(note)}</p>" for note in _notes(made)]
    body = "\n".join([*(html_table(grid, grid.title) for grid in made), *notes])
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'">\n'
        f"<title>As published</title></head><body>\n{body}\n</body></html>\n"
    )


WRITERS: dict[Format, Callable[[Sequence[Grid]], str]] = {
    "text": as_text,
    "csv": as_csv,
    "html": as_html,
}
