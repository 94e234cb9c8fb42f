"""From one record to the points of a curve: latency by percentile, and what each second had.

How: percentiles are those of ``figures``, so that a curve ends where the requests without a time
begin; seconds come from the series, the last of them only where it is whole. Both are thinned out
to what can be seen. Pure. Must not know charts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trueload.protocol.plan import Open, Second, Stage
from trueload.record import figures
from trueload.record.schema import Record
from trueload.stats import highest_bounded
from trueload.units import NS_PER_S

HIGHEST_SHARE = 0.9999
POINTS_A_DECADE = 16
SECONDS_MIN = 3  # of fewer there is no course to see
SECONDS_SHOWN_MAX = 180
# So much less than what was offered is the limit of the check `rate-reached`: it was not reached.
SHORT_OF_OFFERED = 0.05


@dataclass(frozen=True)
class PercentilePoint:
    """A share of all requests, from 0, and the time in which so many had ended well."""

    share: float
    ns: int


@dataclass(frozen=True)
class SecondPoint:
    """One second, or several where the window is long: ``ok`` and ``failed`` per second, latency
    of what ended in it (None: the rank lies among what failed, or nothing ended), and the rate that
    was offered, of an open loop."""

    t_s: float
    ok_per_s: float
    failed_per_s: float
    p50_ns: int | None
    p99_ns: int | None
    offered_per_s: float | None


@dataclass(frozen=True)
class Offered:
    """Latency at one offered rate of a run by stages; ``kept``: so much was also answered."""

    rate_per_s: float
    p50_ns: int | None
    p99_ns: int | None
    kept: bool


def percentile_points(record: Record) -> tuple[PercentilePoint, ...]:
    """From the quickest to 99.99 %, or to where nothing more is known."""
    latency = figures.latency(record)
    count = latency.count
    # Above this share too few are slower to know it.
    highest = min(HIGHEST_SHARE, highest_bounded(count))
    points = []
    for share in (*(each for each in _shares() if each < highest), highest):
        found = latency.percentile(share)
        if found.above or found.value is None:
            break
        points.append(PercentilePoint(share, found.value))
    return tuple(points)


def _shares() -> list[float]:
    """Evenly on an axis on which each nine is as wide as the one before, and the named ones."""
    steps = range(4 * POINTS_A_DECADE + 1)
    return sorted({0.5, 0.75, 0.95, *(1 - 10 ** (-step / POINTS_A_DECADE) for step in steps)})


def second_points(record: Record) -> tuple[SecondPoint, ...]:
    """The whole seconds of the window; nothing of a short one."""
    series = record.whole_seconds()
    if len(series) < SECONDS_MIN:
        return ()
    width = -(-len(series) // SECONDS_SHOWN_MAX)
    load = record.plan.window.load
    stages = load.stages if isinstance(load, Open) else ()
    groups = [series[at : at + width] for at in range(0, len(series), width)]
    return tuple(_together(group, stages) for group in groups)


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
    """The offered rate at a time of the window; None outside of its stages."""
    for stage in stages:
        if at_ns <= stage.ns:
            return stage.from_ + (stage.to - stage.from_) * at_ns / max(stage.ns, 1)
        at_ns -= stage.ns
    return None


def is_staged(record: Record) -> bool:
    """Whether its rate was another at other times."""
    load = record.plan.window.load
    if not isinstance(load, Open):
        return False
    return len({value for stage in load.stages for value in (stage.from_, stage.to)}) > 1


def offered_points(record: Record) -> tuple[Offered, ...]:
    """Latency against the offered rate, of a run by stages: each second is a point, by rate."""
    if not is_staged(record):
        return ()
    found = []
    for point in second_points(record):
        rate = point.offered_per_s
        if rate:
            kept = not point.failed_per_s and point.ok_per_s >= (1 - SHORT_OF_OFFERED) * rate
            found.append(Offered(rate, point.p50_ns, point.p99_ns, kept))
    return tuple(sorted(found, key=lambda each: each.rate_per_s))


def largest_kept(points: Sequence[Offered]) -> float | None:
    """The highest rate up to which every one was answered; None if the lowest was not."""
    largest = None
    for point in points:
        if not point.kept:
            break
        largest = point.rate_per_s
    return largest
