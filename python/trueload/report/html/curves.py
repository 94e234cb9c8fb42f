"""The points of a record's curves: latency by percentile, and the figures of each second.

How: percentiles are those of ``figures``, so a curve ends where the requests without a time begin.
Seconds come from the series, the last one only if it is whole. Both are thinned out to what can be
seen. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trueload.protocol.plan import Open, Stage
from trueload.protocol.tick import Second
from trueload.record import figures
from trueload.record.accounts.targets import of_target
from trueload.record.accounts.tracks import TrackRecord, names_apart
from trueload.record.schema import Record
from trueload.stats import Distribution, can_bound, highest_bounded
from trueload.units import NS_PER_S
from trueload.verdict.common import is_open, is_staged

HIGHEST_SHARE = 0.9999
POINTS_A_DECADE = 16
SECONDS_MIN = 3  # fewer show no course
SECONDS_SHOWN_MAX = 180
# A larger shortfall from the offered rate fails the check `rate-reached`: the rate was not reached.
SHORT_OF_OFFERED = 0.05


@dataclass(frozen=True)
class PercentilePoint:
    """A share of all requests, from 0, and the time by which that share had ended well."""

    share: float
    ns: int


@dataclass(frozen=True)
class SecondPoint:
    """One second, or several in a long window.

    ``ok`` and ``failed`` are per second, and the latencies are of what ended in it. They are None
    if the rank falls among failed requests, or nothing ended. ``offered_per_s`` is the offered rate
    of an open loop.
    """

    t_s: float
    ok_per_s: float
    failed_per_s: float
    p50_ns: int | None
    p99_ns: int | None
    offered_per_s: float | None

    def at(self, name: str) -> int | None:
        return self.p99_ns if name == "p99" else self.p50_ns


@dataclass(frozen=True)
class RateLatency:
    """Latency at one offered rate of a run by stages; ``kept``: the rate was also answered."""

    rate_per_s: float
    p50_ns: int | None
    p99_ns: int | None
    kept: bool


def step_times(record: Record) -> dict[str, Distribution]:
    """Return the times of each step of a session, or of each request, under names that differ."""
    steps = record.targets or ()
    names = names_apart((step.name, step.method, step.url) for step in steps)
    return {name: of_target(step).figures for name, step in zip(names, steps, strict=True)}


def percentile_points(
    record: Record, times: Callable[[Record], figures.Sample] = figures.latency
) -> tuple[PercentilePoint, ...]:
    """Return the points from the quickest to 99.99 %, or to the last known one."""
    sample = times(record)
    count = sample.count
    # Above this share too few requests are slower to know it.
    highest = min(HIGHEST_SHARE, highest_bounded(count))
    points = []
    for share in (*(each for each in _shares() if each < highest), highest):
        found = sample.percentile(share)
        if found.above or found.value is None:
            break
        points.append(PercentilePoint(share, found.value))
    return tuple(points)


def _shares() -> list[float]:
    """Return shares that are even on an axis of equally wide nines, and the named percentiles."""
    steps = range(4 * POINTS_A_DECADE + 1)
    return sorted({0.5, 0.75, 0.95, *(1 - 10 ** (-step / POINTS_A_DECADE) for step in steps)})


def second_points(record: Record, track: TrackRecord | None = None) -> tuple[SecondPoint, ...]:
    """Return the whole seconds of the window, or of a part of its traffic.

    There are none for a short window.
    """
    series = record.whole_seconds(track.series if track is not None else None)
    if len(series) < SECONDS_MIN:
        return ()
    width = -(-len(series) // SECONDS_SHOWN_MAX)
    if track is not None:  # a part has fewer answers than the whole, and needs more time for a p99
        mean = sum(sum(second.latency.values()) for second in series) / len(series)
        while width < len(series) // SECONDS_MIN and not can_bound(0.99, int(width * mean)):
            width += 1
    load = record.plan.window.load
    stages = load.stages if isinstance(load, Open) and track is None else ()
    groups = [series[at : at + width] for at in range(0, len(series), width)]
    return tuple(_together(group, stages) for group in groups)


def part_points(record: Record, part: str) -> tuple[SecondPoint, ...]:
    """Return the points of one of ``STREAM_PARTS``; none without streams."""
    found = [each for each in record.tracks if each.of_stream and each.name == part]
    return second_points(record, found[0]) if found else ()


def slowest_step_points(record: Record, most: int) -> dict[str, tuple[SecondPoint, ...]]:
    """Return the points of the steps with the highest p99; none if there is one request."""
    steps = [each for each in record.tracks if not each.of_stream]
    p99s = {step.name: figures.of_seconds(step.series).figures.known("p99") or 0 for step in steps}
    slowest = sorted(p99s, key=lambda name: -p99s[name])[:most]
    found = {step.name: second_points(record, step) for step in steps if step.name in slowest}
    return found if len(steps) > 1 and any(found.values()) else {}


def _together(group: Sequence[Second], stages: Sequence[Stage]) -> SecondPoint:
    latency = figures.of_seconds(group).figures
    middle_s = (group[0].t_s + group[-1].t_s + group[-1].width_s) / 2
    seconds = sum(second.width_s for second in group)
    return SecondPoint(
        t_s=middle_s,
        ok_per_s=sum(second.ok for second in group) / seconds,
        failed_per_s=sum(second.failed for second in group) / seconds,
        p50_ns=latency.known("p50"),
        p99_ns=latency.known("p99"),
        offered_per_s=_rate_at(stages, middle_s * NS_PER_S),
    )


def _rate_at(stages: Sequence[Stage], at_ns: float) -> float | None:
    """Return the offered rate at a time of the window; None outside its stages."""
    for stage in stages:
        if at_ns <= stage.ns:
            return stage.from_ + (stage.to - stage.from_) * at_ns / max(stage.ns, 1)
        at_ns -= stage.ns
    return None


def offered_points(record: Record) -> tuple[RateLatency, ...]:
    """Return latency against offered rate for a run by stages: a point per second, by rate."""
    if not (is_open(record) and is_staged(record)):
        return ()
    found = []
    for point in second_points(record):
        rate = point.offered_per_s
        if rate:
            kept = not point.failed_per_s and point.ok_per_s >= (1 - SHORT_OF_OFFERED) * rate
            found.append(RateLatency(rate, point.p50_ns, point.p99_ns, kept))
    return tuple(sorted(found, key=lambda each: each.rate_per_s))


def largest_kept(points: Sequence[RateLatency]) -> float | None:
    """Return the highest rate up to which every rate was kept; None if the lowest was not."""
    largest = None
    for point in points:
        if not point.kept:
            break
        largest = point.rate_per_s
    return largest
