"""The check `window`: is the window long compared with the time of an answer?

A pure function of a record.
"""

from __future__ import annotations

from trueload.protocol.plan import Turns
from trueload.record.schema import Record
from trueload.units import format_duration, format_rate, format_share
from trueload.verdict.common import Definition, Finding, not_applicable, times

# With fewer, the answers at the window's two edges are up to a fifth of the figure. Without a
# warm-up, the answers that begin together are a fifth of the window (docs/method.md).
ANSWERS_WARN = 10.0


def check_window(record: Record) -> Finding:
    """Grade the number of mean answer times, one after the other, that fit into the window."""
    counted = record.throughput
    took = record.total_ns if record.total_ns.mean else record.service_ns
    if isinstance(record.plan.window.load, Turns):
        return not_applicable("a broadcast is judged by its deliveries, not by its rate")
    if counted.ok_per_s is None or not took.mean:
        return not_applicable("no answer was timed")
    if record.counts.ok < ANSWERS_WARN:
        ok = record.counts.ok
        return Finding("warn", f"{times(ok, 'answer')}: too few", ok, ANSWERS_WARN)
    window_ns = counted.counted_to_ns or record.window.window_ns
    fitting = window_ns / took.mean
    found = f"{fitting:.1f} answers a slot: one takes {format_duration(took.mean)} on average"
    if fitting >= ANSWERS_WARN:
        return Finding("pass", found, fitting, ANSWERS_WARN)
    why = f"{found}, and {format_duration(window_ns)} count"
    error = counted.ok_error_per_s
    if error is not None and counted.ok_per_s:
        share = format_share(error / counted.ok_per_s)
        why += f"; {format_rate(counted.ok_per_s, 'requests')} has a standard error of {share}"
    return Finding("warn", why, fitting, ANSWERS_WARN)


WINDOW = Definition(
    name="window",
    order=125,
    compute=check_window,
    of_client="the reference server's own account has no answers that an edge cuts",
    fault="load",
    meaning=(
        "With few answers per slot, the answers that the window's edges cut off decide much"
        " of each figure."
    ),
    remedy="Use a longer --duration, or more --requests, and a --warmup.",
)
