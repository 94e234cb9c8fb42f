"""The check `hiccup`: what a generator that stood still may have done to each figure.

How: the engine counts how often its threads did not run although requests were outstanding or due,
for how long, and how many requests waited. A percentile can only be wrong through stalls that reach
its rank. If a share a of all requests waited for us, the true percentile q lies between those of
ranks q - a and q.

A stall in which a thread was stopped is ours. A stall in which it waited for a CPU is ours in part:
as far as others, or our CPU limit, caused such waits (`noise`, `cpu-limit`). For the rest generator
and server waited for each other, which `same-host` judges. Pure functions of a record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trueload.protocol.plan import Stalls
from trueload.record import figures
from trueload.record.schema import Record, Status
from trueload.stats import can_bound
from trueload.units import format_count, format_duration, format_share
from trueload.verdict.client_share import client_parts
from trueload.verdict.common import (
    Definition,
    Finding,
    graded_beyond,
    is_open,
    not_applicable,
    times,
)
from trueload.verdict.hosts import SEVERITY
from trueload.verdict.throttling import STOOD_FAIL, STOOD_WARN, TURN_NS

SHARES = {"p50": 0.50, "p90": 0.90, "p99": 0.99, "p99.9": 0.999}
WARN_PART, FAIL_PART = 1 / 4, 1 / 2
"""The share of requests beyond a percentile that waited for us, from which it may have moved."""
OFF_WARN, OFF_FAIL = 0.10, 0.25  # how much too long a percentile may then be, as in `client-share`
LEAST_NS = {"p50": 500_000, "p90": 500_000, "p99": 1_000_000, "p99.9": TURN_NS}
"""Shorter stalls are left out.

One request in a thousand meets a turn of the scheduler on any machine, and the engine does not see
less than half a millisecond.
"""
LIMITED_LEAST_NS = 1_000_000  # a CPU limit is no turn of the scheduler
LIMITED_PART = 0.1
"""The part of our waits from which on a CPU limit is the reason for all of them. Linux 6.18 counts
only 0.2 to 0.7 of such waits as throttled (measured)."""
LEAST_PART = 0.1  # of a percentile: shorter stalls cannot change it by more


@dataclass(frozen=True)
class Stood:
    """Stalls of similar length: their number, total time, and number of requests that waited."""

    count: float
    ns: float
    requests: float

    @property
    def length_ns(self) -> float:
        """The mean length of these stalls, in ns."""
        return self.ns / self.count


def check_hiccup(record: Record) -> Finding:
    """Grade the worst effect that stalls may have had on throughput and percentiles."""
    late = record.generator.lateness
    if late is None:
        return not_applicable("the engine ended before it could say")
    if late.stopped and not late.waited_ns:
        return not_applicable("the kernel does not say how long a thread waits for a CPU")
    part = _part_of_waits(record)
    stood = [*_counted(late.stopped, 1.0), *_counted(late.queued, part)]
    share = _stood_share(record, stood)
    found = [_of_throughput(record, share), *_of_percentiles(record, stood)]
    worst = max(found, key=lambda each: SEVERITY[each.status])
    why = f"{_stood_text(record, share, stood)}{worst.why}"
    return Finding(worst.status, why, worst.value, worst.limit)


HICCUP = Definition(
    name="hiccup",
    order=150,
    compute=check_hiccup,
    of_client="our generator has no part in it; how late our server was is generator-limit",
    fault="generator",
    meaning=(
        "While the generator stands still it neither sends nor reads the clock, so its"
        " pauses look like those of the server."
    ),
    remedy=(
        "Look at what stopped it: a suspended process or machine, a CPU limit, other programs,"
        " swapping, or too few CPUs."
    ),
    spoiled="the generator stood still",
    per_host=True,
)


def _part_of_waits(record: Record) -> float:
    """The part of its waits for a CPU that was not for the server; 0 if unknown."""
    waited = record.generator.waited
    if waited is None or not waited.share:
        return 0.0
    if _is_limited(record):
        return 1.0
    ours = waited.for_others + (record.generator.throttled_share or 0.0)
    return min(1.0, ours / waited.share)


def _is_limited(record: Record) -> bool:
    """Whether our CPU limit is why our threads waited."""
    waited = record.generator.waited
    throttled = record.generator.throttled_share or 0.0
    return waited is not None and throttled > LIMITED_PART * waited.share


def _counted(stalls: Sequence[Stalls], part: float) -> Iterator[Stood]:
    for each in stalls if part else ():
        yield Stood(each.count * part, each.ns * part, each.requests * part)


def _stood_share(record: Record, stood: Sequence[Stood]) -> float:
    """The share of the window that was stalled, on average over the threads."""
    # With several origins, each of a thread's parts reports the same stalls.
    parts = record.generator.threads * max(1, len(record.plan.generate.origins))
    all_ns = record.window.window_ns * max(1, parts)
    return min(1.0, sum(each.ns for each in stood) / all_ns) if all_ns else 0.0


def _stood_text(record: Record, share: float, stood: Sequence[Stood]) -> str:
    count = round(sum(each.count for each in stood))
    if not count:
        return "the generator never stood still"
    took = format_duration(share * record.window.window_ns)
    requests = format_count(round(sum(each.requests for each in stood)))
    return (
        f"the generator stood still {times(count, 'time')}, for {took} in all"
        f" ({format_share(share)} of the window), while {requests} requests waited"
    )


def _of_throughput(record: Record, share: float) -> Finding:
    """Grade the throughput: a closed loop sends that much less, an open loop only sends later."""
    if is_open(record) or share * record.window.window_ns < TURN_NS:
        return Finding("pass", "", share, STOOD_WARN)
    status, limit = graded_beyond(share, STOOD_WARN, STOOD_FAIL)
    return Finding(status, "", share, limit)


def _of_percentiles(record: Record, stood: Sequence[Stood]) -> Iterator[Finding]:
    sample = figures.latency(record)
    turn_ns = LIMITED_LEAST_NS if _is_limited(record) else TURN_NS
    for name, rank in SHARES.items():
        found = sample.percentile(rank)
        if found.above or not found.value or not can_bound(rank, sample.count):
            continue
        least_ns = max(min(LEAST_NS[name], turn_ns), LEAST_PART * found.value)
        reaching = [each for each in stood if each.length_ns >= least_ns]
        waited = sum(each.requests for each in reaching) / sample.count
        part = waited / (1 - rank)
        if part <= WARN_PART:
            continue
        at_least = sample.percentile(max(0.0, rank - waited)).value or 0
        longest_ns = max(each.length_ns for each in reaching)
        off_ns = min(found.value - at_least, longest_ns)
        off = off_ns / found.value
        status: Status = "warn" if off >= OFF_WARN else "pass"
        if off >= OFF_FAIL and part > FAIL_PART:
            status = "fail"
        limit = FAIL_PART if status == "fail" else WARN_PART
        why = (
            f": up to {format_duration(off_ns)} of {name} {format_duration(found.value)} is"
            " the generator's own delay"
        )
        yield Finding(status, why + _corrected(record, name), part, limit)


def _corrected(record: Record, name: str) -> str:
    """The percentile without our part, if the kernel reported when answers came."""
    for part in client_parts(record):
        if part.percentile == name:
            rest = format_duration(part.rest_ns)
            return f" ({rest} without, by the kernel's receive times)"
    return ""
