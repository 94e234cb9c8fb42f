"""What disturbed trials leave certain of two sides: bounds of their ratios, and conditions on them.

How: of each trial `record.certainty` says between which ends the truth of a figure lies. A ratio is
claimed if it stands wherever these truths are, and a condition is decided if all of them say the
same. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from trueload.compare.difference import Bounded, Bounds, Ratio
from trueload.record.certainty import LEAST, Range, Ruling, decided, direction_of, range_of
from trueload.record.schema import Record
from trueload.record.thresholds import Condition, Threshold, untimed, untimed_text

Sides = Mapping[str, Sequence[Record]]
"""The trials of base and new, in this order, by the names of the sides."""


def spoiled_text(metric: str, sides: Sides) -> str:
    """Return a text such as ``a trial of new is invalid`` if nothing is certain of its figure."""
    spoiled = [name for name, some in sides.items() if any(_is_unknown(metric, r) for r in some)]
    return f"a trial of {' and of '.join(spoiled)} is invalid" if spoiled else ""


def _is_unknown(metric: str, record: Record) -> bool:
    is_of_before = record.bounds is None and record.verdict == "invalid"
    return is_of_before or direction_of(metric, record) == "unknown"


def bounds_of(metric: str, sides: Sides) -> Bounds:
    """Return what bounds the figures of both sides."""
    base, new = (_bounded(metric, name, some) for name, some in sides.items())
    return base, new


def _bounded(metric: str, name: str, records: Sequence[Record]) -> Bounded | None:
    found = [_truth(metric, record) for record in records]
    if all(low == high for low, high in found):
        return None
    lows, highs = ([ends[at] for ends in found] for at in (0, 1))
    if any(record.lower_bound for record in records):
        return Bounded(lows, highs, f"{name} is a lower bound")
    failed = (each.name for r in records for each in r.checks if each.status == "fail")
    names = ", ".join(dict.fromkeys(failed))
    return Bounded(lows, highs, f"of {name} only a bound is known{names and f' ({names})'}")


def _truth(metric: str, record: Record) -> Range:
    """Return the ends between which the truth of a figure lies, none below 0."""
    low, high = range_of(metric, record)
    if record.lower_bound and metric != "errors":
        # What a faster generator might have shown: more answers, each of them earlier.
        low, high = (low, math.inf) if metric == "throughput" else (0.0, high)
    if metric == "mean" and record.verdict == "invalid" and untimed([record]):
        high = math.inf  # it is of answers alone
    return max(0.0, low), high


Words = tuple[str, str]
OF_BASE: Words = ("", "of the base")
OF_A: Words = ("of B ", "of A's")
"""How a ratio is told: ``throughput of B is 0.900 of A's``."""


def rule_ratios(
    conditions: Sequence[Condition], ratios: Sequence[Ratio], sides: Sides, words: Words
) -> list[Ruling]:
    """Rule on each condition.

    One that the figures make true counts as crossed only if the ratio is not unclear. Requests of
    the new side without a time never count as better than the base.
    """
    by_metric = {each.metric: each for each in ratios}
    base, new = sides.values()
    missing, rulings = untimed(new), []
    for condition in conditions:
        parts = [(part, by_metric.get(part.metric)) for part in condition.parts]
        guarded = [missing > 0 and part.is_guarded for part, _ in parts]
        holds = [guard or _holds(*each) for guard, each in zip(guarded, parts, strict=True)]
        shown = " and ".join(_shown(*each, words) for each in parts)
        more = f" with {untimed_text(missing)}" if any(guarded) else ""
        sentence = f"{shown}{more}, and --fail-on says {condition.text}"
        rulings.append(decided(condition, holds, sentence, shown, [*base, *new]))
    return rulings


def _holds(part: Threshold, found: Ratio | None) -> bool | None:
    """Whether a part is true of a ratio; None if that depends on where the truth lies."""
    if found is None or found.at_least is None or found.at_most is None:
        return None
    is_claimed = found.word != "unclear"
    if found.at_least == found.at_most:
        return is_claimed and part.holds(found.at_least)
    at_ends = {part.holds(end) for end in (found.at_least, found.at_most)}
    if at_ends == {True}:
        return True if is_claimed else None
    return None if True in at_ends else False


def _shown(part: Threshold, found: Ratio | None, words: Words) -> str:
    of, whose = words
    if found is None or found.ratio is None:
        return f"{part.label} {of}is not known"
    unclear = ", which is unclear" if found.bound == "exact" and found.word == "unclear" else ""
    how = LEAST.get(found.bound, "roughly ")
    return f"{part.label} {of}is {how}{found.ratio:.3f} {whose}{unclear}"
