"""Statistics of repetitions: medians with their intervals, ratios, and whether two sides differ.

An interval of a median lies between two of the values. The binomial distribution says which; for a
ratio of medians that of the rank sum does. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from typing import Literal

TAIL = 40  # 1 / 40 of all cases may lie beyond each end of a 95 % interval
SIDE_MAX = 100  # trials of each side of which all pairs are formed; more would take long
PAIRS_MOST = 100  # more pairs take hours; a steadier machine is the better way
FOUND_SHARE = 0.8  # the usual power of a test (Cohen 1988)


@dataclass(frozen=True)
class Interval:
    """Where a median lies: a 95 % interval, or the range if there are too few values for one."""

    low: float
    high: float
    kind: Literal["95 % interval", "range"]


def median(values: Sequence[float]) -> float | None:
    """The middle value, or the mean of the middle two; None if there is none."""
    ordered = sorted(values)
    if not ordered:
        return None
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return float(ordered[middle])
    low, high = ordered[middle - 1], ordered[middle]
    return float(high) if low == high else (low + high) / 2  # inf - inf would be nan


def median_of_bounds(found: Sequence[tuple[float | None, bool]]) -> tuple[float | None, bool]:
    """The median of values that may be only lower bounds (True) or unknown (None), which both count
    as infinite. If the middle one is infinite, return the median of the bounds, which it exceeds,
    and True."""
    endless = [math.inf if above or value is None else value for value, above in found]
    middle = median(endless)
    if middle is None or math.isfinite(middle):
        return middle, False
    return (median([value or 0.0 for value, _ in found]) or None), True


def interval(values: Sequence[float]) -> Interval | None:
    """The 95 % interval of the median, between two of the values, by exact binomial sums as in the
    sign test (Conover 1999, 3.2). The range if there are fewer than six; None if there are none."""
    if not values:
        return None
    count = len(values)
    ways = accumulate(range(count), lambda n, k: n * (count - k) // (k + 1), initial=1)
    return _between(sorted(values), sorted(values), _left_out(ways, 2**count))


def _between(lows: Sequence[float], highs: Sequence[float], left_out: int | None) -> Interval:
    """The interval without ``left_out`` values at each end; None means the range of all."""
    kind: Literal["95 % interval", "range"] = "range" if left_out is None else "95 % interval"
    at = left_out or 0
    return Interval(float(lows[at]), float(highs[-1 - at]), kind)


def _left_out(ways: Iterable[int], total: int) -> int | None:
    """How many values a 95 % interval leaves out at each end; None if there are too few. ``ways``:
    of ``total`` equally likely cases, those in which 0, 1, 2… of the values lie on the wrong side.
    """
    likely = (count for count, beyond in enumerate(accumulate(ways)) if beyond * TAIL > total)
    fewest = next(likely)
    return fewest - 1 if fewest else None


def coefficient_of_variation(values: Sequence[float]) -> float | None:
    """Standard deviation (of a sample) over mean; None for fewer than two values, or mean 0."""
    if len(values) < 2 or not all(map(math.isfinite, values)):
        return None
    mean = math.fsum(values) / len(values)
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return math.sqrt(variance) / mean if mean else None


def ratio(new: float, base: float) -> float | None:
    """new / base; None if that is undefined (0 / 0, both infinite)."""
    if math.isinf(new) and math.isinf(base):
        return None
    if base == 0:
        return math.inf if new > 0 else None
    return new / base


def ratio_interval(base: Sequence[float], new: Sequence[float]) -> Interval | None:
    """The 95 % interval of median(new) / median(base), between two of the ratios of each new value
    to each base value, by the rank sum test (Hollander and Wolfe 1999, 4.3). It is widened to
    contain the ratio of the medians. The range of those ratios if there are too few values; None if
    there are none."""
    base, new = _at_even_ranks(base), _at_even_ranks(new)
    if not base or not new:
        return None
    if ratio(new[0], base[-1]) is None or ratio(new[-1], base[0]) is None:
        return None
    found = [ratio(now, old) for now in new for old in base]
    # An undefined ratio may be anything.
    lows = sorted(0.0 if each is None else each for each in found)
    highs = sorted(math.inf if each is None else each for each in found)
    within = _between(lows, highs, _ratios_left_out(*sorted((len(base), len(new)))))
    middle = ratio(median(new) or 0.0, median(base) or 0.0)
    if middle is None:
        return within
    return replace(within, low=min(within.low, middle), high=max(within.high, middle))


def _at_even_ranks(values: Sequence[float]) -> list[float]:
    """The values in rising order; of too many, ``SIDE_MAX`` at evenly spaced ranks. The interval
    becomes that of so many: wider, never narrower."""
    ordered = sorted(values)
    count, kept = len(ordered), min(len(ordered), SIDE_MAX)
    return [ordered[(2 * rank + 1) * count // (2 * kept)] for rank in range(kept)]


@lru_cache
def _ratios_left_out(fewer: int, more: int) -> int | None:
    """``_left_out`` for all pairs of two sides. None for a side of one value, which does not show
    how much it varies."""
    return None if fewer == 1 else _left_out(_orders(fewer, more), math.comb(fewer + more, fewer))


@lru_cache
def _orders(fewer: int, more: int) -> tuple[int, ...]:
    """How many orders of the values of two sides have 0, 1, 2… pairs the wrong way round: the
    coefficients of a Gaussian binomial (Mann and Whitney 1947)."""
    ways = [1] + [0] * (fewer * more)
    for each in range(1, fewer + 1):
        for pairs in range(len(ways) - 1, more + each - 1, -1):
            ways[pairs] -= ways[pairs - more - each]
        for pairs in range(each, len(ways)):
            ways[pairs] += ways[pairs - each]
    return tuple(ways)


def sign_chance(values: Sequence[float]) -> float:
    """The probability by chance that so many of the values, or more, lie on one side of 1: the
    exact sign test, two-sided. A value of 1 is on neither side."""
    count = len(values)
    agreeing = max(sum(value > 1 for value in values), sum(value < 1 for value in values))
    return min(1.0, 2 * _at_most(count - agreeing, count, 0.5))


def _at_most(most: int, count: int, share: float) -> float:
    """The binomial probability of at most ``most`` successes in ``count`` tries."""
    each = range(min(most, count) + 1)
    return math.fsum(math.comb(count, k) * share**k * (1 - share) ** (count - k) for k in each)


def rank_sum_chance(base: Sequence[float], new: Sequence[float]) -> float:
    """The probability by chance that one side lies so far above the other: the exact rank sum test,
    two-sided. Equal values count against either side."""
    base, new = _at_even_ranks(base), _at_even_ranks(new)
    pairs = [(old, now) for old in base for now in new]
    wrong = min(sum(now <= old for old, now in pairs), sum(now >= old for old, now in pairs))
    ways = _orders(*sorted((len(base), len(new))))
    return min(1.0, 2 * sum(ways[: wrong + 1]) / sum(ways))


def log_spread(values: Sequence[float]) -> float | None:
    """The standard deviation of the logarithms of at least two values, all positive; else None."""
    if len(values) < 2 or not all(0 < each < math.inf for each in values):
        return None
    logs = [math.log(each) for each in values]
    mean = math.fsum(logs) / len(logs)
    return math.sqrt(math.fsum((each - mean) ** 2 for each in logs) / (len(logs) - 1))


def pairs_to_find(spread: float, difference: float, chance_max: float) -> float:
    """How many pairs it takes to find a difference (0.03) in four of five tries by the sign test,
    if the logarithms of their ratios are normally distributed with the deviation ``spread``. inf if
    that is more than ``PAIRS_MOST``."""
    wrong = math.erfc(-math.log1p(-difference) / max(spread, 1e-9) / math.sqrt(2)) / 2
    for count in range(1, PAIRS_MOST + 1):
        allowed = _may_disagree(count, chance_max)
        if allowed is not None and _at_most(allowed, count, wrong) >= FOUND_SHARE:
            return count
    return math.inf


@lru_cache(maxsize=PAIRS_MOST)
def _may_disagree(count: int, chance_max: float) -> int | None:
    """The most pairs of ``count`` that may disagree with a claim; None if unanimity is not
    enough."""
    fitting = [k for k in range(count // 2) if 2 * _at_most(k, count, 0.5) <= chance_max]
    return fitting[-1] if fitting else None
