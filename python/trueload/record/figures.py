"""Every statistic of a record, for every surface: percentiles, mean, least, greatest, error share.

The rule (docs/method.md, "Requests without a time"): a request that failed, was left open or was
never sent has no time, and counts as slower than any answer. A percentile whose rank falls among
such requests is only known to be more than the slowest answer, and is shown as ``> X``. Least,
mean, greatest and deviation are of answers alone, and are called so.

How: a ``Sample`` is the times that are known and the number of requests without one; it gives any
figure. There is one maker for each part of a record: the whole, a target, some seconds. Pure. Must
not know how a figure is shown or judged.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from trueload.protocol.plan import Counts, Measurement, Second
from trueload.record.schema import Outcomes, Record, TargetRecord
from trueload.stats import (
    EMPTY,
    Buckets,
    Distribution,
    Quantile,
    can_bound,
    decode_histogram,
    merge_sparse,
    parse_percentile,
    quantile,
    rank_interval,
    summarise,
)

OF_ANSWERS = ("min", "mean", "max", "stdev")
"""Figures of answers alone, whatever else was asked."""
RECEIPT = "receipt_"
"""Before a percentile: of a broadcast's receipts, not of its deliveries."""


def label(metric: str) -> str:
    """A metric for people: ``p99``, ``mean of answers``."""
    return f"{metric} of answers" if metric in OF_ANSWERS else metric


@dataclass(frozen=True)
class Sample:
    """The times of some requests that have one, and how many more have none: those are slower."""

    known: Buckets = EMPTY
    slower: int = 0

    @property
    def count(self) -> int:
        """All of them, with a time or without."""
        return self.known.total + self.slower

    def percentile(self, share: float) -> Quantile:
        """By the nearest rank among all."""
        return quantile(self.known, share, self.slower)

    def interval(self, share: float) -> tuple[float, float] | None:
        """The 95 % interval of a percentile by rank; None if it ends where no time is known."""
        return rank_interval(self.known, share, self.slower)

    @cached_property
    def figures(self) -> Distribution:
        """The figures that a record stores; ``at_least`` names those that are lower bounds."""
        return summarise(self.known, self.slower)

    def is_too_few(self, name: str) -> bool:
        """Whether ``p99.9`` is a percentile of which so few requests say nothing."""
        share = parse_percentile(name)
        return share is not None and self.percentile(share).too_few

    def value(self, name: str) -> float:
        """``mean`` or ``p99.9``, in ns; inf where nobody knows it."""
        found, above = self.bound(name)
        return math.inf if above or found is None else found

    def bound(self, name: str) -> tuple[float | None, bool]:
        """The same where it is only a lower bound (True); None where there is not even one."""
        share = parse_percentile(name)
        if share is None:
            return getattr(self.figures, name), False
        found = self.percentile(share)
        return found.value, found.above


def failed(counts: Counts | Outcomes) -> int:
    """Requests that failed, of whatever class."""
    return sum(counts.failed.values())


def without_time(counts: Counts | Outcomes) -> int:
    """Requests that failed, were left open, or were never sent. Which target those were meant for
    that were never sent is not known."""
    unsent = counts.unsent if isinstance(counts, Counts) else 0
    return without_service(counts) + unsent


def without_service(counts: Counts | Outcomes) -> int:
    """Requests that were sent and have no service time."""
    return failed(counts) + counts.cancelled


@lru_cache(maxsize=8)  # of a closed loop several are the same, and each is asked for by some
def _sample(encoded: str | None, slower: int = 0) -> Sample:
    return Sample(decode_histogram(encoded), slower)


def latency(of: Record | Measurement) -> Sample:
    """From when each request of a window was due to its last byte."""
    return _sample(of.histograms.latency, without_time(of.counts))


def deliveries(record: Record) -> Sample | None:
    """From the send of a message to each of its receivers: one that lost it has no time. None where
    nothing is broadcast."""
    found = record.deliveries
    return None if found is None else _sample(found.histograms.delivery, found.lost)


def of_percentile(metric: str, record: Record) -> Sample:
    """What a percentile of a record is of: a broadcast's deliveries, unless it says receipts."""
    found = None if metric.startswith(RECEIPT) else deliveries(record)
    return latency(record) if found is None else found


def percentile_share(metric: str) -> float | None:
    """``p99`` or ``receipt_p99`` as a share; None for anything else."""
    return parse_percentile(metric.removeprefix(RECEIPT))


def service(record: Record) -> Sample:
    """From when each request was sent: one that never was has no service time."""
    return _sample(record.histograms.service, without_service(record.counts))


def connection_service(record: Record) -> Sample:
    """The mean service time of each connection: one without a good answer has none."""
    slots = record.slots
    if slots is None:
        return Sample()
    means: Counter[int] = Counter()
    for mean, _, count in slots.means:
        means[mean] += count
    return Sample(merge_sparse([means]), slots.asked - means.total() if means else 0)


def first_byte(record: Record) -> Sample:
    """From the send to the first byte of the answer."""
    return _sample(record.histograms.first_byte, without_service(record.counts))


def total(record: Record) -> Sample:
    """From the attempt to connect to the last byte; over a kept connection as the latency."""
    encoded = record.histograms.total or record.histograms.latency
    return _sample(encoded, without_time(record.counts))


def set_ups(record: Record) -> Sample:
    """The set-up of the connection of each answer: no time where it was there already."""
    found = decode_histogram(record.histograms.connect)
    kept = record.counts.ok - found.total
    if kept <= 0:
        return Sample(found)
    return Sample(Buckets((0, *found.lows), (0, *found.highs), (kept, *found.counts)))


def served(record: Record) -> Sample:
    """The part of answers' times that is not the generator's: the round trips, or, where
    these are not known, the service times."""
    return complete(record.histograms.round_trip or record.histograms.service)


def of_target(target: TargetRecord) -> Sample:
    """The latency of one of several requests."""
    return Sample(merge_sparse([target.latency]), without_time(target.counts))


def of_seconds(seconds: Iterable[Second]) -> Sample:
    """The latency of what was settled in them: a second does not know what was never settled."""
    some = tuple(seconds)
    found = merge_sparse(second.latency for second in some)
    return Sample(found, sum(second.failed for second in some))


def of_sparse(parts: Iterable[Mapping[int, int]], slower: int = 0) -> Sample:
    """Times of ticks, with so many more that have none."""
    return Sample(merge_sparse(parts), slower)


def complete(encoded: str | None) -> Sample:
    """A histogram of connects or of sends: each of them was timed, none is missing."""
    return _sample(encoded)


def with_figures(record: Record) -> Record:
    """The record with its stored figures by the rule, of whichever version it is."""
    found, targets = record.histograms, record.targets
    changes: dict[str, object] = {
        "latency_ns": latency(record).figures,
        "service_ns": service(record).figures,
        "connection_service_ns": connection_service(record).figures,
        "first_byte_ns": first_byte(record).figures,
        "total_ns": _sample(found.total, without_time(record.counts)).figures,
    }
    if targets is not None:
        changes["targets"] = tuple(
            target.model_copy(update={"latency_ns": of_target(target).figures})
            for target in targets
        )
    return record.model_copy(update=changes)


def as_read(record: Record) -> Record:
    """A stored record with its figures by the rule: older ones were made without it. Where every
    request has a time, both are the same."""
    return with_figures(record) if without_time(record.counts) else record


def is_too_few(metric: str, record: Record) -> bool:
    """Whether a metric is a percentile of which so few requests say nothing."""
    share = percentile_share(metric)
    if share is None or (record.deliveries is None and can_bound(share, record.latency_ns.count)):
        return False
    return of_percentile(metric, record).percentile(share).too_few


def metric_value(metric: str, record: Record) -> float:
    """One metric of one record: ns, per second, or a share. inf for a time that nobody knows."""
    if metric == "throughput":
        return record.throughput.ok_per_s or 0.0
    if metric == "errors":
        issued = record.counts.issued
        return failed(record.counts) / issued if issued else 1.0
    return of_percentile(metric, record).value(metric.removeprefix(RECEIPT))
