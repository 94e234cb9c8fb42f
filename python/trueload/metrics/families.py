"""Samples of all metrics, from the tallies of the trials of a run. Pure.

How: each tally gives pairs of a metric and a sample, which are then grouped by metric, in the order
of the table. Label values come from addresses, files and people, so they are cut to one printable
line of bounded length.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from trueload.metrics import names
from trueload.metrics.names import METRICS, Metric
from trueload.metrics.tally import Labels, Outcome, PhaseTally, Saturation, Tally
from trueload.metrics.times import Times
from trueload.record.accounts.generator_times import GeneratorTimes
from trueload.record.figures import BRIEF, SHOWN
from trueload.record.schema import Host
from trueload.report.accounts import ACCOUNTS
from trueload.stats import Distribution, is_too_few
from trueload.text import plain
from trueload.trial.spec import PHASES

LABEL_LENGTH_MAX = 300

# The label for the classes, or codes, of one total; no other total has such a label.
_DETAILS = {"failed": "class", "statuses": "code"}
_TOTALS = {
    "scheduled": names.SCHEDULED,
    "issued": names.ISSUED,
    "ok": names.OK,
    "failed": names.FAILED,
    "stale": names.STALE,
    "cancelled": names.CANCELLED,
    "unsent": names.UNSENT,
    "statuses": names.STATUSES,
    "bytes_in": names.RECEIVED,
    "bytes_out": names.SENT,
    **{each.total(name): metric for each in ACCOUNTS for name, metric in each.metrics.items()},
}
_QUANTILES = {**{each.quantile: each.name for each in SHOWN}, "1": "max"}
_GENERATOR_QUANTILES = {
    share: name for share, name in _QUANTILES.items() if name in (*BRIEF, "max")
}
_VERDICTS = ("valid", "suspect", "invalid")


@dataclass(frozen=True)
class Sample:
    """One value with its labels; ``began_unix_ns`` is when the trial's counters started at 0."""

    labels: Labels
    value: float | Times
    began_unix_ns: int


@dataclass(frozen=True)
class Family:
    """All samples of one metric."""

    metric: Metric
    samples: tuple[Sample, ...]


def make_families(tallies: Iterable[Tally]) -> list[Family]:
    """Return the metrics that have a sample, in the order of the table."""
    found: dict[Metric, list[Sample]] = {metric: [] for metric in METRICS}
    for tally in tallies:
        for metric, labels, value in _tally_samples(tally):
            shown = tuple((name, plain(text, LABEL_LENGTH_MAX)) for name, text in labels if text)
            found[metric].append(Sample(shown, value, tally.began_unix_ns))
    return [Family(metric, tuple(samples)) for metric, samples in found.items() if samples]


_Found = tuple[Metric, Labels, float | Times]


def _tally_samples(tally: Tally) -> Iterator[_Found]:
    mine = tally.labels
    yield names.INFO, (*mine, *tally.about), 1
    for phase in PHASES:
        if not tally.is_over or tally.outcome is not None:
            yield names.PHASE, (*mine, ("phase", phase)), float(phase == tally.phase)
    for phase, phase_tally in tally.phases.items():
        yield from _phase_samples(tally, (*mine, ("phase", phase)), phase_tally)
    if tally.outcome is not None:
        yield from _outcome_samples(mine, tally.outcome)
    elif not tally.is_over:
        yield from _present_samples(tally)


def _phase_samples(tally: Tally, labels: Labels, phase_tally: PhaseTally) -> Iterator[_Found]:
    for (name, detail), count in phase_tally.totals.items():
        own = ((_DETAILS[name], detail),) if name in _DETAILS else ()
        yield _TOTALS[name], (*labels, *own), count
    yield names.LATENCY, labels, phase_tally.latency
    if tally.is_open_loop:
        yield names.SERVICE, labels, phase_tally.service


def _present_samples(tally: Tally) -> Iterator[_Found]:
    """Yield the current values of a running trial."""
    mine, tick = tally.labels, tally.tick
    yield names.CONNECTIONS_REQUESTED, mine, tally.requested
    if tick is None:
        return
    counts = tick.counts
    settled = counts.ok + sum(counts.failed.values()) + counts.cancelled
    yield names.REQUESTS_OPEN, mine, max(0, counts.issued - settled)
    if tally.is_open_loop:
        yield names.REQUESTS_WAITING, mine, max(0, counts.scheduled - counts.issued)
    yield names.CONNECTIONS_OPEN, mine, tick.open
    yield from _saturation_samples(mine, tally.saturation)


def _saturation_samples(mine: Labels, found: Saturation) -> Iterator[_Found]:
    for host, share in found.items():
        yield names.SATURATION, (*mine, ("host", host)), share


def _outcome_samples(mine: Labels, outcome: Outcome) -> Iterator[_Found]:
    """Yield the results of a trial that has ended."""
    yield from _saturation_samples(mine, outcome.saturation)
    if outcome.ok_per_s is not None:
        yield names.THROUGHPUT, mine, outcome.ok_per_s
        yield names.LOWER_BOUND, mine, float(outcome.lower_bound)
    yield from _percentile_samples(names.PERCENTILE, mine, outcome.latency_ns)
    yield from _generator_samples(names.GENERATOR_PERCENTILE, mine, outcome.client_ns)
    for host in outcome.hosts:
        yield from _host_samples((*mine, ("host", host.place), ("group", host.group or "")), host)
    for verdict in _VERDICTS:
        yield names.VERDICT, (*mine, ("verdict", verdict)), float(verdict == outcome.verdict)
    for check in outcome.checks:
        yield names.CHECK, (*mine, ("check", check.name), ("status", check.status)), 1


def _percentile_samples(metric: Metric, mine: Labels, found: Distribution) -> Iterator[_Found]:
    for quantile, name in _QUANTILES.items():
        one = found.at(name)
        if one.value is not None and not one.too_few:
            # The percentile falls among requests without a time; an alert on it must not stay
            # silent.
            value_s = math.inf if one.above else one.value / 1e9
            yield metric, (*mine, ("quantile", quantile)), value_s


def _generator_samples(metric: Metric, mine: Labels, found: GeneratorTimes) -> Iterator[_Found]:
    for part, times in (("send", found.send), ("receive", found.receive)):
        for quantile, name in _GENERATOR_QUANTILES.items():
            if times is not None and not is_too_few(name, times.count):
                own = (("part", part), ("quantile", quantile))
                yield metric, (*mine, *own), getattr(times, name) / 1e9


def _host_samples(mine: Labels, host: Host) -> Iterator[_Found]:
    """Yield what one of several hosts did."""
    if host.counts is not None:
        for outcome in ("ok", "stale", "cancelled", "unsent"):
            yield names.HOST_REQUESTS, (*mine, ("outcome", outcome)), getattr(host.counts, outcome)
        for name, count in host.counts.failed.items():
            yield names.HOST_REQUESTS, (*mine, ("outcome", "failed"), ("class", name)), count
    if host.latency_ns is not None:
        yield from _percentile_samples(names.HOST_PERCENTILE, mine, host.latency_ns)
    if host.client_ns is not None:
        yield from _generator_samples(names.HOST_GENERATOR_PERCENTILE, mine, host.client_ns)
    if host.clock_bound_ns is not None:
        yield names.HOST_CLOCK, mine, host.clock_bound_ns / 1e9
    yield names.HOST_LOST, mine, float(host.lost is not None)
