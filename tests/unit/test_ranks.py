"""Ranges of ranks: how often a claim is wrong, what is found, and what may not be claimed."""

from __future__ import annotations

import math
import random

import pytest
from trueload import repetitions
from trueload.suites.ranks import Places, RowScore, _chance, _Described, known_above, places

REPETITIONS = 6


def scored(*scores: float, lower_bound: bool = False) -> RowScore:
    return RowScore(scores, repetitions.median(scores) or 0.0, lower_bound)


def normal(draw: random.Random) -> float:
    return draw.gauss(0, 0.03)


def skewed(draw: random.Random) -> float:
    """A repetition in six is disturbed, and much slower."""
    return draw.gauss(0, 0.01) - (draw.expovariate(5) if draw.random() < 1 / 6 else 0)


def of_two_states(draw: random.Random) -> float:
    """CPUs that share a cache, or do not."""
    return draw.gauss(0, 0.02) - (0.25 if draw.random() < 0.5 else 0)


@pytest.mark.parametrize("spread", [normal, skewed, of_two_states])
@pytest.mark.parametrize(("rows", "suites"), [(10, 1500), (30, 300)])
def test_of_equal_rows_any_is_ranked_above_another_in_at_most_6_percent_of_suites(
    rows: int, suites: int, spread: object
) -> None:
    draw = random.Random(f"{rows} {spread}")
    wrong = 0
    for _ in range(suites):
        drawn = [
            scored(*(1000 * math.exp(spread(draw)) for _ in range(REPETITIONS)))  # type: ignore[operator]
            for _ in range(rows)
        ]
        wrong += bool(known_above(drawn))
    # Three standard errors above 5 %, as so many suites are drawn.
    assert wrong <= suites * 0.05 + 3 * math.sqrt(suites * 0.05 * 0.95)


def test_ten_rows_seven_percent_apart_are_mostly_told_apart() -> None:
    """Six repetitions that vary by 3 % have a mean known to 1.2 %: neighbours 7 % apart differ by
    four standard errors of their difference, and rows further apart by more."""
    draw, suites, found = random.Random(3), 40, 0
    for _ in range(suites):
        rows = [
            scored(*(1000 * 1.07**-row * math.exp(normal(draw)) for _ in range(REPETITIONS)))
            for row in range(10)
        ]
        found += len(known_above(rows))
    assert found / suites > 0.8 * 45


def test_the_chance_of_a_difference_is_welchs() -> None:
    """Worked by hand: means 0 and 0.1, variances 0.01 each, six values each: t is 1.73 with ten
    degrees of freedom."""
    one, other = _Described(0.0, 0.01, 6), _Described(0.1, 0.01, 6)
    assert _chance(one, other) == pytest.approx(0.114, abs=0.001)


def test_rows_a_fifth_apart_are_told_apart() -> None:
    draw = random.Random(1)
    rows = [
        scored(*(1000 * 1.2**-row * math.exp(normal(draw)) for _ in range(REPETITIONS)))
        for row in range(10)
    ]
    assert [str(each) for each in places(10, known_above(rows))] == [str(n + 1) for n in range(10)]


def test_true_ranks_lie_within_the_ranges_in_95_of_100_suites() -> None:
    draw, suites, wrong = random.Random(2), 400, 0
    speeds = [1 - 0.02 * row for row in range(10)]
    for _ in range(suites):
        rows = [
            scored(*(speed * math.exp(normal(draw)) for _ in range(REPETITIONS)))
            for speed in speeds
        ]
        found = places(10, known_above(rows))
        wrong += not all(each.first <= n + 1 <= each.last for n, each in enumerate(found))
    assert wrong <= suites * 0.05 + 3 * math.sqrt(suites * 0.05 * 0.95)


HIGH, LOW = (100.0,) * 6, (90.0,) * 6

KNOWN = [
    ("two that differ", [scored(*LOW), scored(*HIGH)], {(1, 0)}),
    ("two that agree", [scored(*HIGH), scored(*HIGH)], set()),
    (
        "a third of a percent is less than figures are good for",
        [scored(*(100.3,) * 6), scored(*HIGH)],
        set(),
    ),
    ("a lower bound may be above", [scored(*LOW, lower_bound=True), scored(*HIGH)], set()),
    (
        "a lower bound is above what is below it",
        [scored(*LOW), scored(*HIGH, lower_bound=True)],
        {(1, 0)},
    ),
    ("one repetition says nothing of a spread", [scored(1.0), scored(*HIGH)], set()),
    ("nothing at all is below something", [scored(*(0.0,) * 6), scored(*HIGH)], {(1, 0)}),
    (
        "a mean against the medians makes no claim",
        [scored(1.0, 1.0, 1.0, 101.0, 101.0, 101.0, 101.0), scored(*HIGH)],
        set(),
    ),
    ("no row", [], set()),
]  # fmt: skip


@pytest.mark.parametrize(("what", "rows", "expected"), KNOWN, ids=[each[0] for each in KNOWN])
def test_what_is_known_of_two_rows(
    what: str, rows: list[RowScore], expected: set[tuple[int, int]]
) -> None:
    assert known_above(rows) == expected, what


def test_places_count_who_is_above_and_below() -> None:
    assert places(3, {(0, 2)}) == [Places(1, 2), Places(1, 3), Places(2, 3)]
    assert [str(each) for each in places(2, {(1, 0)})] == ["2", "1"]
