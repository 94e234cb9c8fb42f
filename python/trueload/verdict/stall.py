"""The check `stall`: did the server stand still for times that a closed loop hides?

Each connection of a closed loop waits for its answer before it sends again. While the server stands
still, few requests are outstanding, so only few of many are slow. Percentiles hardly see how long
every user who came meanwhile would have waited (G. Tene, *How NOT to measure latency*: coordinated
omission). What an open loop would have shown is computed from the gaps between answers or, where
others are answered meanwhile, from the waits weighed by their time (``weighed``). Pure.
"""

from __future__ import annotations

from bisect import bisect_right

from trueload.buckets import Buckets
from trueload.protocol.plan import Closed
from trueload.record import figures
from trueload.record.schema import Record
from trueload.stats import sparse_bounds
from trueload.units import format_duration, format_share
from trueload.verdict.common import HIDDEN_WAITS, Definition, Finding, is_staged, not_applicable
from trueload.verdict.weighed import (
    all_at_once,
    left_share,
    long_waits,
    pauses,
    place_ns,
)

STALL_WARN = 0.01  # of the window: an open loop's p99 is then such a wait
# With many connections p99.9 is such a wait itself, and only p99 hides it. On a machine with two
# CPUs, both full, a scheduler makes up to 2 % of gaps that are long against p99.
STALL_WARN_P99 = 0.05
STALL_TIMES = 10.0  # times the percentile: no service time is this far from the others by chance
CHANCE_MOST = STALL_WARN / 10  # in the mean: it varies
# A percentile half as long as a schedule's is another figure. A scheduler's turns are shorter than
# 10 ms.
HIDDEN_TIMES, HIDDEN_LEAST_NS = 2.0, 10_000_000
STEPS = 60  # of a bisection: far below a nanosecond


def check_stall(record: Record) -> Finding:
    """Grade the share of the window in gaps that are far longer than a slow answer."""
    flow = record.flow
    if not isinstance(record.plan.window.load, Closed):
        return not_applicable("the load is not a closed loop")
    if is_staged(record):
        return not_applicable("the load itself changes (--stages)")
    if flow is None or flow.whole_ns <= 0 or record.slots is None:
        return not_applicable("it is not known when answers came")
    times = figures.total(record)
    name, slow, limit = "p99.9", times.percentile(0.999), STALL_WARN
    if slow.value is None or slow.above:
        return not_applicable(f"{name} is not known")
    gaps = longer_gaps(flow.gaps, slow.value)
    if sum_ns(gaps) <= limit * flow.whole_ns and _is_judged_by_p99(record, times):
        name, slow, limit = "p99", times.percentile(0.99), STALL_WARN_P99
        gaps = longer_gaps(flow.gaps, slow.value or 0)
    stalled = sum_ns(gaps) / flow.whole_ns
    if stalled <= limit:
        return _of_waits(record, times, stalled)
    slow_text = format_duration(slow.value or 0)
    hidden_ns = open_loop_ns(times.known, gaps, flow.whole_ns)
    why = (
        f"nothing was answered for up to {format_duration(max(gaps))} at a time,"
        f" {format_share(stalled)} of the window in all: {name} is {slow_text},"
        f" {_shown_by_schedule(hidden_ns)}"
    )
    return Finding("warn", why, stalled, limit)


def _of_waits(record: Record, times: figures.Sample, stalled: float) -> Finding:
    """Grade the waits by their time, if the server did not stand still for all at once."""
    gone = f"times without any answer, longer than {STALL_TIMES:.0f} x p99: {format_share(stalled)}"
    p99 = times.percentile(0.99)
    if p99.value is None or p99.above:
        return Finding("pass", gone, stalled, STALL_WARN)
    known = times.known
    beyond_ns = max(HIDDEN_TIMES * p99.value, p99.value + HIDDEN_LEAST_NS)
    share = left_share(record, known, long_waits(known, beyond_ns), beyond_ns)
    waits = pauses(record, known, beyond_ns) if share > STALL_WARN else {}
    share = left_share(record, known, waits, beyond_ns)
    if share <= STALL_WARN:
        return Finding("pass", gone, stalled, STALL_WARN)
    hidden_ns = open_loop_ns(known, waits, place_ns(record, known))
    why = (
        f"connections waited together for up to {format_duration(max(waits))}: at"
        f" {format_share(share)} of all times one had more than {format_duration(beyond_ns)} left"
        f" to wait. p99 is {format_duration(p99.value)}, {_shown_by_schedule(hidden_ns)}"
    )
    return Finding("warn", why, share, STALL_WARN)


def _shown_by_schedule(ns: float) -> str:
    return (
        f"but an open loop (--rate) would have shown a p99 of about {format_duration(ns)}"
        " (coordinated omission)"
    )


STALL = Definition(
    name="stall",
    order=135,
    compute=check_stall,
    of_client="latencies are what the client claims",
    fault="subject",
    moves=HIDDEN_WAITS,
    meaning=(
        "A closed loop sends almost nothing while the server is paused, so its"
        " percentiles hide the pause."
    ),
    remedy=(
        "Use --rate for latency as users have it; look for what stops the server: garbage"
        " collection, locks, disks, a limit of its CPU time."
    ),
    per_host=True,
)


def _is_judged_by_p99(record: Record, times: figures.Sample) -> bool:
    """Whether so many slots wait that chance does not explain gaps longer than p99."""
    slow, slots = times.percentile(0.99), record.slots
    if slow.value is None or slow.above or slots is None:
        return False
    return all_at_once(times.known, STALL_TIMES * slow.value, slots.asked) <= CHANCE_MOST


def longer_gaps(gaps: dict[int, int], slow_ns: float) -> dict[float, int]:
    """Return the gaps that are far longer than a slow answer, by their length."""
    lengths = {sum(sparse_bounds(index)) / 2: count for index, count in gaps.items()}
    return {ns: count for ns, count in lengths.items() if ns > STALL_TIMES * slow_ns}


def sum_ns(gaps: dict[float, int]) -> float:
    """The total length of the gaps, in ns."""
    return sum(ns * count for ns, count in gaps.items())


def open_loop_ns(known: Buckets, gaps: dict[float, int], whole_ns: float) -> float:
    """Return the p99 of requests that come evenly over a window, in ns.

    A request in a gap waits for the rest of it, and all others as long as was measured.
    """
    settled = 1 - min(1.0, sum_ns(gaps) / whole_ns)

    def longer(wait_ns: float) -> float:
        """The share of requests that wait longer."""
        stalled = sum(max(0.0, ns - wait_ns) * count for ns, count in gaps.items()) / whole_ns
        slower = sum(known.counts[bisect_right(known.highs, wait_ns) :])
        return stalled + settled * slower / max(1, known.total)

    low, high = 0.0, max(*gaps, *known.highs[-1:], 1.0)
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if longer(middle) > 0.01 else (low, middle)
    return high
