"""The check of the record itself: do its figures agree with each other?

A pure function of a record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain

from trueload.protocol.client import miscounted, mistimed
from trueload.protocol.tick import Counts
from trueload.record.accounts.deliveries import Deliveries
from trueload.record.client import ClientEnd
from trueload.record.schema import Record
from trueload.stats import Distribution
from trueload.verdict.common import Definition, Finding, is_http


def check_audit(record: Record) -> Finding:
    """Whether the record's own figures agree with each other."""
    if record.trouble is not None:
        return Finding("fail", f"cut short: {record.trouble.what}")
    for problem in _disagreements(record):
        return Finding("fail", problem)
    return Finding("pass", "counts add up and percentiles are in order")


def check_client_audit(record: Record, client: ClientEnd) -> Finding:
    """Check that the claim adds up and fits its time, and that the server's account adds up."""
    asked, claim, seen = client.asked, client.claim, client.seen
    if record.trouble is not None:
        return Finding("fail", f"cut short: {record.trouble.what}")
    wall_s = record.window.wall_s
    faults = chain(miscounted(asked.requests, claim), mistimed(asked.wait_ms, claim, wall_s))
    for fault in faults:
        return Finding("fail", f"the client {fault}")
    if sum(seen.statuses.values()) != seen.answered or seen.ok > seen.answered:
        return Finding("fail", "the server's answers by status do not add up to all its answers")
    return Finding("pass", "the client's claim adds up, and so does the server's account")


AUDIT = Definition(
    name="audit",
    order=230,
    compute=check_audit,
    of_client=check_client_audit,
    fault="trueload",
    meaning="A record whose own counts and percentiles disagree proves that something is broken.",
    remedy="If the engine was killed, repeat; otherwise report it as a bug with the record.",
)


def _disagreements(record: Record) -> Iterator[str]:
    window, warmup = record.counts, record.warmup.counts

    def both(count: Callable[[Counts], int]) -> int:
        return count(window) + count(warmup)

    issued = both(lambda counts: counts.issued)
    settled = both(lambda counts: counts.ok + sum(counts.failed.values()) + counts.cancelled)
    if issued != settled:
        yield f"{issued} requests were issued, but {settled} are accounted for"
    scheduled = both(lambda counts: counts.scheduled)
    sent = both(lambda counts: counts.issued + counts.unsent)
    if scheduled != sent:
        yield f"{scheduled} requests were scheduled, but {sent} were issued or left unsent"
    if record.latency_ns.count != window.ok:
        yield f"{window.ok} requests ended well, but {record.latency_ns.count} were timed"
    if is_http(record) and sum(window.statuses.values()) < window.ok:
        yield f"{window.ok} requests ended well, but fewer complete answers were seen"
    if record.targets is not None:
        for what, total in (("issued", window.issued), ("ok", window.ok)):
            of_targets = sum(getattr(target.counts, what) for target in record.targets)
            if of_targets != total:
                yield f"{total} requests were {what}, but {of_targets} by target"
    if record.deliveries is not None:
        yield from _of_deliveries(record.deliveries, record.partial)
    for name, found in _distributions(record):
        if not _is_ordered(found):
            yield f"the percentiles of {name} do not rise, or its mean is not between min and max"


def _of_deliveries(found: Deliveries, partial: bool) -> Iterator[str]:
    settled = found.delivered + found.lost
    # Deliveries under way when a run was cut short are neither delivered nor lost.
    if settled > found.expected or (settled < found.expected and not partial):
        yield f"{found.expected} deliveries were expected, but {settled} are accounted for"
    timed = found.delivered - found.untimed
    if found.delivery_ns.count != timed:
        yield f"{timed} deliveries were to be timed, but {found.delivery_ns.count} were timed"


def _distributions(record: Record) -> Iterator[tuple[str, Distribution]]:
    for name in ("latency_ns", "service_ns", "connect_ns", "first_byte_ns", "total_ns"):
        yield name, getattr(record, name)
    found = record.deliveries
    if found is not None:
        for name in ("delivery_ns", "first_ns", "median_ns", "p95_ns", "last_ns"):
            yield f"deliveries.{name}", getattr(found, name)
        if found.spread_ns is not None:
            yield "deliveries.spread_ns", found.spread_ns


def _is_ordered(found: Distribution) -> bool:
    rising = [found.min, found.p25, found.p50, found.p75, found.p90, found.p95, found.p99]
    known = [value for value in (*rising, found.p999, found.max) if value is not None]
    if known != sorted(known):
        return False
    if found.min is None or found.max is None or found.mean is None:
        return found.count == 0
    return found.min <= found.mean <= found.max
