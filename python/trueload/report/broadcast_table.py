"""The table of a suite of broadcasts: how many clients each subject carried, and what that cost.

Pure. Must not know how a table is laid out.
"""

from __future__ import annotations

from trueload.suites.summary import Summary
from trueload.text import plain
from trueload.units import format_cell, format_size

COLUMNS = (
    *("Language", "Framework", "Category", "Name"),
    *("clients", "interval", "median", "p95", "deliveries/s", "lost", "memory/client"),
    *("rank", "CPU", "memory", "verdict"),
)
LEGEND = (
    "clients: the most that keep to the limit, confirmed; +: more was not tried, or our side was"
    " the limit.\ninterval: where that lies; over several repetitions, their spread.\nmedian and"
    " p95 of the senders' receipts with so many clients, in ms; memory/client: what the subject"
    " grew by for each."
)


def broadcast_cells(summary: Summary) -> tuple[str, ...]:
    """One row."""
    subject, figures, interval = summary.cell.subject, summary.figures, summary.interval
    names = (subject.language, subject.framework, subject.category, subject.variant)
    shown = tuple(plain(name) for name in names)
    if figures is None or figures.carried is None:
        return (*shown, *[""] * (len(COLUMNS) - len(shown) - 1), summary.verdict or summary.outcome)
    found, cpu = figures.carried, figures.cpu_share
    each, peak = found.bytes_per_connection, figures.peak_rss_bytes
    within = "" if interval is None else f"{format_cell(interval.low)}-{format_cell(interval.high)}"
    return (
        *shown,
        f"{found.clients:.0f}{'' if found.above is not None or not found.clients else '+'}",
        within,
        f"{'> ' if 'p50' in figures.latency_at_least else ''}{_ms(figures.p50_ms)}",
        _ms(found.p95_ms),
        format_cell(found.deliveries_per_s),
        format_cell(found.lost),
        "" if each is None else format_size(each),
        "" if summary.rank is None else str(summary.rank),
        "" if cpu is None else f"{cpu * 100:.0f}%",
        "" if peak is None else format_size(peak),
        summary.verdict or summary.outcome,
    )


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"
