"""Every statistic of a record, for every surface: percentiles, mean, minimum, maximum, error share.

The rule (docs/method.md, "Requests without a time"): a request that failed, was left open or was
never sent has no time, and counts as slower than any answer. A percentile whose rank falls among
such requests is only known to be more than the slowest answer, and is shown as ``> X``. Minimum,
mean, maximum and deviation cover answers only, and are labelled so.

How: a ``Sample`` has the known times and the number of requests without one, and gives any figure.
One function makes it for each part of a record: the whole, a target, some seconds. Pure. Must not
know how a figure is shown or judged.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from trueload import hdr
from trueload.buckets import Buckets
from trueload.protocol.openings import Openings
from trueload.protocol.plan import Counts, Measurement, Second
from trueload.protocol.streams import StreamHistograms
from trueload.record.late import Stood, lateness_at, our_stalls
from trueload.record.schema import Host, Outcomes, Record, SessionsRecord, TargetRecord
from trueload.stats import (
    EMPTY,
    RANKED,
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
"""Figures that cover answers only, even where others have no time."""
STALL = "timeout.stall"
"""The class of a stream whose next part did not come in time."""
RECEIPT = "receipt_"
"""Prefix of a percentile of a broadcast's receipts instead of its deliveries."""
FIRST_PART, GAP = "first_part_", "gap_"
"""Prefixes of percentiles of streamed answers: the time to the first part, and between parts."""
CONNECT, FULL, RESUMED = "connect_", "full_handshake_", "resumed_handshake_"
FIRST_BYTE = "first_byte_"
"""Prefixes of percentiles of connections that the load opened: each step, from the schedule."""
OPENINGS = (CONNECT, FULL, RESUMED, FIRST_BYTE)
PREFIXES = (RECEIPT, FIRST_PART, GAP, *OPENINGS)


def label(metric: str) -> str:
    """A metric for people: ``p99``, ``mean of answers``."""
    return f"{metric} of answers" if metric in OF_ANSWERS else metric


@dataclass(frozen=True)
class Sample:
    """Known times of some requests, and how many more have none and count as slower. In ``stalls``
    requests waited for the generator itself."""

    known: Buckets = EMPTY
    slower: int = 0
    stalls: tuple[Stood, ...] = ()

    @property
    def count(self) -> int:
        """All requests, with a time or without."""
        return self.known.total + self.slower

    def percentile(self, share: float) -> Quantile:
        """A percentile by nearest rank among all requests."""
        found = self._measured(share)
        late = lateness_at(share, self._measured, self.count, self.stalls)
        if late is None or not late.is_overstated:
            return found
        return replace(found, overstated_ns=round(late.ns))

    def _measured(self, share: float) -> Quantile:
        found = self._quantiles.get(share)
        if found is None:
            found = self._quantiles[share] = quantile(self.known, share, self.slower)
        return found

    @cached_property
    def _quantiles(self) -> dict[float, Quantile]:
        """Percentiles that were asked for: many checks want the same few."""
        return {}

    def interval(self, share: float) -> tuple[float, float] | None:
        """The 95 % interval of a percentile by rank; None if it ends where no time is known."""
        return rank_interval(self.known, share, self.slower)

    @cached_property
    def figures(self) -> Distribution:
        """The figures that a record stores, with what limits them."""
        found = summarise(self.known, self.slower)
        if not self.stalls or not found.count:
            return found
        late_ns = {name: self.percentile(share).overstated_ns for name, share in RANKED.items()}
        return replace(found, overstated_ns={name: ns for name, ns in late_ns.items() if ns})

    def is_too_few(self, name: str) -> bool:
        """Whether ``p99.9`` is a percentile of which so few requests say nothing."""
        share = parse_percentile(name)
        return share is not None and self.percentile(share).too_few

    def is_overstated(self, name: str) -> bool:
        """Whether ``p99.9`` is a percentile that is only known to be at most what is shown."""
        share = parse_percentile(name)
        return share is not None and self.percentile(share).overstated_ns > 0

    def value(self, name: str) -> float:
        """``mean`` or ``p99.9``, in ns; inf if it is unknown."""
        found, above = self.bound(name)
        return math.inf if above or found is None else found

    def bound(self, name: str) -> tuple[float | None, bool]:
        """The figure, and whether it is only a lower bound; None if not even that is known."""
        share = parse_percentile(name)
        if share is None:
            return getattr(self.figures, name), False
        found = self.percentile(share)
        return found.value, found.above


def failed(counts: Counts | Outcomes) -> int:
    """Requests that failed, of whatever class."""
    return sum(counts.failed.values())


def without_time(counts: Counts | Outcomes) -> int:
    """Requests that failed, were left open, were skipped, or were never sent. For targets the last
    are missing, since nobody knows which target an unsent request was meant for."""
    unsent = counts.unsent if isinstance(counts, Counts) else 0
    return without_service(counts) + counts.skipped + unsent


def without_service(counts: Counts | Outcomes) -> int:
    """Requests that were sent and have no service time."""
    return failed(counts) + counts.cancelled


def _sample(encoded: str | None, slower: int = 0, stalls: tuple[Stood, ...] = ()) -> Sample:
    return _kept(encoded, slower, stalls)


@lru_cache(maxsize=16)  # in a closed loop several are the same, and each is needed several times
def _kept(encoded: str | None, slower: int, stalls: tuple[Stood, ...]) -> Sample:
    return Sample(decode_histogram(encoded), slower, stalls)


def latency(of: Record | Measurement) -> Sample:
    """The latency of a window's requests, from when each was due to its last byte."""
    stalls = our_stalls(of) if isinstance(of, Record) else ()
    return _sample(of.histograms.latency, without_time(of.counts), stalls)


def deliveries(record: Record) -> Sample | None:
    """Times from the send of a message to each of its receivers; a lost delivery has no time, nor
    has one whose send time the server changed. None if nothing is broadcast."""
    found = record.deliveries
    if found is None:
        return None
    changed = 0 if found.clock_bound_ns is None else found.untimed
    return _sample(found.histograms.delivery, found.lost + changed)


def of_percentile(metric: str, record: Record) -> Sample:
    """The sample of a percentile: latency, or a broadcast's deliveries unless it names receipts, or
    what it names of streamed answers, or of connections that the load opened."""
    if metric.startswith((FIRST_PART, GAP)):
        of = first_part if metric.startswith(FIRST_PART) else gap
        found = record.streams
        return Sample() if found is None else of(found.histograms, record.counts)
    if metric.startswith(OPENINGS):
        opened = record.openings
        return Sample() if opened is None else opening(opened.histograms, metric, record.counts)
    delivered = None if metric.startswith(RECEIPT) else deliveries(record)
    return latency(record) if delivered is None else delivered


def without_prefix(metric: str) -> str:
    """``p99`` for ``gap_p99``."""
    return next((metric.removeprefix(each) for each in PREFIXES if metric.startswith(each)), metric)


def percentile_share(metric: str) -> float | None:
    """``p99`` or ``receipt_p99`` as a share; None for anything else."""
    return parse_percentile(without_prefix(metric))


def service(record: Record) -> Sample:
    """Service times, from when each request was sent; one that never was sent has none."""
    return _sample(record.histograms.service, without_service(record.counts))


def connection_service(record: Record) -> Sample:
    """The mean service time of each connection; one without a good answer has none."""
    slots = record.slots
    if slots is None:
        return Sample()
    means: Counter[int] = Counter()
    for mean, _, count in slots.means:
        means[mean] += count
    return Sample(merge_sparse([means]), slots.asked - means.total() if means else 0)


def first_byte(record: Record) -> Sample:
    """Times from the send to the first byte of the answer."""
    return _sample(record.histograms.first_byte, without_service(record.counts))


def first_part(of: StreamHistograms, counts: Counts) -> Sample:
    """Times from when a request was due to its first part; one that failed has none."""
    return _sample(of.first_part, without_time(counts))


def gap(of: StreamHistograms, counts: Counts) -> Sample:
    """Times from one part of a stream to the next; the gap in which a stream stalled has no end."""
    return _sample(of.gap, counts.failed.get(STALL, 0))


def opening(of: Openings, metric: str, counts: Counts) -> Sample:
    """Times from when a connection was due to the step that the metric's prefix names. A connection
    that did not get so far has none; a handshake that failed could have been of either kind."""
    if metric.startswith(FIRST_BYTE):
        return _sample(of.first_byte, without_time(counts))
    if metric.startswith(CONNECT):
        steps: tuple[str | None, ...] = (of.connect,)
        own = of.connect
    else:
        steps = (of.full_handshake, of.resumed_handshake)
        own = of.full_handshake if metric.startswith(FULL) else of.resumed_handshake
    done = sum(decode_histogram(step).total for step in steps)
    return _sample(own, max(0, counts.scheduled - done))


def total(record: Record) -> Sample:
    """Times from the attempt to connect to the last byte; over a kept connection, the latency."""
    encoded = record.histograms.total or record.histograms.latency
    return _sample(encoded, without_time(record.counts))


def set_ups(record: Record) -> Sample:
    """The set-up time of each answer's connection; zero if the connection was there already."""
    found = decode_histogram(record.histograms.connect)
    kept = record.counts.ok - found.total
    if kept <= 0:
        return Sample(found)
    return Sample(Buckets((range(1), range(1), (kept,)), *found.stretches))


def served(record: Record) -> Sample:
    """The part of answers' times that is not the generator's: the round trips, or the service times
    if these are not known."""
    return complete(record.histograms.round_trip or record.histograms.service)


def of_hosts(hosts: Sequence[Host]) -> Sample:
    """The latency of all requests of some hosts."""
    known = decode_histogram(hdr.added(host.latency for host in hosts))
    return Sample(known, sum(without_time(host.counts) for host in hosts if host.counts))


def of_target(target: TargetRecord) -> Sample:
    """The latency of one of several requests."""
    return Sample(merge_sparse([target.latency]), without_time(target.counts))


def of_sessions(sessions: SessionsRecord) -> Sample:
    """The time of whole sessions that have ended, without their pauses."""
    return Sample(merge_sparse([sessions.latency]), sessions.failed)


def of_seconds(seconds: Iterable[Second]) -> Sample:
    """The latency of what was settled in these seconds; a second does not know what never was."""
    some = tuple(seconds)
    found = merge_sparse(second.latency for second in some)
    return Sample(found, sum(second.failed for second in some))


def of_sparse(parts: Iterable[Mapping[int, int]], slower: int = 0) -> Sample:
    """Times from ticks, with ``slower`` more requests that have none."""
    return Sample(merge_sparse(parts), slower)


def complete(encoded: str | None) -> Sample:
    """A histogram of connects or of sends: each of them was timed, none is missing."""
    return _sample(encoded)


def with_figures(record: Record) -> Record:
    """The record with its stored figures made by the rule, whichever version it is of."""
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
    if record.sessions is not None:
        found_ns = of_sessions(record.sessions).figures
        changes["sessions"] = record.sessions.model_copy(update={"latency_ns": found_ns})
    return record.model_copy(update=changes)


def as_read(record: Record) -> Record:
    """A stored record with its figures by the rule; older ones were made without it. Both are the
    same if every request has a time."""
    return with_figures(record) if without_time(record.counts) else record


def is_too_few(metric: str, record: Record) -> bool:
    """Whether a metric is a percentile of which so few requests say nothing."""
    share = percentile_share(metric)
    by_latency = record.deliveries is None and without_prefix(metric) == metric
    if share is None or (by_latency and can_bound(share, record.latency_ns.count)):
        return False
    return of_percentile(metric, record).percentile(share).too_few


def metric_value(metric: str, record: Record) -> float:
    """The value of one metric: ns, per second, or a share; inf for a time that nobody knows."""
    if metric == "throughput":
        return record.throughput.ok_per_s or 0.0
    if metric == "errors":
        # A request that was skipped would have been issued, and got no answer.
        asked = record.counts.issued + record.counts.skipped
        return (failed(record.counts) + record.counts.skipped) / asked if asked else 1.0
    return of_percentile(metric, record).value(without_prefix(metric))
