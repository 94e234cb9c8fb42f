"""The check `data`: did the rows of data last for the whole run? A pure function of a record."""

from __future__ import annotations

from trueload.protocol.plan import Duration
from trueload.record.schema import Record
from trueload.units import format_count, format_duration
from trueload.verdict.common import Definition, Finding, not_applicable, times


def check_data(record: Record) -> Finding:
    """Warn if each row was to be sent once, and none was left before the run was over."""
    data = record.data
    if record.plan.generate.data is None:
        return not_applicable("no data fills the requests")
    if data is None or not data.rows:
        return not_applicable("it is not known which rows were sent")
    rows, passes = times(data.rows, "row"), data.taken / data.rows
    if data.spent:
        stop = record.plan.window.stop
        asked = (
            f"{format_duration(record.window.window_ns)} of {format_duration(stop.ns)}"
            if isinstance(stop, Duration)
            else f"{times(record.counts.issued, 'request')} of {format_count(stop.count)}"
        )
        return Finding("warn", f"all {rows} were used up: the run ended after {asked}", passes, 1.0)
    if passes <= 1:
        return Finding("pass", f"{format_count(data.taken)} of {rows} were sent", passes)
    return Finding("pass", f"{rows} were sent {passes:.1f} times each", passes)


DATA = Definition(
    name="data",
    order=127,
    compute=check_data,
    of_client="a client under test sends its own requests",
    fault="load",
    meaning=(
        "When each row is sent once and none is left, the run ends early, so its figures are"
        " those of a shorter run."
    ),
    remedy="Use a file with more rows, a shorter --duration, or --data-order sequential.",
)
