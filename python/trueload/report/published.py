"""A suite's results in the columns of its published source, with the published rows beside ours.

How: each suite comes to sheets of strings: a row of ours, and below it what was published of the
same subject under the same load. The writers lay them out as text, CSV or HTML; whatever a peer or
a manifest said is inert there. Published and ours were measured on different machines: they stand
side by side, and are never ranked together. Pure.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from trueload.published import tables as published
from trueload.record import figures
from trueload.report import client_table, table
from trueload.stats import Quantile
from trueload.store.runs import Damaged, Row
from trueload.suites.plan import PlannedLoad, SuitePlan
from trueload.suites.summary import LoadTable, Summary
from trueload.text import csv_cell, grid_lines, plain
from trueload.verdict.apachebench import ApacheBench, Times

Format = Literal["text", "csv", "html"]
OURS, PUBLISHED = "ours", "published"
BROADCAST_COLUMNS = ("clients", "95per-rtt", "min-rtt", "median-rtt", "max-rtt")
# The load that was published: a connection per request.
C10K_SUBJECT = "javascript/node-http"


@dataclass(frozen=True)
class Sheet:
    """A table of one load, all of strings."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def sheets(
    plan: SuitePlan, tables: Sequence[LoadTable], rows: Iterable[Row | Damaged]
) -> list[Sheet]:
    """Everything of a run; ``rows`` are those of the store, for the steps of broadcasts."""
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


def _servers(each: LoadTable) -> Sheet:
    load = each.load
    theirs = {
        row.subject: row
        for row in published.server_rows()
        if row.subject and (row.connections, row.pipeline) == (load.connections, load.pipeline)
    }
    rows = []
    for summary in each.everything:
        cells = table.published_cells(summary, summary.figures)
        rows.append((OURS, *cells, _verdict(summary)))
        same = theirs.get(summary.cell.subject.name)
        if same is not None:
            found = (same.cells.get(name, "") for name in table.PUBLISHED)
            rows.append((PUBLISHED, *found, ""))
    return Sheet(load.title, ("whose", *table.PUBLISHED, "verdict"), tuple(rows))


def _clients(tables: Iterable[LoadTable]) -> Sheet:
    theirs = {
        (row.subject, row.pools, row.pool_size, row.concurrency, row.files): row
        for row in published.client_rows()
    }
    width = len(client_table.PUBLISHED)
    rows: list[tuple[str, ...]] = []
    for summary in (row for each in tables for row in each.everything):
        rows.append((OURS, *client_table.client_cells(summary)[:width], _verdict(summary)))
        pools = summary.cell.load.pools
        if pools is not None:
            grid = (pools.pools, pools.pool_size, pools.concurrency, pools.files)
            same = theirs.get((summary.cell.subject.name, *grid))
            if same is not None:
                rows.append((PUBLISHED, *same.cells, ""))
    return Sheet("Clients", ("whose", *client_table.PUBLISHED, "verdict"), tuple(rows))


def _broadcasts(rows: Iterable[Row | Damaged]) -> list[Sheet]:
    """A sheet for each repetition of a subject: its steps, then the published ones."""
    ours: dict[tuple[str, str], list[tuple[str, ...]]] = {}
    for row in rows:
        if isinstance(row, Row) and row.record is not None and "load" in row.labels:
            latency = figures.latency(row.record).figures
            cells = tuple(_in_ms(latency.at(name)) for name in ("p95", "min", "p50", "max"))
            key = (row.labels.get("subject", ""), row.labels.get("repetition", ""))
            step = (OURS, f"{float(row.labels['load']):.0f}", *cells, row.record.verdict)
            ours.setdefault(key, []).append(step)
    steps = published.broadcast_steps()
    made = []
    for (subject, repetition), mine in ours.items():
        theirs = steps.get(published.OF_BROADCASTS.get(subject, ""), [])
        beside = [(PUBLISHED, str(step.clients), *step.cells, "") for step in theirs]
        header = ("whose", *BROADCAST_COLUMNS, "verdict")
        made.append(Sheet(f"{subject}, {repetition}", header, (*mine, *beside)))
    return made


def _in_ms(found: Quantile) -> str:
    return "" if found.value is None else f"{'> ' if found.above else ''}{found.value / 1e6:.0f}"


def _thousands(each: LoadTable) -> Sheet:
    """Thousand requests per second, a server a row."""
    of_subject: dict[str, list[tuple[str, ...]]] = {}
    for one in each.published:
        for row in one.rows:
            cells = (PUBLISHED, row.name, f"{row.value:g}", "")
            of_subject.setdefault(row.subject, []).append(cells)
    rows: list[tuple[str, ...]] = []
    for summary in each.everything:
        per_s = None if summary.figures is None else summary.figures.ok_per_s
        shown = "" if per_s is None else f"{per_s / 1e3:.1f}"
        name = summary.cell.subject.name
        rows += [(OURS, name, shown, _verdict(summary)), *of_subject.pop(name, [])]
    rows += [cells for found in of_subject.values() for cells in found]
    return Sheet(each.load.title, ("whose", "server", "k requests/s", "verdict"), tuple(rows))


def _blocks(each: LoadTable) -> list[tuple[Summary, ApacheBench]]:
    found = ((row, row.figures) for row in each.everything)
    return [
        (row, figures.apachebench)
        for row, figures in found
        if figures is not None and figures.apachebench is not None
    ]


def _apachebench(each: LoadTable) -> Sheet:
    """A figure a row, a subject a column; the published run is a column of its own."""
    blocks = _blocks(each)
    theirs = published.c10k_figures() if _as_published(each.load) else {}
    columns = [_figures(found) for _, found in blocks]
    rows = [
        (name, *([theirs.get(name, "")] if theirs else []), *(column[name] for column in columns))
        for name in columns[0]
    ]
    verdicts = tuple(_verdict(row) for row, _ in blocks)
    rows.append(("verdict", *([""] if theirs else []), *verdicts))
    beside = (f"{PUBLISHED} ({C10K_SUBJECT})",) if theirs else ()
    header = ("figure", *beside, *(row.cell.subject.name for row, _ in blocks))
    return Sheet(each.load.title, header, tuple(rows))


def _as_published(load: PlannedLoad) -> bool:
    return load.connections == 10_000 and load.close is True


def _figures(found: ApacheBench) -> dict[str, str]:
    """By the names of the published figures, in their order."""
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
    parts = (
        ("Connect", found.connect),
        ("Processing", found.processing),
        ("Waiting", found.waiting),
        ("Total", found.total),
    )
    for name, times in parts:
        cells |= _times(name, times)
    for each in found.percentiles:
        above = "> " if each.above else ""
        cells[f"{each.percent} % [ms]"] = "" if each.ms is None else f"{above}{each.ms:.0f}"
    return {
        **cells,
        "Server user time [s]": _number(found.server_user_s, 2),
        "Server system time [s]": _number(found.server_system_s, 2),
        "Server peak memory [KiB]": "" if peak is None else f"{peak / 1024:.0f}",
    }


def _times(name: str, times: Times) -> dict[str, str]:
    return {
        f"{name} min [ms]": _number(times.min, 0),
        f"{name} mean [ms]": _number(times.mean, 0),
        f"{name} sd [ms]": _number(times.sd, 1),
        f"{name} median [ms]": f"{'> ' if times.median_above else ''}{_number(times.median, 0)}",
        f"{name} max [ms]": _number(times.max, 0),
    }


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _verdict(summary: Summary) -> str:
    return summary.verdict or summary.outcome


def as_text(made: Sequence[Sheet]) -> str:
    """For people."""
    parts = []
    for sheet in made:
        rows = [[plain(cell) for cell in row] for row in sheet.rows]
        parts.append("\n".join([plain(sheet.title), "", *grid_lines(sheet.header, rows)]))
    return "\n\n".join(parts) + "\n"


def as_csv(made: Sequence[Sheet]) -> str:
    """One table after the other, each with its header and its load in front; no formulas."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for number, sheet in enumerate(made):
        if number and sheet.header != made[number - 1].header:
            writer.writerow([])
        if not number or sheet.header != made[number - 1].header:
            writer.writerow(["load", *(csv_cell(cell) for cell in sheet.header)])
        for row in sheet.rows:
            writer.writerow([csv_cell(cell) for cell in (sheet.title, *row)])
    return out.getvalue()


def as_html(made: Sequence[Sheet]) -> str:
    """A page of its own, in which nothing acts."""
    body = "\n".join(_html_table(sheet) for sheet in made)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'">\n'
        f"<title>As published</title></head><body>\n{body}\n</body></html>\n"
    )


def _html_table(sheet: Sheet) -> str:
    lines = [_html_row("th", sheet.header), *(_html_row("td", row) for row in sheet.rows)]
    caption = f"<caption>{_html(sheet.title)}</caption>"
    return "\n".join(['<table border="1">', caption, *lines, "</table>"])


def _html_row(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{_html(cell)}</{tag}>" for cell in cells) + "</tr>"


def _html(text: str) -> str:
    return escape(plain(text))


WRITERS: dict[Format, Callable[[Sequence[Sheet]], str]] = {
    "text": as_text,
    "csv": as_csv,
    "html": as_html,
}
