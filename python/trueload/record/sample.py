"""Times of some requests, of which others may have none, and every figure of them.

The rule (docs/method.md, "Requests without a time"): a request that failed, was left open or was
never sent has no time, and counts as slower than any answer. A percentile whose rank falls among
such requests is only known to be more than the slowest answer, and is shown as ``> X``. Minimum,
mean, maximum and deviation cover answers only, and are labelled so.

Where the generator was paused, some requests waited for it. If a share a of all did, the true
percentile q lies between those of ranks q - a and q. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from trueload.buckets import Buckets
from trueload.stats import (
    EMPTY,
    RANKED,
    Z_95,
    Distribution,
    Quantile,
    decode_histogram,
    parse_percentile,
    quantile,
    rank_interval,
    summarise,
)

WARN_PART = 1 / 4
"""The share of requests beyond a percentile that waited for us, from which it may have moved."""
MARKED_OFF = 0.05  # how much too long a percentile may then be, until it is an upper bound
LEAST_NS = 500_000  # the engine does not see shorter stalls
LEAST_PART = 0.05  # of a percentile: shorter stalls cannot change it by more


@dataclass(frozen=True)
class StallGroup:
    """Stalls of similar length: their number, total time, and number of requests that waited."""

    count: float
    ns: float
    requests: float

    @property
    def length_ns(self) -> float:
        """The mean length of these stalls, in ns."""
        return self.ns / self.count


@dataclass(frozen=True)
class StallEffect:
    """How far stalls reach up to one percentile: the requests that waited as a share of those
    beyond it, and by how much it may be too long, in ns and as a share."""

    part: float
    ns: float
    off: float

    @property
    def is_overstated(self) -> bool:
        """Whether the percentile is only known to be at most what is shown."""
        return self.part > WARN_PART and self.off >= MARKED_OFF


def lateness_at(
    rank: float,
    percentile: Callable[[float], Quantile],
    count: int,
    stalls: Sequence[StallGroup],
    least_ns: float = LEAST_NS,
) -> StallEffect | None:
    """What stalls of at least ``least_ns`` may have done to the percentile of ``rank`` (0 to 1) of
    ``count`` requests; None if they do not reach it. ``percentile`` gives that of any rank."""
    found = percentile(rank)
    if found.above or not found.value or rank >= 1:
        return None
    least_ns = max(least_ns, LEAST_PART * found.value)
    reaching = [each for each in stalls if each.length_ns >= least_ns]
    if not reaching:
        return None
    waited = sum(each.requests for each in reaching) / count
    at_least = percentile(max(0.0, rank - waited)).value or 0
    longest_ns = max(each.length_ns for each in reaching)
    ns = min(found.value - at_least, longest_ns)
    return StallEffect(waited / (1 - rank), ns, ns / found.value)


@dataclass(frozen=True)
class Sample:
    """Known times of some requests, and how many more have none and count as slower. In ``stalls``
    requests waited for the generator itself."""

    known: Buckets = EMPTY
    slower: int = 0
    stalls: tuple[StallGroup, ...] = ()

    @property
    def count(self) -> int:
        """All requests, with a time or without."""
        return self.known.total + self.slower

    def percentile(self, share: float) -> Quantile:
        """A percentile by nearest rank among all requests."""
        found = self._measured(share)
        late = lateness_at(share, self._measured, self.count, self.stalls)
        if late is None or not late.is_overstated:
            return found
        return replace(found, overstated_ns=round(late.ns))

    def _measured(self, share: float) -> Quantile:
        found = self._quantiles.get(share)
        if found is None:
            found = self._quantiles[share] = quantile(self.known, share, self.slower)
        return found

    @cached_property
    def _quantiles(self) -> dict[float, Quantile]:
        """Percentiles that were asked for: many checks want the same few."""
        return {}

    def interval(self, share: float, deviations: float = Z_95) -> tuple[float, float] | None:
        """The 95 % interval of a percentile by rank; None if it ends where no time is known."""
        return rank_interval(self.known, share, self.slower, deviations)

    @cached_property
    def figures(self) -> Distribution:
        """The figures that a record stores, with what limits them."""
        found = summarise(self.known, self.slower)
        if not self.stalls or not found.count:
            return found
        late_ns = {name: self.percentile(share).overstated_ns for name, share in RANKED.items()}
        return replace(found, overstated_ns={name: ns for name, ns in late_ns.items() if ns})

    def is_too_few(self, name: str) -> bool:
        """Whether ``p99.9`` is a percentile of which so few requests say nothing."""
        share = parse_percentile(name)
        return share is not None and self.percentile(share).too_few

    def is_overstated(self, name: str) -> bool:
        """Whether ``p99.9`` is a percentile that is only known to be at most what is shown."""
        share = parse_percentile(name)
        return share is not None and self.percentile(share).overstated_ns > 0

    def value(self, name: str) -> float:
        """``mean`` or ``p99.9``, in ns; inf if it is unknown."""
        found, above = self.bound(name)
        return math.inf if above or found is None else found

    def bound(self, name: str) -> tuple[float | None, bool]:
        """The figure, and whether it is only a lower bound; None if not even that is known."""
        share = parse_percentile(name)
        if share is None:
            return getattr(self.figures, name), False
        found = self.percentile(share)
        return found.value, found.above


@lru_cache(maxsize=16)  # in a closed loop several are the same, and each is needed several times
def sample(encoded: str | None, slower: int = 0, stalls: tuple[StallGroup, ...] = ()) -> Sample:
    return Sample(decode_histogram(encoded), slower, stalls)


def complete(encoded: str | None) -> Sample:
    """A histogram of connects or of sends: each of them was timed, none is missing."""
    return sample(encoded)
