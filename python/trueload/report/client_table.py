"""The table of a suite of clients: the published columns, then what the server saw and it cost.

Pure. Must not know how a table is laid out.
"""

from __future__ import annotations

from trueload.suites.client_figures import ClientFigures
from trueload.suites.summary import Summary
from trueload.text import plain
from trueload.units import format_cell, format_size

PUBLISHED = ("Client", "Pool Count", "Pool Size", "Concurrency", "Req/sec", "Error %")
COLUMNS = (
    *PUBLISHED,
    *("rank", "interval", "CPU/req", "memory", "peak", "mean", "opened"),
    *("pool ceiling", "ceiling", "share", "verdict"),
)
LEGEND = (
    "Req/sec: answers with status 200 that both ends have, by the server's clock; rank: 1 + rows"
    " whose interval lies\nwholly above. CPU/req: of the client's process tree; memory: its peak."
    " peak and mean: requests open at once, as\nthe server saw them; opened: connections opened"
    " anew while it was measured. pool ceiling: pool count x pool size\n/ the server's time for an"
    " answer, the most that Little's law allows; ceiling: that, or concurrency / that time if it"
    "\nis less; share: how much of it was reached. The repetitions of a row are orders to as many"
    " processes as there are rounds."
)


def client_cells(summary: Summary) -> tuple[str, ...]:
    """One row."""
    pools, interval = summary.cell.load.pools, summary.interval
    sizes = (pools.pools, pools.pool_size, pools.concurrency) if pools is not None else ()
    names = (plain(summary.cell.subject.name), *map(str, sizes))
    found = summary.figures.client if summary.figures is not None else None
    if summary.figures is None or found is None:
        return (*names, *[""] * (len(COLUMNS) - len(names) - 1), summary.verdict or summary.outcome)
    within = ""
    if interval is not None:
        label = " (range)" if interval.kind == "range" else ""
        within = f"{format_cell(interval.low)}-{format_cell(interval.high)}{label}"
    peak = summary.figures.peak_rss_bytes
    return (
        *names,
        format_cell(found.goodput_per_s),
        f"{found.error_share * 100:.1f}",
        "" if summary.rank is None else str(summary.rank),
        within,
        _us(found.cpu_us_per_request),
        "" if peak is None else format_size(peak),
        *_seen(found),
        summary.verdict or summary.outcome,
    )


def _seen(found: ClientFigures) -> tuple[str, ...]:
    share = found.ceiling_share
    return (
        str(found.requests_open_peak),
        format_cell(found.requests_open_mean),
        str(found.opened),
        format_cell(found.pool_ceiling_per_s),
        format_cell(found.ceiling_per_s),
        "" if share is None else f"{share * 100:.0f}%",
    )


def _us(value: float | None) -> str:
    return "" if value is None else f"{value:.1f} us"
