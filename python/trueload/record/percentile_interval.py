"""The 95 % interval of a percentile of a window's requests.

How: of n requests, n (1 - p) are beyond a percentile p. If requests were independent, that number
would vary by the binomial distribution. But requests of one moment are slow together, so it varies
by more. How much more, the seconds of the series show: by how unevenly they share what is beyond,
and by how much neighbours are alike. This is the interval of Woodruff (1952) with the seconds as
clusters. It reaches so many ranks to each side, so it has the percentile in it, and its ends are
times that were measured. If a few seconds have most of what is beyond, the percentile is theirs,
and says nothing of other seconds: there is no interval. Pure.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from trueload.protocol.tick import Second
from trueload.record.sample import Sample
from trueload.stats import Z_95, student_t
from trueload.units import counted, format_share

SECONDS_MIN = 10
"""It takes this many seconds to see how much they differ."""
MOMENTS_MIN, MOMENTS_SHARE = 6.0, 1 / 3
"""The requests beyond the percentile must come from at least this many seconds, or, in a short run,
from this share of all seconds."""
MOMENTS_OF = 5
"""In a run of fewer seconds that is not required."""
SPREAD_CHANCE = 1.3
"""In standard deviations: by chance alone, seconds differ by less in nine of ten runs."""
LIKENESS_MOST = 0.7  # more is not known from so few seconds
GAP_RATIO = 2.0
FREEDOM_MIN = 3  # with so few seconds that are independent, the width is but a guess


@dataclass(frozen=True)
class PercentileInterval:
    """Between which times a percentile lies, in ns, and how that is known. ``between`` is None if
    it is not, and ``how`` says why then."""

    between: tuple[float, float] | None
    how: str


@dataclass(frozen=True)
class Beyond:
    """How many requests each second had, and how many of them beyond a percentile."""

    counts: tuple[int, ...]
    beyond: tuple[float, ...]

    @property
    def moments(self) -> float:
        """In how many seconds the requests beyond would be if all of these had equally many. What
        chance does to small numbers is subtracted."""
        total, seconds = sum(self.beyond), len(self.beyond)
        squares = math.fsum(each**2 for each in self.beyond) - total
        return total**2 / max(squares, total**2 / seconds)

    @property
    def is_of_few(self) -> bool:
        """Whether a few seconds have most of what is beyond."""
        seconds = len(self.beyond)
        few = min(MOMENTS_MIN, MOMENTS_SHARE * seconds)
        return seconds >= MOMENTS_OF and sum(self.beyond) > 0 and self.moments < few

    def deviations(self, share: float) -> float:
        """Half the width of the interval, in standard deviations of independent requests."""
        seconds, total = len(self.counts), sum(self.counts)
        chance = total * share * (1 - share)
        if seconds < SECONDS_MIN or not chance:
            return Z_95
        off = [
            each - count * (1 - share) for count, each in zip(self.counts, self.beyond, strict=True)
        ]
        square = math.fsum(each**2 for each in off)
        spread = square * seconds / (seconds - 1) / chance
        if spread <= 1 + SPREAD_CHANCE * math.sqrt(2 / (seconds - 1)):
            return Z_95
        alike = _likeness(off, square) * spread / (spread - 1)  # chance is never alike
        alike = min(LIKENESS_MOST, alike)
        longer = (1 + alike) / (1 - alike)
        freedom = max(FREEDOM_MIN, int(seconds / longer) - 1)
        return student_t(freedom) * math.sqrt(1 + (spread - 1) * longer)


def _likeness(off: Sequence[float], square: float) -> float:
    """The correlation of neighbours, without the bias of short series (Marriott and Pope 1954); 0
    if they are not alike."""
    count = len(off)
    found = math.fsum(one * two for one, two in pairwise(off)) / square * count / (count - 1)
    return found + (1 + 3 * found) / count if found > 0 else 0.0


def percentile_interval(
    latency: Sample, seconds: Sequence[Second], share: float
) -> PercentileInterval:
    """The interval of a percentile that is not limited itself, from the whole seconds of a
    window."""
    found = beyond_of(seconds, share)
    if found.is_of_few:
        moments = max(1, round(found.moments))
        where = "one second" if moments == 1 else f"about {moments} seconds"
        slowest = f"the slowest {format_share(round(1 - share, 9))}"
        return PercentileInterval(None, f"most of {slowest} came in {where} of {len(seconds)}")
    deviations = found.deviations(share)
    between = latency.interval(share, deviations)
    if between is None:
        few = counted(latency.count, "request is", "requests are")
        return PercentileInterval(None, f"{few} too few")
    how = "by rank" if deviations == Z_95 else "by how its seconds differ"
    return PercentileInterval(between, how)


def gap_within(latency: Sample, between: tuple[float, float]) -> tuple[int, int] | None:
    """The widest gap between two times of an interval, by the ratio of its ends, if that is at
    least ``GAP_RATIO``: the distribution has nothing there."""
    highs = latency.known.highs
    first, last = bisect_left(highs, between[0]), bisect_left(highs, between[1])
    ends = pairwise(highs[first : last + 1])
    below, above = max(ends, key=lambda each: each[1] / max(1, each[0]), default=(1, 1))
    return (below, above) if above >= GAP_RATIO * max(1, below) else None


def beyond_of(seconds: Sequence[Second], share: float) -> Beyond:
    """What each second has beyond the percentile of all of them."""
    latencies = [dict(each.latency) for each in seconds]
    whole: Counter[int] = Counter()
    for latency in latencies:
        whole.update(latency)
    counts = tuple(each.ok + each.failed for each in seconds)
    above = sum(each.failed for each in seconds)
    wanted = sum(counts) * (1 - share)
    at, part = -1, 0.0  # the bucket of the percentile, and its part that is beyond
    for index in sorted(whole, reverse=True):
        if above + whole[index] >= wanted:
            at, part = index, max(0.0, wanted - above) / whole[index]
            break
        above += whole[index]
    beyond = tuple(
        each.failed
        + sum(count for index, count in latency.items() if index > at)
        + part * latency.get(at, 0)
        for each, latency in zip(seconds, latencies, strict=True)
    )
    return Beyond(counts, beyond)
