"""The figures that ApacheBench (``ab``) would print for a trial: for published tables of them.

How: every figure follows ab's definitions (ab.c, httpd 2.4), computed from the record's counts and
histograms. *Connect* is the set-up of a request's connection and *processing* all time after it.
*Waiting* is the part of processing before the first byte, and *total* is connect plus processing.
For requests over a kept connection the set-up takes no time. One thing differs: a request that
failed has no time here, and counts as slower than any. A percentile among such requests is only a
lower bound.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from trueload.record import figures
from trueload.record.figures import Sample
from trueload.record.schema import Record
from trueload.record.throughput import bytes_moved

NS_PER_S, NS_PER_MS = 1_000_000_000, 1_000_000
PERCENTS = (50, 66, 75, 80, 90, 95, 98, 99, 100)


@dataclass(frozen=True)
class Times:
    """One line of ab's table, in ms; None if nothing ended well.

    ``median_above``: the median is larger, by an unknown amount. ``median_too_few``: there were too
    few requests for it. ``largest_of`` is the number of requests that ``max`` is the largest of, if
    there are few; None if there are many.
    """

    min: float | None
    mean: float | None
    sd: float | None
    median: float | None
    max: float | None
    median_above: bool = False
    median_too_few: bool = False
    largest_of: int | None = None


@dataclass(frozen=True)
class Percentile:
    """One percentile of ab's list; ``ms`` is None if nothing ended well.

    ``above``: it is larger, by an unknown amount. ``too_few``: there were too few requests for it.
    """

    percent: int
    ms: float | None
    above: bool
    too_few: bool = False


@dataclass(frozen=True)
class Priming:
    """The run before the one that counts."""

    complete: int
    failed: dict[str, int]
    taken_s: float


@dataclass(frozen=True)
class ApacheBench:
    """The figures of one trial: times in s and ms, sizes in bytes.

    ``complete`` counts the requests that came to an end, including failed ones; ``failed`` is by
    class. ``connects`` is the number of connections opened for the run. ``connect_per_s`` is their
    rate, if they were opened within the run. ``server_*`` are of the server's whole life, priming
    included.
    """

    path: str
    document_bytes: int | None
    concurrency: int
    close: bool
    taken_s: float
    complete: int
    failed_count: int
    transferred_bytes: int
    html_bytes: int | None
    per_s: float | None
    per_request_ms: float | None
    across_all_ms: float | None
    received_kib_per_s: float | None
    connect: Times
    processing: Times
    waiting: Times
    total: Times
    percentiles: tuple[Percentile, ...]
    connects: int
    connect_per_s: float | None
    failed: dict[str, int] = field(default_factory=dict)
    priming: Priming | None = None
    server_user_s: float | None = None
    server_system_s: float | None = None
    server_peak_rss_bytes: int | None = None

    @property
    def parts(self) -> tuple[tuple[str, Times], ...]:
        """The rows of ab's table of times."""
        names = ("Connect", "Processing", "Waiting", "Total")
        times = (self.connect, self.processing, self.waiting, self.total)
        return tuple(zip(names, times, strict=True))


def apachebench(record: Record, document_bytes: int | None = None) -> ApacheBench:
    """Return the figures of one trial.

    ``document_bytes`` is the length of the body of a right answer.
    """
    generate, server = record.plan.generate, record.server
    taken_s = record.window.window_ns / NS_PER_S
    failed = figures.failed(record.counts)
    complete = record.counts.ok + failed
    opened = record.connect_ns.count
    # Without a warm-up, connections are opened before the window begins.
    inside = record.plan.warmup is not None and opened > 0
    transferred, _ = bytes_moved(record)
    return ApacheBench(
        path=generate.request.path if generate.request is not None else "",
        document_bytes=document_bytes,
        concurrency=generate.connections,
        close=generate.close,
        taken_s=taken_s,
        complete=complete,
        failed_count=failed,
        failed=dict(record.counts.failed),
        transferred_bytes=transferred,
        html_bytes=None if document_bytes is None else document_bytes * record.counts.ok,
        per_s=_ratio(complete, taken_s),
        per_request_ms=_ratio(generate.connections * taken_s * 1e3, complete),
        across_all_ms=_ratio(taken_s * 1e3, complete),
        received_kib_per_s=_ratio(transferred / 1024, taken_s),
        connect=_times(figures.set_ups(record)),
        processing=_times(figures.service(record)),
        waiting=_times(figures.first_byte(record)),
        total=_times(figures.total(record)),
        percentiles=percentiles(figures.total(record)),
        connects=opened,
        connect_per_s=_ratio(opened, taken_s) if inside else None,
        priming=_priming(record),
        server_user_s=server.lifetime.user_s if server is not None else None,
        server_system_s=server.lifetime.system_s if server is not None else None,
        server_peak_rss_bytes=server.peak_rss_bytes if server is not None else None,
    )


def percentiles(totals: Sample) -> tuple[Percentile, ...]:
    """Return the percentages that ab prints."""
    found = []
    for percent in PERCENTS:
        at = totals.percentile(percent / 100)
        ms = None if at.value is None else at.value / NS_PER_MS
        found.append(Percentile(percent, ms, at.above and at.value is not None, at.too_few))
    return tuple(found)


def _priming(record: Record) -> Priming | None:
    if record.plan.warmup is None:
        return None
    counts = record.warmup.counts
    failed = figures.failed(counts)
    return Priming(counts.ok + failed, dict(counts.failed), record.warmup.wall_s)


def _times(sample: Sample) -> Times:
    found = sample.figures
    median = found.at("p50")
    return Times(
        min=_ms(found.min),
        mean=_ms(found.mean),
        sd=_ms(found.stdev),
        median=_ms(median.value),
        max=_ms(found.max),
        median_above=median.above,
        median_too_few=median.too_few and median.value is not None,
        largest_of=found.largest_of,
    )


def _ms(ns: float | None) -> float | None:
    return None if ns is None else ns / NS_PER_MS


def _ratio(one: float, other: float) -> float | None:
    return one / other if other > 0 else None
