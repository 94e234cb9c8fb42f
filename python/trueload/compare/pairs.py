"""Two servers measured in turn: pairs of trials in random order, and the ratio of each pair.

Strategy: a machine drifts over minutes. The two trials of a pair run right after each other and see
the same machine, and chance decides which comes first. Each metric becomes a ratio per pair. The
median of these is the result, and `difference` decides what it allows to claim. Pure.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from trueload.compare.certainty import bounds_of, spoiled_text
from trueload.compare.difference import Ratio, of_pairs
from trueload.compare.trials import METRICS, claimed_together
from trueload.record.figures import metric_value
from trueload.record.schema import Record
from trueload.record.turn import Letter, Turn
from trueload.repetitions import ratio


@dataclass(frozen=True)
class Pair:
    """Both trials of one pair."""

    a: Record
    b: Record


def turns(pairs: int, seed: int) -> list[Turn]:
    """The order of the trials: pair after pair, with a random order within each pair."""
    chance = random.Random(seed)
    order: list[Turn] = []
    for number in range(1, pairs + 1):
        letters: list[Letter] = ["a", "b"]
        chance.shuffle(letters)
        order += [Turn(number, letter) for letter in letters]
    return order


def whole_pairs(taken: Sequence[tuple[Turn, Record]]) -> list[Pair]:
    """The pairs in which both trials ran to their end."""
    found = {(turn.pair, turn.letter): record for turn, record in taken if not record.partial}
    numbers = sorted({turn.pair for turn, _ in taken})
    return [
        Pair(found[number, "a"], found[number, "b"])
        for number in numbers
        if (number, "a") in found and (number, "b") in found
    ]


def pair_ratios(metric: str, pairs: Sequence[Pair]) -> list[float | None]:
    """Return b / a for each pair; None if it is undefined."""
    return [ratio(metric_value(metric, each.b), metric_value(metric, each.a)) for each in pairs]


def compare_pairs(
    pairs: Sequence[Pair], metrics: Sequence[str] = METRICS, primary: str | None = None
) -> list[Ratio]:
    """Compare each metric: the medians of both sides, and the median of the pairs' ratios.

    Empty without a whole pair. ``primary`` is the metric named beforehand, else `primary_metric`.
    """
    if not pairs:
        return []
    sides = {"A": [each.a for each in pairs], "B": [each.b for each in pairs]}
    ratios = [
        of_pairs(
            metric,
            [(metric_value(metric, each.a), metric_value(metric, each.b)) for each in pairs],
            spoiled_text(metric, sides),
            bounds_of(metric, sides),
        )
        for metric in metrics
    ]
    return claimed_together(ratios, sides["A"], sides["B"], primary)
