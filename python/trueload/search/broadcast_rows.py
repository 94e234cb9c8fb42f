"""The steps of a broadcast, shown as one row each: in our form or in the published one.

A row has the times of deliveries and of the senders' receipts, which the published method shows.
Pure.
"""

from __future__ import annotations

from trueload.record import figures
from trueload.record.schema import Record
from trueload.search.execute import StepResult
from trueload.stats import Quantile
from trueload.text import folded, plain
from trueload.units import NS_PER_MS, format_bound, format_count, format_share

# Wide enough for any value, so that rows can be printed one by one.
_COLUMNS = (
    *(("clients", 7), ("delivery", 8), ("receipt", 8), ("last", 8)),
    *(("lost", 5), ("twice", 5), ("CPU", 6)),
)


def clients_header() -> str:
    """The header above the rows, in two lines."""
    of = f"{'':7}  {'p95':-^18}  {'receiver':>8}"
    return of + "\n" + "  ".join(f"{name:>{width}}" for name, width in _COLUMNS)


def clients_lines(taken: StepResult) -> list[str]:
    """Return the row of one step, and its reason if it needs one.

    It shows the p95 of deliveries and of receipts, when the last receiver had the median message,
    what was lost or came twice, and the server's CPU. JSON has the rest.
    """
    row = [f"{taken.next.load:,.0f}", *_cells(taken.record)]
    shown = "  ".join(f"{cell:>{width}}" for cell, (_, width) in zip(row, _COLUMNS, strict=True))
    line = f"{shown}  {taken.next.purpose}, {taken.judgement.outcome}"
    note = plain(taken.judgement.note)
    return [line, *(folded(f"{'':9}{note}", indent=" " * 9) if note else [])]


def shootout_line(taken: StepResult) -> str:
    """Return one step as websocket-bench printed it, with times in whole milliseconds."""
    found = figures.latency(taken.record).figures
    return (
        f"clients: {taken.next.load:5.0f}"
        f"    95per-rtt: {_ms(found.at('p95'))}ms"
        f"    min-rtt: {_ms(found.at('min'))}ms"
        f"    median-rtt: {_ms(found.at('p50'))}ms"
        f"    max-rtt: {_ms(found.at('max'))}ms"
    )


def is_published(taken: StepResult) -> bool:
    """Whether the original tool would have shown this step.

    It left out the step that crossed the limit, and had no steps after that one.
    """
    return taken.next.purpose == "bracket" and taken.judgement.outcome == "kept"


def _ms(found: Quantile) -> str:
    shown = f"{((found.value or 0) + NS_PER_MS // 2) // NS_PER_MS:3d}"
    return f">{shown}" if found.above else shown


def _shown(found: Quantile) -> str:
    return format_bound(found.value, above=found.above, too_few=found.too_few)


def _cells(record: Record) -> list[str]:
    found, receipt = record.deliveries, figures.latency(record).figures.at("p95")
    delivery, last, lost, twice = "", "", "", ""
    if found is not None:
        delivery, last = _shown(found.delivery_ns.at("p95")), _shown(found.last_ns.at("p50"))
        lost, twice = format_count(found.lost), format_count(found.duplicate)
    return [delivery, _shown(receipt), last, lost, twice, _cpu(record)]


def _cpu(record: Record) -> str:
    window_s = record.window.window_ns / 1e9
    return format_share(record.server.cpu_s / window_s) if record.server and window_s > 0 else ""
