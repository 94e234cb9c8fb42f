"""Stretches of a window that differ from the rest of it by more than chance explains.

How: every stretch from two parts to half of the parts is left out in turn. The differences of
successive parts, which a trend hardly enters, show what chance explains (J. von Neumann,
*Distribution of the ratio of the mean square successive difference to the variance*, 1941). Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

PARTS, PARTS_MIN = 32, 20
STRETCH_MIN = 2  # parts
# A rate that is 5 % off because the window began too early is another rate, and a longer warm-up
# cures it. Later, a machine shared with others changes its speed by as much, and there is no cure.
# A server that slows down or pauses does more.
START_WARN, LATER_WARN = 0.05, 0.10
CHANGE_FAIL = 0.25  # the effect on the mean if halves differ by 50 %
# At most 1 % of 10,000 simulated steady runs had a stretch with a larger difference, in standard
# errors. Successive parts had a correlation of 0 to 0.5 (docs/verdicts.md, `steady-state`).
STANDARD_ERRORS = 6.0
CORRELATION_MOST = 0.5  # a trend looks like correlation, too
SPREAD_LEAST = 1e-6  # of the mean: equal parts need a spread, too
EDGES = 2  # of a pause: the differences at them are no chance


@dataclass(frozen=True)
class Stretch:
    """Parts ``first`` to ``end`` of a window of ``count`` parts.

    ``inside`` and ``outside`` are the mean rates in the stretch and in the rest. ``errors`` is
    their difference in standard errors.
    """

    first: int
    end: int
    count: int
    inside: float
    outside: float
    errors: float

    @property
    def mean(self) -> float:
        """The mean rate of all parts."""
        parts = self.end - self.first
        return (parts * self.inside + (self.count - parts) * self.outside) / self.count

    @property
    def effect(self) -> float:
        """The difference of the whole mean from the rest's, as a share; inf if the rest is 0."""
        return abs(self.mean / self.outside - 1) if self.outside else math.inf

    @property
    def limit(self) -> float:
        """The effect above which the stretch is reported."""
        slower = self.inside < self.outside
        began_slowly = self.first == 0 if slower else self.end == self.count
        return START_WARN if began_slowly else LATER_WARN

    @property
    def worth(self) -> float:
        """The work that was missing or added in the stretch, in parts."""
        faster = max(self.inside, self.outside)
        return (self.end - self.first) * abs(self.inside - self.outside) / faster if faster else 0.0


def largest_change(
    rates: Sequence[float], at_once: float = 0.0, turn: float = 0.0
) -> Stretch | None:
    """Return the stretch that differs most from the rest, if it matters.

    None if chance explains all of them. ``at_once`` answers may fall on either side of a part's
    edge. The work of ``turn`` parts may be missing because a thread waited for its turn.
    """
    found = (each for each in _stretches(rates, at_once) if each.errors > STANDARD_ERRORS)
    significant = [each for each in found if each.effect > each.limit and each.worth > turn]
    return max(significant, key=lambda each: each.errors, default=None)


def _stretches(rates: Sequence[float], at_once: float) -> Iterator[Stretch]:
    """Yield all stretches."""
    count, sums = len(rates), list(accumulate(rates, initial=0.0))
    spread = max(spread_of(rates), SPREAD_LEAST * sums[-1] / count)
    for first in range(count):
        for end in range(first + STRETCH_MIN, min(count, first + count // 2) + 1):
            parts, left = end - first, count - (end - first)
            inside = (sums[end] - sums[first]) / parts
            outside = (sums[-1] - sums[end] + sums[first]) / left
            share = 1 / parts + 1 / left
            apart = max(0.0, abs(inside - outside) - at_once * share)
            errors = apart / (spread * math.sqrt(share))
            yield Stretch(first, end, count, inside, outside, errors)


def spread_of(rates: Sequence[float]) -> float:
    """Return the standard deviation of a part from which the standard error of a mean follows.

    It comes from the differences of successive parts, and from how much more parts differ that are
    two apart. If neighbouring parts have a correlation r, the mean square differences are as 1 to 1
    + r. The variance of means is (1 + r) / (1 - r)^2 times the one that the first differences give.
    """
    near, far = _half_square(rates, 1), _half_square(rates, 2)
    correlation = min(CORRELATION_MOST, max(0.0, far / near - 1)) if near else 0.0
    return math.sqrt(near * (1 + correlation)) / (1 - correlation)


def _half_square(rates: Sequence[float], apart: int) -> float:
    """Return half the mean square difference of parts ``apart`` parts apart.

    The largest differences, which are those over two edges, are left out.
    """
    squares = sorted((two - one) ** 2 for one, two in zip(rates, rates[apart:], strict=False))
    count = len(rates)
    # This corrects for the largest differences that are left out of normal noise; it is within 1 %
    # of simulated values for 20 to 48 parts.
    factor = 1 + (14 / count if apart == 1 else 26 / (count - 5.5))
    return factor * sum(squares[: -EDGES * apart]) / (2 * len(squares))
