"""A histogram with fixed bounds, for Prometheus and OpenTelemetry, from the engine's. Pure.

Bounds rise by about 1.5 from one to the next, six a decade. A quantile read from them by linear
interpolation is off by a fifth at most. A bucket of the engine's own is at most 1.6 % wide. It
counts under the first bound that is not below its upper end.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate

from trueload.buckets import Buckets

_STEPS = (10, 15, 20, 30, 50, 70)
BOUNDS_NS = (
    *(step * 10**decade for decade in range(3, 9) for step in _STEPS),
    *(10_000_000_000, 15_000_000_000, 20_000_000_000, 30_000_000_000, 60_000_000_000),
)
"""The bounds, from 10 us to a minute."""
BOUNDS_S = tuple(bound / 1e9 for bound in BOUNDS_NS)


@dataclass(frozen=True)
class Times:
    """``cumulative`` counts the times up to each bound; its last entry counts all."""

    cumulative: tuple[int, ...]
    sum_s: float

    @property
    def count(self) -> int:
        return self.cumulative[-1]

    def plus(self, other: Times) -> Times:
        """Return the sum of both histograms."""
        return Times(
            tuple(map(sum, zip(self.cumulative, other.cumulative, strict=True))),
            self.sum_s + other.sum_s,
        )

    def at_least(self, other: Times) -> Times:
        """Return the larger count everywhere: a counter that fell would look like a new one."""
        return Times(
            tuple(map(max, zip(self.cumulative, other.cumulative, strict=True))),
            max(self.sum_s, other.sum_s),
        )


NO_TIMES = Times((0,) * (len(BOUNDS_NS) + 1), 0.0)


def make_times(buckets: Buckets) -> Times:
    """Return the times of a decoded histogram in ns; each bucket adds its middle to the sum."""
    counts = [0] * (len(BOUNDS_NS) + 1)
    sum_ns = 0.0
    for low, high, count in zip(buckets.lows, buckets.highs, buckets.counts, strict=True):
        counts[bisect_left(BOUNDS_NS, high)] += count
        sum_ns += (low + high) / 2 * count
    return Times(tuple(accumulate(counts)), sum_ns / 1e9)
