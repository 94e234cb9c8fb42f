"""A histogram with fixed bounds, as Prometheus and OpenTelemetry have it, from the engine's. Pure.

Bounds rise by about 1.5 from one to the next, six a decade: a quantile read from them by a straight
line is off by a fifth at most. A bucket of the engine's own, which is at most 1.6 % wide, counts
under the first bound that all of it keeps to.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate

from trueload.stats import Buckets

_STEPS = (10, 15, 20, 30, 50, 70)
BOUNDS_NS = (
    *(step * 10**decade for decade in range(3, 9) for step in _STEPS),
    *(10_000_000_000, 15_000_000_000, 20_000_000_000, 30_000_000_000, 60_000_000_000),
)
"""From 10 us to a minute."""
BOUNDS_S = tuple(bound / 1e9 for bound in BOUNDS_NS)


@dataclass(frozen=True)
class Times:
    """``cumulative``: how many were at most as long as each bound; the last is all of them."""

    cumulative: tuple[int, ...]
    sum_s: float

    @property
    def count(self) -> int:
        """All of them."""
        return self.cumulative[-1]

    def plus(self, other: Times) -> Times:
        """Both."""
        return Times(
            tuple(map(sum, zip(self.cumulative, other.cumulative, strict=True))),
            self.sum_s + other.sum_s,
        )

    def at_least(self, other: Times) -> Times:
        """The larger of both everywhere: a counter that goes back would look like a new one."""
        return Times(
            tuple(map(max, zip(self.cumulative, other.cumulative, strict=True))),
            max(self.sum_s, other.sum_s),
        )


NO_TIMES = Times((0,) * (len(BOUNDS_NS) + 1), 0.0)


def make_times(buckets: Buckets) -> Times:
    """From a decoded histogram in ns; its sum takes each bucket at its middle."""
    counts = [0] * (len(BOUNDS_NS) + 1)
    sum_ns = 0.0
    for low, high, count in zip(buckets.lows, buckets.highs, buckets.counts, strict=True):
        counts[bisect_left(BOUNDS_NS, high)] += count
        sum_ns += (low + high) / 2 * count
    return Times(tuple(accumulate(counts)), sum_ns / 1e9)
