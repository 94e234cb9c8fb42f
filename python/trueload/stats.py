"""Statistics of load: histograms, percentiles and their ranks.

Strategy: a histogram is decoded once into sorted buckets. Every figure is computed from those by
counting, so a percentile and its rank always agree. Requests that did not end well have no latency.
A percentile may include a number of them as slower than any, so that failing never looks fast.
Pure functions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import ClassVar

from trueload import hdr
from trueload.buckets import Buckets, Stretch, stretches
from trueload.repetitions import TAIL

HIGHEST_NS = 3_600_000_000_000  # one hour: nothing that is timed lasts longer
SIGNIFICANT_DIGITS = 3
# Buckets of the engine's sparse histograms for each power of two.
SPARSE_BITS = 6
SPARSE = 1 << SPARSE_BITS

Z_95 = 1.959964  # of the normal distribution, two-sided

# Tilts by which values are weighed in `log_evidence`, in units of 1 / the largest value. What
# stands out by a thousandth of the largest is still seen among a million others.
TILTS = tuple(1.5**step for step in range(-1, 24))

BEYOND_MIN = (
    10  # values beyond a percentile: its 95 % interval by rank spans some 6 of them each way
)


EMPTY = Buckets()


@dataclass(frozen=True)
class Distribution:
    """A summary of one histogram, in its unit (ns); fields are None if it is empty. Part of the
    record. Percentiles count requests without a value as higher than any, and ``slower`` is how
    many there are. ``at_least`` names percentiles that are only lower bounds, because their rank
    falls among those. ``overstated_ns`` names percentiles that are only upper bounds, and by how
    much they may be too long. The other figures are of the values alone."""

    # Unknown fields are refused, because the record is read strictly.
    __pydantic_config__: ClassVar[Mapping[str, str]] = {"extra": "forbid"}

    count: int = 0
    min: int | None = None
    mean: float | None = None
    p25: int | None = None
    p50: int | None = None
    p75: int | None = None
    p90: int | None = None
    p95: int | None = None
    p99: int | None = None
    p999: int | None = None
    max: int | None = None
    stdev: float | None = None
    at_least: tuple[str, ...] = ()
    slower: int = 0
    overstated_ns: Mapping[str, int] = field(default_factory=dict)

    def at(self, name: str) -> Quantile:
        """One of its figures, with what limits it."""
        above = name in self.at_least
        few = is_too_few(name, self.count + self.slower)
        largest_of = self.largest_of if name == "max" else None
        overstated_ns = self.overstated_ns.get(name, 0)
        return Quantile(getattr(self, name), above, few and not above, largest_of, overstated_ns)

    @property
    def largest_of(self) -> int | None:
        """How many values ``max`` is the greatest of, if they are too few for p99.9: it says
        nothing of further values then. None if there are more."""
        few = is_too_few("p999", self.count + self.slower)
        return self.count if few and self.count else None

    def known(self, name: str) -> int | None:
        """One of its percentiles; None if it is only a lower bound, or of too few values."""
        return self.at(name).known


@dataclass(frozen=True)
class Quantile:
    """A percentile. ``above``: it is more than ``value``, by an unknown amount, because its rank
    lies among requests without a value. ``value`` is None if none has one. ``too_few``: so few were
    measured that their percentile says nothing of others. ``largest_of`` is that of a maximum.
    ``overstated_ns``: by how much it may be too long; then it is shown as ``≤ value``."""

    value: int | None
    above: bool
    too_few: bool = False
    largest_of: int | None = None
    overstated_ns: int = 0

    @property
    def known(self) -> int | None:
        """Its value; None if that is only a lower bound, or of too few values."""
        return None if self.above or self.too_few else self.value


@lru_cache(maxsize=8)  # in a closed loop several are the same, and each is needed several times
def decode_histogram(encoded: str | None) -> Buckets:
    """Buckets of an HdrHistogram (V2 compressed, base64). Raises ``ValueError`` for junk."""
    if encoded is None:
        return EMPTY
    return hdr.read(encoded).buckets()


def encode_histogram(buckets: Buckets) -> str | None:
    """The inverse of ``decode_histogram``, from the middle of each bucket; None if empty."""
    if not buckets.counts:
        return None
    bounds = zip(buckets.lows, buckets.highs, strict=True)
    middles = (min((low + high) // 2, HIGHEST_NS) for low, high in bounds)
    return hdr.encode(zip(middles, buckets.counts, strict=True), HIGHEST_NS, SIGNIFICANT_DIGITS)


@lru_cache(maxsize=4_096)  # all that times have
def sparse_bounds(index: int) -> tuple[int, int]:
    """Lowest and highest value of an index of the engine's sparse histogram: the value itself
    below 128; above, with e = floor(log2 v) - 6, the index is 64 e + (v >> e)."""
    ((lows, highs, _),) = stretches(index, (0,), SPARSE_BITS)
    return lows[0], highs[0]


def add_sparse(total: dict[int, int], part: Mapping[int, int]) -> None:
    """Add the counts of a sparse histogram to those of ``total``."""
    for index, count in part.items():
        total[index] = total.get(index, 0) + count


def merge_sparse(parts: Iterable[Mapping[int, int]]) -> Buckets:
    """The sum of sparse histograms."""
    counts: dict[int, int] = {}
    for part in parts:
        add_sparse(counts, part)
    found: list[Stretch] = []
    for first in sorted({index // SPARSE * SPARSE for index, count in counts.items() if count}):
        every = [counts.get(index, 0) for index in range(first, first + SPARSE)]
        found += stretches(first, every, SPARSE_BITS)
    return Buckets(*found)


def quantile(buckets: Buckets, share: float, worse: int = 0) -> Quantile:
    """The value that at least ``share`` (0 to 1) of all do not exceed, by nearest rank. ``worse``
    more have no value, and count as higher than any."""
    total = buckets.total
    # 0.999 x 1000 is 999.0000000000001 in binary, but its rank is 999.
    rank = max(1, math.ceil(share * (total + worse) * (1 - 1e-12)))
    if rank > total:
        return Quantile(buckets.greatest if total else None, above=True)
    few = share < 1 and not can_bound(share, total + worse)
    return Quantile(buckets.at_rank(rank), above=False, too_few=few)


def rank_interval(
    buckets: Buckets, share: float, worse: int = 0, deviations: float = Z_95
) -> tuple[float, float] | None:
    """The 95 % interval of a percentile by its rank, which is binomial: n p -+ z sqrt(n p (1 - p)),
    rounded up (Conover, Practical Nonparametric Statistics, 1999, 3.2). z is ``deviations``:
    more than the normal distribution has if values depend on each other. None if the upper rank has
    no value: there are too few."""
    count = buckets.total + worse
    spread = deviations * math.sqrt(count * share * (1 - share))
    low, high = math.ceil(count * share - spread), math.ceil(count * share + spread)
    if high > buckets.total or not buckets.total:
        return None
    found = buckets.at_rank(max(1, low)), buckets.at_rank(high)
    return float(found[0]), float(found[1])


def can_bound(share: float, count: int) -> bool:
    """Whether a percentile of so many values lies between their minimum and maximum with 95 %
    confidence, by order statistics: from 368 on for p99, 3,688 for p99.9, 6 for the median."""
    return max(share, 1 - share) ** count <= 1 / TAIL


def fewest_to_bound(share: float) -> int:
    """The smallest number of values of which ``can_bound`` is true."""
    return math.ceil(math.log(TAIL) / -math.log(max(share, 1 - share)))


def is_too_few(name: str, count: int) -> bool:
    """Whether so many values are too few for a percentile; False for other figures."""
    share = RANKED.get(name)
    return share is not None and not can_bound(share, count)


def highest_bounded(count: int) -> float:
    """The highest percentile that so many values can bound, by ``can_bound``: 0.99 for 368."""
    return (1 / TAIL) ** (1 / count) * (1 - 1e-12) if count else 0.0


def samples_for(share: float) -> int:
    """How many values it takes until a percentile's interval by rank is useful: about ten beyond
    it, so that its upper rank is one of them."""
    return math.ceil(BEYOND_MIN / (1 - share)) if share < 1 else 1


@lru_cache
def student_t(freedom: int) -> float:
    """The value that 95 % of Student's t distribution with ``freedom`` degrees of freedom do not
    exceed in absolute value, by bisection of its angle atan(t / sqrt(freedom))."""
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if _student_share(middle, freedom) > 0.95 else (middle, high)
    return math.tan(high) * math.sqrt(freedom)


def student_chance(size: float, freedom: int) -> float:
    """How likely a value of Student's t distribution lies as far from zero as ``size``, or more."""
    return max(0.0, 1 - _student_share(math.atan(size / math.sqrt(freedom)), freedom))


def _student_share(angle: float, freedom: int) -> float:
    """The share of Student's t distribution that lies within an angle to either side of zero
    (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4)."""
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term = cosine if odd else 1.0
    total = 0.0
    for step in range(2 + odd, freedom + 2, 2):
        total += term
        term *= (step - 1) / step * cosine**2
    return (angle + sine * total) * 2 / math.pi if odd else sine * total


def summarise(buckets: Buckets, worse: int = 0) -> Distribution:
    """Every figure of one histogram. ``worse`` more have no value, and count as higher than any.
    Mean and deviation take each bucket at its middle."""
    total = buckets.total
    if total == 0:
        return Distribution()
    twice, squares = buckets.moments
    variance = (squares * total - twice**2) / (2 * total) ** 2

    found = {name: quantile(buckets, share, worse) for name, share in RANKED.items()}
    return Distribution(
        count=total,
        min=buckets.least,
        mean=twice / total / 2,
        max=buckets.greatest,
        stdev=math.sqrt(variance),
        at_least=tuple(name for name, at in found.items() if at.above),
        slower=worse,
        **{name: at.value for name, at in found.items()},  # type: ignore[arg-type]
    )


def log_evidence(
    pool: Sequence[tuple[float, int]], slots: int, suspects: Sequence[tuple[int, float, int]]
) -> float:
    """How strongly the sums of some slots speak against chance, as a natural logarithm.

    ``pool``: each value with how often it occurred over all slots. ``suspects``: for some slots how
    many values each had, their sum, and how many slots are like that. If values fall to slots by
    chance, e to this is 1 / p or more in at most a share p of all cases, whatever made each slot
    stop when it did (Ville 1939). That matters because slow answers leave time for fewer, and a
    slot may have had a single one. Each slot's part is exp(tilt x sum) over its mean under chance.
    Tilts, and shares of the slots that are not by chance, are mixed, so that none has to be chosen
    (Ramdas and others 2023).
    """
    largest = max((value for value, _ in pool), default=0)
    if not suspects or not largest:
        return -math.inf
    total = sum(count for _, count in pool)

    def log_mean_exp(tilt: float) -> float:
        terms = (count * math.exp(tilt * (value / largest - 1)) for value, count in pool)
        return tilt + math.log(math.fsum(terms) / total)

    expected = [(tilt, log_mean_exp(tilt)) for tilt in TILTS]
    each = [
        (_log_mean([tilt * found / largest - count * mean for tilt, mean in expected]), alike)
        for count, found, alike in suspects
    ]
    others = slots - sum(alike for _, alike in each)

    def of_share(share: float) -> float:
        by_chance = math.log1p(-share)
        mixed = (alike * _log_sum(by_chance, math.log(share) + found) for found, alike in each)
        return others * by_chance + math.fsum(mixed)

    return _log_mean([of_share(0.5**halves) for halves in range(1, slots.bit_length() + 1)])


def log_binomial_tail(count: int, trials: int, share: float) -> float:
    """Upper bound of the logarithm of the probability that at least ``count`` of the trials
    succeed, if each does with the probability ``share`` (Chernoff 1952)."""
    if trials == 0 or count <= trials * share:
        return 0.0
    failures = trials - count
    found = count * math.log(count / (trials * share))
    return -found - (failures and failures * math.log(failures / (trials * (1 - share))))


def _log_sum(*logs: float) -> float:
    """The logarithm of a sum, from the logarithms of its terms."""
    largest = max(logs)
    return largest + math.log(math.fsum(math.exp(log - largest) for log in logs))


def _log_mean(logs: Sequence[float]) -> float:
    return _log_sum(*logs) - math.log(len(logs))


def parse_percentile(name: str) -> float | None:
    """Parse ``p50``, ``p99``, ``p99.9`` or ``p999`` as a share; None for anything else. Digits
    after the second are decimals, as in the names that people use: p999 is 99.9 %, and p101 is
    nothing. p100 is all."""
    if name == "p100":
        return 1.0
    digits = name[1:].replace(".", "", 1)
    if not name.startswith("p") or not (digits.isascii() and digits.isdigit()):
        return None
    if "." not in name and len(digits) > 2 and not digits.startswith("9"):
        return None
    percent = float(name[1:]) if "." in name else float(f"{digits[:2]}.{digits[2:] or 0}")
    return percent / 100 if 0 < percent < 100 else None


RANKED = {
    each.name: round(share, 9)
    for each in fields(Distribution)
    if (share := parse_percentile(each.name)) is not None
}
"""The percentiles of a summary, by name."""
