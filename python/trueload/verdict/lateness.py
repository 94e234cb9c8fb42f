"""The check `hiccup`: what a generator that was paused may have done to each figure.

How: the engine counts how often its threads did not run although requests were outstanding or due,
for how long, and how many requests waited. A percentile can only be wrong through stalls that reach
its rank (`record/stalls.py`, which also marks such a percentile as an upper bound). Here the run is
refused if it is far off. Where generator and server waited for each other `same-host` judges. Pure
functions of a record.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from trueload.record import figures
from trueload.record.sample import WARN_PART, StallEffect, StallGroup, lateness_at
from trueload.record.schema import Record, Status
from trueload.record.stalls import caused_stalls, is_limited, our_stalls
from trueload.stats import can_bound
from trueload.units import format_duration, format_share
from trueload.verdict.common import (
    DELAYS,
    Definition,
    Finding,
    graded_beyond,
    is_open,
    not_applicable,
    times,
)
from trueload.verdict.generator_share import OPEN_FAIL, OPEN_WARN, generator_shares
from trueload.verdict.hosts import SEVERITY
from trueload.verdict.throttling import STOOD_FAIL, STOOD_WARN, TURN_NS

SHARES = {"p50": 0.50, "p90": 0.90, "p99": 0.99, "p99.9": 0.999}
FAIL_PART = 1 / 2  # of the requests beyond a percentile; from a quarter on it may have moved
OFF_WARN, OFF_FAIL = 0.10, 0.25
"""How much too long a percentile may be, as in `client-share`; the tails warn at the latter only.

Less than that the mark of an upper bound tells. A single pause reaches a p99 of a short window, and
nobody can keep a machine from one.
"""
TAILS = ("p99", "p99.9")
LEAST_NS = {"p50": 500_000, "p90": 500_000, "p99": 1_000_000, "p99.9": 2 * TURN_NS}
"""Shorter stalls are left out: one request in a thousand meets a turn of the scheduler, or the
pause of a virtual machine, anywhere. On quiet ones they took up to 6 ms."""
LIMITED_LEAST_NS = 1_000_000  # a CPU limit is no turn of the scheduler


def check_hiccup(record: Record) -> Finding:
    """Grade the worst effect that stalls may have had on throughput and percentiles."""
    late = record.generator.lateness
    if late is None:
        return not_applicable("the engine ended before it could say")
    if late.stopped and not late.waited_ns:
        return not_applicable("the kernel does not say how long a thread waits for a CPU")
    stood = our_stalls(record)
    share = _stood_share(record, stood)
    found = [_of_throughput(record, share), *_of_percentiles(record)]
    worst = max(found, key=lambda each: (SEVERITY[each.status], bool(each.why)))
    why = f"{_stood_text(record, share, stood)}{worst.why}"
    return Finding(worst.status, why, worst.value, worst.limit)


HICCUP = Definition(
    name="hiccup",
    order=150,
    compute=check_hiccup,
    of_client="our generator has no part in it; how late our server was is generator-limit",
    fault="generator",
    moves=DELAYS,
    meaning=(
        "While the generator is paused, it neither sends nor reads the clock, so its"
        " pauses look like those of the server."
    ),
    remedy=(
        "Look at what stopped it: a suspended process or machine, a CPU limit, other programs,"
        " swapping, or too few CPUs."
    ),
    spoiled="the generator was paused",
    per_host=True,
)


def _stood_share(record: Record, stood: Sequence[StallGroup]) -> float:
    """The share of the window that was stalled, on average over the threads."""
    # With several origins, each of a thread's parts reports the same stalls.
    parts = record.generator.threads * max(1, len(record.plan.generate.origins))
    all_ns = record.window.window_ns * max(1, parts)
    return min(1.0, sum(each.ns for each in stood) / all_ns) if all_ns else 0.0


def _stood_text(record: Record, share: float, stood: Sequence[StallGroup]) -> str:
    count = round(sum(each.count for each in stood))
    if not count:
        return "the generator was never paused"
    took = format_duration(share * record.window.window_ns)
    # A request may wait in several pauses, so their sum can exceed all requests.
    requests = math.ceil(sum(each.requests for each in stood) / count)
    return (
        f"the generator was paused {times(count, 'time')}, for {took} in all"
        f" ({format_share(share)} of the window), while {times(requests, 'request')} waited"
        f"{' each time' if count > 1 else ''}"
    )


def _of_throughput(record: Record, share: float) -> Finding:
    """Grade the throughput: a closed loop sends that much less, an open loop only sends later."""
    if is_open(record) or share * record.window.window_ns < TURN_NS:
        return Finding("pass", "", share, STOOD_WARN)
    status, limit = graded_beyond(share, STOOD_WARN, STOOD_FAIL)
    return Finding(status, "", share, limit)


def _of_percentiles(record: Record) -> Iterator[Finding]:
    sample = figures.latency(record)
    limited = is_limited(record)
    for name, rank in SHARES.items():
        if not can_bound(rank, sample.count):
            continue
        # Short waits that nobody else caused reach one request in a thousand on any machine.
        stalls = caused_stalls(record) if name == "p99.9" else our_stalls(record)
        least_ns = min(LEAST_NS[name], LIMITED_LEAST_NS) if limited else LEAST_NS[name]
        late = lateness_at(rank, sample.percentile, sample.count, stalls, least_ns)
        status = "pass" if late is None or late.part <= WARN_PART else _status(name, late)
        found = sample.percentile(rank)
        off_ns = found.overstated_ns if late is None or status == "pass" else late.ns
        if not off_ns:
            continue
        part = 0.0 if late is None else late.part
        why = (
            f": up to {format_duration(off_ns)} of {name} {format_duration(found.value or 0)} is"
            f" the generator's own delay{_corrected(record, name)}"
        )
        yield Finding(status, why, part, FAIL_PART if status == "fail" else WARN_PART)


def _status(name: str, late: StallEffect) -> Status:
    # As in `client-share`, nothing is wrong below some times, whatever the share.
    tail = name in TAILS
    warn_ns, fail_ns = (each.least_ns["p99" if tail else "p50"] for each in (OPEN_WARN, OPEN_FAIL))
    if late.off >= OFF_FAIL and late.part > FAIL_PART and late.ns >= fail_ns:
        return "fail"
    return "warn" if late.off >= (OFF_FAIL if tail else OFF_WARN) and late.ns >= warn_ns else "pass"


def _corrected(record: Record, name: str) -> str:
    """The percentile without our part, if the kernel reported when answers came."""
    for part in generator_shares(record):
        if part.percentile == name:
            rest = format_duration(part.rest_ns)
            return f" ({rest} without, by the kernel's receive times)"
    return ""
