"""What the figures of two sides allow to claim: better, worse, the same, or nothing.

How: a claim needs a 95 % interval that excludes 1. Equal sides would show that in at most one of
twenty cases. The spread within a trial says nothing about the spread between trials, so a side with
one trial allows no claim. If a figure is only a bound, the interval includes whatever the truth may
be, so that a claim holds of each such value. Every comparison (`compare`, `runs diff`, reports)
takes its words from here. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from trueload.record.schema import Direction
from trueload.repetitions import (
    Interval,
    coefficient_of_variation,
    interval,
    log_spread,
    median,
    pairs_to_find,
    rank_sum_chance,
    ratio,
    ratio_interval,
    sign_chance,
)

HIGHER_IS_BETTER = frozenset({"throughput"})

# Two sides are the same if the interval of their ratio lies within these bioequivalence margins
# (FDA, Statistical Approaches to Establishing Bioequivalence, 2001).
SAME_LOW, SAME_HIGH = 0.80, 1.25

# Over all metrics together, at most one of twenty comparisons of equal sides makes a wrong claim.
# The primary metric, named beforehand, gets most of that chance: one of nine pairs may disagree
# (3.9 %), and two trials against eight may differ (4.4 %). The others share the rest by Holm's rule
# (Scand. J. Statist. 6, 1979), or all of it if the primary metric differs (Bretz and others,
# Statist. Med. 28, 2009).
CHANCE_MAX, OTHERS_CHANCE_MAX, ALL_CHANCE_MAX = 0.045, 0.005, 0.05

FIND = 0.03  # a difference worth asking about; the number of pairs that finds it is shown

MORE_TRIALS = "use --repeat 6 or trueload compare"
MORE_PAIRS = "use --repeat 6"
CLAIMS = ("better", "worse")
FEW_REQUESTS = "too few requests for this percentile"
ONE_FACT = "in a closed loop both are the same fact"

Word = Literal["better", "worse", "same", "unclear", "as throughput"]


@dataclass(frozen=True)
class Ratio:
    """One metric of two sides.

    Values are in ns or per second, inf if unknown. ``ratio`` is new divided by base, None if
    undefined. ``cv`` of a side needs two trials or more. ``why`` is the reason for a word that
    needs one. ``chance`` is how likely equal sides are to differ this much in this metric.

    ``at_least`` and ``at_most`` are the ends between which the ratio lies, both equal to it where
    all figures are exact.

    ``pairs_needed`` is the number of pairs that would find a difference of 3 % at the spread seen,
    inf for more than 100. It is None if that is not known, or if no number of pairs would allow a
    claim. ``base_too_few`` and ``new_too_few``: a trial had too few requests for this percentile.
    """

    metric: str
    base: float
    new: float
    ratio: float | None
    within: Interval | None
    word: Word
    why: str
    base_cv: float | None
    new_cv: float | None
    chance: float = 1.0
    pairs_needed: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    base_too_few: bool = False
    new_too_few: bool = False

    @property
    def too_few(self) -> bool:
        """Whether a side had too few requests for this percentile."""
        return self.base_too_few or self.new_too_few

    @property
    def bound(self) -> Direction:
        """What the ratio is: exact, or a bound."""
        if self.ratio is None or self.at_least is None or self.at_most is None:
            return "exact"
        if self.at_least < self.ratio < self.at_most:
            return "unknown"
        if self.at_least < self.ratio:
            return "at_most"
        return "at_least" if self.at_most > self.ratio else "exact"

    @property
    def verdict(self) -> str:
        """The word with its reason: ``unclear: one trial each; use --repeat 6 or …``."""
        return f"{self.word}: {self.why}" if self.why else self.word


@dataclass(frozen=True)
class Bounded:
    """A side of which some figures are only bounds: the ends between which the truth of each trial
    lies, and why it is not known: ``A is a lower bound``."""

    lows: Sequence[float]
    highs: Sequence[float]
    why: str


Bounds = tuple[Bounded | None, Bounded | None]
"""What bounds the figures of base, and those of new; None for a side whose figures are exact."""
NO_BOUNDS: Bounds = (None, None)


def lower_bound(name: str, values: Sequence[float]) -> Bounded:
    """Return a side that carries at least so much in each trial."""
    return Bounded(values, [math.inf] * len(values), f"{name} is a lower bound")


@dataclass(frozen=True)
class _Found:
    """What the figures of two sides come to. ``spread``: the standard deviation of the logarithm of
    a pair's ratio. ``ends``: those between which the ratio lies."""

    ratio: float | None
    within: Interval | None
    chance: float
    spread: float | None
    ends: tuple[float | None, float | None]


Values = Sequence[float]
Sides = tuple[Values, Values]
Find = Callable[[Values, Values], _Found]


def of_trials(
    metric: str, base: Values, new: Values, spoiled: str = "", bounds: Bounds = NO_BOUNDS
) -> Ratio:
    """Compare the trials of two sides, at least one each.

    ``spoiled`` is a reason to claim nothing, whatever the figures are.
    """
    few = too_few_trials(len(base), len(new))
    few = f"{few}; {MORE_TRIALS}" if few else ""
    return _compared(metric, _find_of_trials, (base, new), bounds, few, spoiled)


def _find_of_trials(base: Values, new: Values) -> _Found:
    middle = ratio(median(new) or 0.0, median(base) or 0.0)
    within = ratio_interval(base, new) if len(base) + len(new) > 2 else None
    spreads = [log_spread(base), log_spread(new)]
    known = [spread for spread in spreads if spread is not None]
    # The spreads of two sides add up in a ratio as the root of the sum of squares.
    spread = math.hypot(*known) if len(known) == len(spreads) else None
    return _Found(middle, within, rank_sum_chance(base, new), spread, (middle, middle))


def of_pairs(
    metric: str,
    pairs: Sequence[tuple[float, float]],
    spoiled: str = "",
    bounds: Bounds = NO_BOUNDS,
) -> Ratio:
    """Compare two sides by the ratio of each pair (base, new); needs at least one pair."""
    few = too_few_pairs(len(pairs))
    few = f"{few}; {MORE_PAIRS}" if few else ""
    sides = [old for old, _ in pairs], [now for _, now in pairs]
    return _compared(metric, _find_of_pairs, sides, bounds, few, spoiled)


def _find_of_pairs(base: Values, new: Values) -> _Found:
    found = [ratio(now, old) for old, now in zip(base, new, strict=True)]
    known = [each for each in found if each is not None]
    # If neither side of a pair has an answer there is no ratio, and nothing can be claimed.
    if len(known) < len(found):
        return _Found(None, None, 1.0, None, (None, None))
    middle, within = median(known), interval(known) if len(known) > 1 else None
    return _Found(middle, within, sign_chance(known), log_spread(known), (middle, middle))


def _compared(
    metric: str, find: Find, sides: Sides, bounds: Bounds, few: str, spoiled: str
) -> Ratio:
    found = _of_any_truth(find, sides, bounds)
    at_least, at_most = (0.0, math.inf) if spoiled else found.ends
    word, why = _word(metric, found), ""
    if few or spoiled:
        word, why = "unclear", few or spoiled
    elif any(bounds) and word == "unclear" and _word(metric, find(*sides)) != "unclear":
        why = "; ".join(each.why for each in bounds if each is not None)
    needed = None
    if at_least != 0 and at_most != math.inf and found.spread is not None:
        needed = pairs_to_find(found.spread, FIND, CHANCE_MAX)
    base, new = (median(side) or 0.0 for side in sides)
    (base_cv, new_cv), ends = map(coefficient_of_variation, sides), (at_least, at_most)
    measured = (metric, base, new, found.ratio, found.within, word, why, base_cv, new_cv)
    return Ratio(*measured, found.chance, needed, *ends)


def _of_any_truth(find: Find, sides: Sides, bounds: Bounds) -> _Found:
    """Return what the figures come to wherever the truths of both sides lie."""
    measured = find(*sides)
    if not any(bounds):
        return measured
    (base_lows, base_highs), (lows, highs) = (
        (side, side) if bound is None else (bound.lows, bound.highs)
        for side, bound in zip(sides, bounds, strict=True)
    )
    least, most = find(base_highs, lows), find(base_lows, highs)
    ends = (least.ratio or 0.0, math.inf if most.ratio is None else most.ratio)
    if least.within is None or most.within is None:
        return replace(measured, within=None, chance=1.0, ends=ends)
    within = replace(most.within, low=least.within.low)
    chance = max(least.chance, most.chance)
    if within.low > 1 or within.high < 1:
        chance = least.chance if within.low > 1 else most.chance
    return replace(measured, within=within, chance=chance, ends=ends)


def of_too_few(found: Ratio, base: bool, new: bool) -> Ratio:
    """Return the ratio, without a value if a side had too few requests for the percentile."""
    if not (base or new):
        return found
    nothing = replace(found, ratio=None, within=None, word="unclear", chance=1.0, pairs_needed=None)
    unknown = replace(nothing, at_least=None, at_most=None, why=FEW_REQUESTS)
    return replace(unknown, base_too_few=base, new_too_few=new)


def too_few_trials(base: int, new: int) -> str:
    """Return why these numbers of trials allow no claim, or ''.

    One trial does not show how much its side varies. Equal sides fail to overlap by chance in 2 of
    C(base + new, base) orders.
    """
    if base == new == 1:
        return "one trial each"
    if base == 1 or new == 1:
        return f"one trial of {'base' if base == 1 else 'new'}"
    if 2 / math.comb(base + new, base) <= CHANCE_MAX:
        return ""
    return f"{base} trials each" if base == new else f"{base} against {new} trials"


def too_few_pairs(pairs: int) -> str:
    """Return why this number of pairs allows no claim, or ''.

    By chance all pairs favour the same side in 2 of 2^n cases.
    """
    if 2 * 0.5**pairs <= CHANCE_MAX:
        return ""
    return "one pair" if pairs == 1 else f"{pairs} pairs"


def counted_once(ratios: Sequence[Ratio]) -> list[Ratio]:
    """Return the ratios of a closed loop with throughput and mean counted once.

    There both are one number (Little's law). Only throughput makes a claim, and the mean refers to
    it.
    """
    throughput = next((each for each in ratios if each.metric == "throughput"), None)
    return [
        _as_throughput(each, throughput) if each.metric == "mean" and throughput else each
        for each in ratios
    ]


def _as_throughput(mean: Ratio, throughput: Ratio) -> Ratio:
    if throughput.word != "unclear":
        return replace(mean, word="as throughput", why=ONE_FACT)
    return replace(mean, word="unclear", why=throughput.why or f"as throughput, {ONE_FACT}")


def as_family(ratios: Sequence[Ratio], primary: str) -> list[Ratio]:
    """Keep claims so that at most one in twenty comparisons of equal sides has a wrong one.

    The ``primary`` metric was named beforehand; the others are tested in order of rising chance.
    """
    first = [each for each in ratios if each.metric == primary]
    others = [
        each
        for each in ratios
        if each.metric != primary and each.word != "as throughput" and not each.too_few
    ]
    found = any(each.word in CLAIMS for each in first)
    limit = ALL_CHANCE_MAX if found or not first else OTHERS_CHANCE_MAX
    held: set[str] = set()
    for rank, each in enumerate(sorted(others, key=lambda each: each.chance)):
        if each.chance > limit / (len(others) - rank):
            break
        held.add(each.metric)
    why = f"of {len(first) + len(others)} metrics one may differ as much by chance"
    return [
        replace(each, word="unclear", why=why)
        if each in others and each.word in CLAIMS and each.metric not in held
        else each
        for each in ratios
    ]


def _word(metric: str, found: _Found) -> Word:
    within = found.within
    if within is None:
        return "unclear"
    if within.low <= 1 <= within.high:
        return "same" if within.low >= SAME_LOW and within.high <= SAME_HIGH else "unclear"
    if found.chance > CHANCE_MAX:
        return "unclear"
    return "better" if (within.low > 1) == (metric in HIGHER_IS_BETTER) else "worse"
