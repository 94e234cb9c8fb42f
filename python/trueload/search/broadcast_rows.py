"""The steps of a broadcast, shown as one row each: in our form or in the published one.

A row has the receipts of the senders, as the published method shows them, and beside them the
outcome of the deliveries. Pure.
"""

from __future__ import annotations

from trueload.record import figures
from trueload.record.schema import Record
from trueload.search.execute import StepResult
from trueload.stats import Quantile
from trueload.units import NS_PER_MS, format_bound, format_count, format_share, format_size

# Wide enough for any value, so that rows can be printed one by one.
_COLUMNS = (
    *(("clients", 7), ("p95", 8), ("min", 8), ("median", 8), ("max", 8)),
    *(("first", 8), ("half", 8), ("95 %", 8), ("last", 8)),
    *(("deliveries/s", 12), ("lost", 6), ("twice", 6), ("order", 6)),
    *(("CPU", 5), ("memory", 8), ("each", 8)),
)


def clients_header() -> str:
    """The header above the rows, in two lines."""
    of = f"{'':7}  {'receipt of the sender':-^38}  {'receivers, median message':-^38}"
    return of + "\n" + "  ".join(f"{name:>{width}}" for name, width in _COLUMNS)


def clients_line(taken: StepResult) -> str:
    """Return the row of one step.

    It shows the receipts (p95, min, median, max), the times of the first, middle, 95th-percentile
    and last receiver for the median message, the deliveries, and the server's use.
    """
    record = taken.record
    cells = (*_receipts(record), *_deliveries(record), *_server(record))
    row = [f"{taken.next.load:,.0f}", *cells]
    shown = "  ".join(f"{cell:>{width}}" for cell, (_, width) in zip(row, _COLUMNS, strict=True))
    why = f": {taken.judgement.why}" if taken.judgement.why else ""
    return f"{shown}  {taken.next.purpose}, {taken.judgement.outcome}{why}"


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


def _receipts(record: Record) -> list[str]:
    found = figures.latency(record).figures
    return [_shown(found.at(name)) for name in ("p95", "min", "p50", "max")]


def _shown(found: Quantile) -> str:
    return format_bound(found.value, above=found.above, too_few=found.too_few)


def _deliveries(record: Record) -> list[str]:
    found = record.deliveries
    if found is None:
        return [""] * 8
    times = (found.first_ns, found.median_ns, found.p95_ns, found.last_ns)
    per_s = "" if found.per_s is None else format_count(found.per_s)
    counts = (found.lost, found.duplicate, found.out_of_order)
    middles = (_shown(each.at("p50")) for each in times)
    return [*middles, per_s, *(format_count(count) for count in counts)]


def _server(record: Record) -> list[str]:
    found = record.server
    if found is None:
        return [""] * 3
    window_s = record.window.window_ns / 1e9
    peak, each = found.peak_rss_bytes, found.bytes_per_connection
    return [
        format_share(found.cpu_s / window_s) if window_s > 0 else "",
        "" if peak is None else format_size(peak),
        "" if each is None else format_size(each),
    ]
