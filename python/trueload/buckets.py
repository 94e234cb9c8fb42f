"""Histograms whose buckets grow with their values, and what is counted in them. Pure.

How: all buckets below a power of two are as wide as the unit. From there on each power of two is
divided into the same number of buckets, half as many. So between two powers of two the bounds are
ranges, and few figures need those of each bucket. With very many hosts that matters: each has
thousands of buckets.
"""

from __future__ import annotations

import operator
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate, chain, compress

Stretch = tuple[range, range, Sequence[int]]
"""Buckets of one width: their lowest values, their highest values, their counts."""


class Buckets:
    """A histogram by rising value, in its unit (ns). Counts of stretches may be 0."""

    def __init__(self, *stretches: Stretch) -> None:
        self.stretches = stretches

    @cached_property
    def lows(self) -> tuple[int, ...]:
        """The lowest value of each bucket that is not empty."""
        return tuple(chain.from_iterable(compress(lows, n) for lows, _, n in self.stretches))

    @cached_property
    def highs(self) -> tuple[int, ...]:
        """The highest value of each bucket that is not empty."""
        return tuple(chain.from_iterable(compress(highs, n) for _, highs, n in self.stretches))

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """The count of each bucket that is not empty."""
        return tuple(filter(None, self._every_count()))

    @property
    def total(self) -> int:
        """How many values were counted."""
        return self._ranks[-1] if self._ranks else 0

    @cached_property
    def _ranks(self) -> tuple[int, ...]:
        """The rank of the last value of each bucket, with those that are empty."""
        return tuple(accumulate(self._every_count()))

    def _every_count(self) -> Iterator[int]:
        return chain.from_iterable(counts for _, _, counts in self.stretches)

    def at_rank(self, rank: int) -> int:
        """The highest value of the bucket of a rank from 1 to the total. Raises ``ValueError`` for
        any other."""
        at = bisect_left(self._ranks, rank)
        for _, highs, counts in self.stretches:
            if at < len(counts):
                return highs[at]
            at -= len(counts)
        raise ValueError(f"there is no rank {rank} among {self.total}")

    @property
    def least(self) -> int:
        """The lowest value. There must be one."""
        return next(low for lows, _, n in self.stretches for low in compress(lows, n))

    @property
    def greatest(self) -> int:
        """The highest value. There must be one."""
        return self.at_rank(self.total)

    @cached_property
    def moments(self) -> tuple[int, int]:
        """The sum of all values, times two, and that of their squares, times four, each bucket at
        its middle. In whole numbers, which are exact.

        How: u counts the buckets of a stretch down to 1 at its last. Twice a middle is then
        ``top - step u``, and the sums of u and of u (u + 1) / 2 are those of ranks, and of ranks of
        ranks, which takes half the time of multiplying each count.
        """
        twice = squares = at = before = 0
        for lows, highs, counts in self.stretches:
            size, step = len(counts), 2 * lows.step
            top = lows.start + highs.start + step * size
            ranks = self._ranks[at : at + size]
            whole, first = ranks[-1] - before, sum(ranks) - before * size
            second = 2 * sum(accumulate(ranks)) - before * size * (size + 1) - first
            twice += top * whole - step * first
            squares += top * top * whole - 2 * top * step * first + step * step * second
            at, before = at + size, ranks[-1]
        return twice, squares

    def twice_above(self, least: float) -> int:
        """The same sum, times two, of the buckets whose highest value is above ``least``."""
        found = 0
        for lows, highs, counts in self.stretches:
            first = bisect_right(highs, least)
            twice = map(operator.add, lows[first:], highs[first:])
            found += sum(map(operator.mul, twice, counts[first:]))
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Buckets) and self._all() == other._all()

    def __hash__(self) -> int:
        return hash(self._all())

    def _all(self) -> tuple[tuple[int, ...], ...]:
        return self.lows, self.highs, self.counts


def stretches(first: int, counts: Sequence[int], half: int, unit: int = 0) -> Iterator[Stretch]:
    """Yield the buckets from the index ``first`` on. There are 2 to the ``half`` of them for each
    power of two, and the narrowest are 2 to the ``unit`` wide."""
    index, end = first, first + len(counts)
    while index < end:
        shift = max(0, (index >> half) - 1)
        until = min(end, (shift + 2) << half)
        base, width = shift << half, 1 << shift + unit
        lows = range((index - base) * width, (until - base) * width, width)
        highs = range(lows.start + width - 1, lows.stop + width - 1, width)
        yield lows, highs, counts[index - first : until - first]
        index = until
