"""What the figures of two sides allow to claim: better, worse, the same, or nothing.

How: a claim needs a 95 % interval that excludes 1. Equal sides would show that in at most one of
twenty cases. The spread within a trial says nothing about the spread between trials, so a side with
one trial allows no claim. Every comparison (`runs compare`, `ab`, reports) takes its words from
here. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

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

MORE_TRIALS = "use --repeat 6 or trueload ab"
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
    base_too_few: bool = False
    new_too_few: bool = False

    @property
    def too_few(self) -> bool:
        """Whether a side had too few requests for this percentile."""
        return self.base_too_few or self.new_too_few

    @property
    def verdict(self) -> str:
        """The word with its reason: ``unclear: one trial each; use --repeat 6 or trueload ab``."""
        return f"{self.word}: {self.why}" if self.why else self.word


Bounds = tuple[str, str]
"""For base and for new: empty, or a text that says that this side is only a lower bound.

Such a side may be better than measured, so it is never called worse than the other, or the same.
"""
NO_BOUNDS: Bounds = ("", "")


def bound_texts(base: tuple[str, bool], new: tuple[str, bool]) -> Bounds:
    """Return the texts of two sides, each given by its name and whether it is a lower bound."""
    a, b = (f"{name} is a lower bound" if bound else "" for name, bound in (base, new))
    return a, b


def of_trials(
    metric: str,
    base: Sequence[float],
    new: Sequence[float],
    spoiled: str = "",
    bounds: Bounds = NO_BOUNDS,
) -> Ratio:
    """Compare the trials of two sides, at least one each.

    ``spoiled`` is a reason to claim nothing, whatever the figures are.
    """
    old, now = median(base) or 0.0, median(new) or 0.0
    found = ratio(now, old)
    within = ratio_interval(base, new) if len(base) + len(new) > 2 else None
    why = too_few_trials(len(base), len(new))
    why = f"{why}; {MORE_TRIALS}" if why else spoiled
    chance = rank_sum_chance(base, new)
    word, why = _claim(metric, within, bounds, chance, why)
    needed = _pairs_needed(bool(spoiled or any(bounds)), log_spread(base), log_spread(new))
    spreads = _spreads(base, new)
    return Ratio(metric, old, now, found, within, word, why, *spreads, chance, needed)


def of_pairs(
    metric: str,
    pairs: Sequence[tuple[float, float]],
    spoiled: str = "",
    bounds: Bounds = NO_BOUNDS,
) -> Ratio:
    """Compare two sides by the ratio of each pair (base, new); needs at least one pair."""
    base, new = [old for old, _ in pairs], [now for _, now in pairs]
    found = [ratio(now, old) for old, now in pairs]
    known = [each for each in found if each is not None]
    # If neither side of a pair has an answer there is no ratio, and nothing can be claimed.
    middle = median(known) if len(known) == len(found) else None
    within = interval(known) if len(known) > 1 and middle is not None else None
    why = too_few_pairs(len(pairs))
    why = f"{why}; {MORE_PAIRS}" if why else spoiled
    chance = sign_chance(known) if middle is not None else 1.0
    word, why = _claim(metric, within, bounds, chance, why)
    old, now = median(base) or 0.0, median(new) or 0.0
    spread = log_spread(known) if middle is not None else None
    needed = _pairs_needed(bool(spoiled or any(bounds)), spread)
    spreads = _spreads(base, new)
    return Ratio(metric, old, now, middle, within, word, why, *spreads, chance, needed)


def _pairs_needed(in_vain: bool, *spreads: float | None) -> float | None:
    """Return the number of pairs that find ``FIND`` at the spread of the ratios, or of both sides.

    The spreads of two sides add up in a ratio as the root of the sum of squares.
    """
    known = [spread for spread in spreads if spread is not None]
    if in_vain or len(known) < len(spreads):
        return None
    return pairs_to_find(math.hypot(*known), FIND, CHANCE_MAX)


def of_too_few(found: Ratio, base: bool, new: bool) -> Ratio:
    """Return the ratio, without a value if a side had too few requests for the percentile."""
    if not (base or new):
        return found
    nothing = replace(found, ratio=None, within=None, word="unclear", chance=1.0, pairs_needed=None)
    return replace(nothing, why=FEW_REQUESTS, base_too_few=base, new_too_few=new)


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


def claimed(ratios: Sequence[Ratio]) -> Mapping[str, float | None]:
    """The ratios of metrics with a claim, by metric; a condition can be true only of these."""
    return {each.metric: each.ratio for each in ratios if each.word != "unclear"}


def _spreads(base: Sequence[float], new: Sequence[float]) -> tuple[float | None, float | None]:
    return coefficient_of_variation(base), coefficient_of_variation(new)


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


def _claim(
    metric: str, within: Interval | None, bounds: Bounds, chance: float, doubt: str
) -> tuple[Word, str]:
    """Return the word, and the reason if it is unclear.

    The reason is a doubt that is already known, or that a side is a lower bound.
    """
    if doubt:
        return "unclear", doubt
    word, (base, new) = _word(metric, within), bounds
    if word in CLAIMS and chance > CHANCE_MAX:
        return "unclear", ""
    why = {"better": base, "worse": new, "same": base or new}.get(word, "")
    return ("unclear", why) if why else (word, "")


def _word(metric: str, within: Interval | None) -> Word:
    if within is None:
        return "unclear"
    if within.low <= 1 <= within.high:
        return "same" if within.low >= SAME_LOW and within.high <= SAME_HIGH else "unclear"
    return "better" if (within.low > 1) == (metric in HIGHER_IS_BETTER) else "worse"
