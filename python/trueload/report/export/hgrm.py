"""The latency of a trial in HdrHistogram's percentile output format (``.hgrm``). Pure.

How: the format of ``outputPercentileDistribution``, in ms, which the plotter of HdrHistogram, wrk2
and others read and write. Percentile levels come five to each halving of the rest. A file holds one
histogram. The requests without a time are in a comment at the end: no reader of the format knows
them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from trueload.errors import UserError
from trueload.record import figures
from trueload.record.schema import Record
from trueload.store.rows import DamagedRow, Row, Run
from trueload.units import NS_PER_MS, counted

TICKS = 5  # levels per half of the rest: the default of HdrHistogram
SUB_BUCKETS = 2048  # with three significant digits, which our histograms have

Bucket = tuple[int, int, int]
"""The lowest and the highest value of a bucket, and its count."""


def run_hgrm(run: Run, rows: Iterable[Row | DamagedRow]) -> Iterator[str]:
    """Yield the histogram of the run's one trial. Raises ``UserError`` if it has several."""
    timed = [each.record for each in rows if isinstance(each, Row) and each.record is not None]
    timed = [record for record in timed if record.histograms.latency is not None]
    if len(timed) != 1:
        has = f"{len(timed)} trials" if timed else "no trial"
        raise UserError(
            f"run {run.id} has {has} with answers, and a .hgrm file holds one histogram",
            "name a run of one trial; --format json has the histograms of all",
        )
    yield from hgrm(timed[0])


def hgrm(record: Record) -> Iterator[str]:
    """Yield the lines of the file for a record that has timed answers."""
    known = figures.latency(record).known
    buckets = list(zip(known.lows, known.highs, known.counts, strict=True))
    yield f"{'Value':>12} {'Percentile':>14} {'TotalCount':>10} {'1/(1-Percentile)':>14}\n\n"
    for value_ns, level, count in levels(buckets):
        line = f"{value_ns / NS_PER_MS:12.3f} {level / 100:2.12f} {count:10d}"
        yield line + (f" {1 / (1 - level / 100):14.2f}\n" if level < 100 else "\n")
    yield from _summary(buckets)
    counts = record.counts
    untimed = figures.failed(counts) + counts.unsent + counts.cancelled
    if untimed:
        yield f"#[Without a time = {counted(untimed, 'request')}, in no line above]\n"


def levels(buckets: list[Bucket]) -> Iterator[tuple[int, float, int]]:
    """Yield value, percentile level and count up to the value, for each level from 0 to 100."""
    total, seen, level = sum(count for _, _, count in buckets), 0, 0.0
    for _, high, count in buckets:
        seen += count
        while 100.0 * seen / total >= level:
            yield high, level, seen
            level += 100.0 / (TICKS * 2 ** (math.log2(100.0 / (100.0 - level)) + 1))
            if seen == total:
                break
    if buckets:
        yield buckets[-1][1], 100.0, total


def _summary(buckets: list[Bucket]) -> Iterator[str]:
    total = sum(count for _, _, count in buckets)
    middles = [(low + (high - low + 1) // 2, count) for low, high, count in buckets]
    mean = sum(middle * count for middle, count in middles) / max(1, total)
    squares = sum((middle - mean) ** 2 * count for middle, count in middles)
    highest = buckets[-1][1] if buckets else 0
    deviation = math.sqrt(squares / max(1, total))
    mean_ms, deviation_ms = mean / NS_PER_MS, deviation / NS_PER_MS
    yield f"#[Mean    = {mean_ms:12.3f}, StdDeviation   = {deviation_ms:12.3f}]\n"
    yield f"#[Max     = {highest / NS_PER_MS:12.3f}, TotalCount     = {total:12d}]\n"
    needed = max(1, highest.bit_length() - SUB_BUCKETS.bit_length() + 2)
    yield f"#[Buckets = {needed:12d}, SubBuckets     = {SUB_BUCKETS:12d}]\n"
