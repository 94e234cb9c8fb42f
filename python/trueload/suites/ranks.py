"""Where each row of a table ranks among the others: a range of ranks, true for all rows at once.

How: every two rows are compared by Welch's t on the logarithms of their repetitions' scores, and
Holm's step-down method keeps the chance that any of these claims is wrong at 5 % (Welch 1947; Holm
1979). A row ranks after the rows that are known to be above it and before those known to be below.
So all true ranks lie within their ranges with 95 %, which is what Mogstad, Romano, Shaikh and
Wilhelm 2024 ask for; their bootstrap needs more repetitions than a suite has. A row that happens to
vary less than most rows is taken to vary as much as the row in the middle: they share a machine,
and six repetitions in one state of its CPUs do not show the other state. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from trueload import repetitions, stats

REPETITIONS_MIN = 6
WRONG_MAX = 0.05
# Quiet repetitions of one program differ by 0.5 % at least: six that agree better agree by chance.
SPREAD_MIN = 0.005
# Stands for a score of 0, which has no logarithm.
SCORE_MIN = 1e-3


@dataclass(frozen=True)
class RowScore:
    """What a row is ranked by: the score of each repetition, their median, and whether the program
    may carry more than that."""

    scores: Sequence[float]
    median: float
    lower_bound: bool = False


@dataclass(frozen=True)
class Places:
    """The ranks that a row may have, from 1: ``first`` to ``last``."""

    first: int
    last: int

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


def places(count: int, above: set[tuple[int, int]]) -> list[Places]:
    """The places of so many rows. ``above``: pairs (higher, lower) that are known."""
    return [
        Places(
            first=1 + sum(lower == row for _, lower in above),
            last=count - sum(higher == row for higher, _ in above),
        )
        for row in range(count)
    ]


def known_above(rows: Sequence[RowScore]) -> set[tuple[int, int]]:
    """The pairs of rows (higher, lower), by number, of which the first is known to be above.

    Nothing is known to be above a lower bound, and nothing of a row with a single repetition.
    """
    described = [_describe(row) for row in rows]
    usual = repetitions.median([each.variance for each in described if each.count > 1]) or 0.0
    described = [replace(each, variance=max(each.variance, usual)) for each in described]
    pairs = [
        (a, b)
        for a, b in combinations(range(len(rows)), 2)
        if described[a].count > 1 and described[b].count > 1
    ]
    claims = ((_chance(described[a], described[b]), a, b) for a, b in pairs)
    found = set()
    for tried, (chance, a, b) in enumerate(sorted(claims)):
        if chance > WRONG_MAX / (len(pairs) - tried):
            break
        higher, lower = (a, b) if described[a].mean > described[b].mean else (b, a)
        agree = rows[higher].median > rows[lower].median
        if agree and not rows[lower].lower_bound:
            found.add((higher, lower))
    return found


@dataclass(frozen=True)
class _Described:
    """The logarithms of a row's scores: their mean, their variance, how many."""

    mean: float
    variance: float
    count: int


def _describe(row: RowScore) -> _Described:
    logs = [math.log(max(score, SCORE_MIN)) for score in row.scores]
    count = len(logs)
    mean = math.fsum(logs) / count if count else 0.0
    squares = math.fsum((each - mean) ** 2 for each in logs)
    variance = max(squares / max(count - 1, 1), SPREAD_MIN**2)
    return _Described(mean, variance, count)


def _chance(one: _Described, other: _Described) -> float:
    """How likely two programs that are equally fast differ as much: Welch's test, two-sided."""
    of_means = [(each.variance / each.count, each.count - 1) for each in (one, other)]
    variance = math.fsum(of_mean for of_mean, _ in of_means)
    freedom = variance**2 / math.fsum(of_mean**2 / free for of_mean, free in of_means)
    size = abs(one.mean - other.mean) / math.sqrt(variance)
    return stats.student_chance(size, max(1, int(freedom)))
