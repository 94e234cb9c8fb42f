"""Every statistic of a record, for every surface: percentiles, mean, minimum, maximum, error share.

How: a ``Sample`` has the known times and the number of requests without one, and gives any figure.
One function makes it for each part of a record: the whole, some seconds, the accounts that have
times of their own. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trueload import hdr
from trueload.buckets import Buckets
from trueload.protocol.plan import Measurement
from trueload.protocol.tick import Second
from trueload.record.account import Account
from trueload.record.accounts import ACCOUNTS
from trueload.record.accounts.deliveries import of_deliveries
from trueload.record.sample import Sample as Sample
from trueload.record.sample import complete as complete
from trueload.record.sample import sample
from trueload.record.schema import Host, Record
from trueload.record.stalls import our_stalls
from trueload.record.untimed import failed as failed
from trueload.record.untimed import without_service as without_service
from trueload.record.untimed import without_time as without_time
from trueload.stats import RANKED, can_bound, decode_histogram, merge_sparse, parse_percentile

OF_ANSWERS = ("min", "mean", "max", "stdev")
"""Figures that cover answers only, even where others have no time."""


@dataclass(frozen=True)
class Percentile:
    """A percentile of the latency, as it is spelled in JSON (``p999``)."""

    name: str
    share: float

    @property
    def label(self) -> str:
        """For people: ``p99.9``."""
        return f"p{self.share * 100:g}"

    @property
    def quantile(self) -> str:
        """In metrics: ``0.999``."""
        return f"{self.share:g}"


PERCENTILES = tuple(Percentile(name, share) for name, share in RANKED.items())
"""All percentiles: to add one, add a field to ``stats.Distribution``. Every surface has it then."""
SHOWN = tuple(each for each in PERCENTILES if each.share not in (0.25, 0.75))
"""The percentiles of texts, hosts and metrics: all but the quartiles, which only exports and some
tables have."""
BRIEF = ("p50", "p99")
"""The percentiles to show where there is little room."""
TABLED = ("p50", "p95", "p99")
"""The percentiles in tables of the steps of a scenario or a search."""
RECEIPT = "receipt_"
"""Prefix of a percentile of a broadcast's receipts instead of its deliveries."""
PREFIXES: dict[str, Account | None] = {
    RECEIPT: None,
    **{prefix: each for each in ACCOUNTS.values() for prefix in each.samples},
}
"""The beginnings of the names of percentiles that are not of the latency, and whose they are."""


def label(metric: str) -> str:
    """A metric for people: ``p99``, ``mean of answers``."""
    return f"{metric} of answers" if metric in OF_ANSWERS else metric


def latency(of: Record | Measurement) -> Sample:
    """The latency of a window's requests, from when each was due to its last byte."""
    stalls = our_stalls(of) if isinstance(of, Record) else ()
    return sample(of.histograms.latency, without_time(of.counts), stalls)


def deliveries(record: Record) -> Sample | None:
    """Times from the send of a message to each of its receivers; None if nothing is broadcast."""
    return None if record.deliveries is None else of_deliveries(record.deliveries)


def of_percentile(metric: str, record: Record) -> Sample:
    """The sample of a percentile: latency, or a broadcast's deliveries unless it names receipts, or
    what it names of an account."""
    prefix = _prefix(metric)
    account = PREFIXES.get(prefix)
    if account is not None:
        kept = getattr(record, account.name)
        return Sample() if kept is None else account.samples[prefix](kept, record.counts)
    delivered = None if prefix else deliveries(record)
    return latency(record) if delivered is None else delivered


def _prefix(metric: str) -> str:
    return next((each for each in PREFIXES if metric.startswith(each)), "")


def without_prefix(metric: str) -> str:
    """``p99`` for ``gap_p99``."""
    return metric.removeprefix(_prefix(metric))


def percentile_share(metric: str) -> float | None:
    """``p99`` or ``receipt_p99`` as a share; None for anything else."""
    return parse_percentile(without_prefix(metric))


def service(record: Record) -> Sample:
    """Service times, from when each request was sent; one that never was sent has none."""
    return sample(record.histograms.service, without_service(record.counts))


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
    return sample(record.histograms.first_byte, without_service(record.counts))


def total(record: Record) -> Sample:
    """Times from the attempt to connect to the last byte; over a kept connection, the latency."""
    encoded = record.histograms.total or record.histograms.latency
    return sample(encoded, without_time(record.counts))


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


def of_seconds(seconds: Iterable[Second]) -> Sample:
    """The latency of what was settled in these seconds; a second does not know what never was."""
    some = tuple(seconds)
    found = merge_sparse(second.latency for second in some)
    return Sample(found, sum(second.failed for second in some))


def of_sparse(parts: Iterable[Mapping[int, int]], slower: int = 0) -> Sample:
    """Times from ticks, with ``slower`` more requests that have none."""
    return Sample(merge_sparse(parts), slower)


def with_figures(record: Record) -> Record:
    """The record with its stored figures made by the rule, whichever version it is of."""
    changes: dict[str, object] = {
        "latency_ns": latency(record).figures,
        "service_ns": service(record).figures,
        "connection_service_ns": connection_service(record).figures,
        "first_byte_ns": first_byte(record).figures,
        "total_ns": sample(record.histograms.total, without_time(record.counts)).figures,
    }
    for account in ACCOUNTS.values():
        kept = getattr(record, account.name)
        if account.renew is not None and kept is not None:
            changes[account.name] = account.renew(kept)
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
