"""Simulated comparisons: equal servers are called better or worse in at most 1 of 20."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from trueload import repetitions
from trueload.compare.difference import (
    CLAIMS,
    Ratio,
    as_family,
    counted_once,
    lower_bound,
    of_pairs,
    of_trials,
)
from trueload.report.compare import pairs_text

METRICS = ("throughput", "mean", "p50", "p75", "p90", "p95", "p99", "p99.9")
FAMILIES = 300


def trial(chance: random.Random) -> dict[str, float]:
    """The figures of one trial, which have a common factor."""
    common = chance.gauss(0, 0.05)
    return {metric: math.exp(common + chance.gauss(0, 0.05)) for metric in METRICS}


def paired(chance: random.Random, count: int, shift: float = 1.0) -> list[Ratio]:
    pairs = [(trial(chance), trial(chance)) for _ in range(count)]
    return [of_pairs(m, [(a[m], b[m] * shift) for a, b in pairs]) for m in METRICS]


def apart(chance: random.Random, count: int) -> list[Ratio]:
    base, new = ([trial(chance) for _ in range(count)] for _ in "ab")
    return [of_trials(m, [a[m] for a in base], [b[m] for b in new]) for m in METRICS]


@pytest.mark.usefixtures("pairs_uncounted")
@pytest.mark.parametrize(
    ("make", "count"),
    [*((paired, count) for count in (6, 7, 8, 9, 12)), *((apart, count) for count in (4, 6, 8))],
)
def test_equal_servers_are_told_apart_in_at_most_one_of_twenty_comparisons(
    make: Callable[[random.Random, int], list[Ratio]], count: int
) -> None:
    chance = random.Random(count)
    false = {"a closed loop": 0, "an open loop": 0}
    for _ in range(FAMILIES):
        ratios = make(chance, count)
        for load, family in (
            ("a closed loop", as_family(counted_once(ratios), "throughput")),
            ("an open loop", as_family(ratios, "p99")),
        ):
            false[load] += any(each.word in CLAIMS for each in family)
    assert max(false.values()) <= 0.05 * FAMILIES, false


def test_a_difference_is_found_where_the_number_of_pairs_says_so() -> None:
    chance = random.Random(3)
    ratios = [math.exp(chance.gauss(0, 0.03)) for _ in range(200)]
    needed = of_pairs("throughput", [(1.0, each) for each in ratios]).pairs_needed
    assert needed is not None
    found = 0
    for _ in range(500):
        slower = [0.97 * math.exp(chance.gauss(0, 0.03)) for _ in range(int(needed))]
        found += repetitions.sign_chance(slower) <= 0.045
    assert 0.75 <= found / 500 <= 0.95


@pytest.mark.parametrize(
    ("ratios", "needed"),
    [
        ([1.0], None),
        ([1.0, 1.0, 1.0], 6),
        ([0.97, 1.0, 1.03], 15),
        ([0.5, 2.0, 1.0], math.inf),
        ([1.0, math.inf], None),
    ],
)
def test_how_many_pairs_a_difference_takes(ratios: list[float], needed: float | None) -> None:
    found = of_pairs("throughput", [(100.0, 100 * each) for each in ratios])
    assert found.pairs_needed == needed


def test_trials_of_two_runs_vary_on_both_sides() -> None:
    steady, shaky = [100.0, 100.0, 100.0], [97.0, 100.0, 103.0]
    needed = [
        of_trials("throughput", base, new).pairs_needed
        for base, new in ((steady, steady), (steady, shaky), (shaky, shaky), ([100.0], shaky))
    ]
    assert needed == [6, 15, 28, None]


def test_no_number_of_pairs_finds_what_a_lower_bound_hides() -> None:
    for bounds in ((lower_bound("A", [100.0] * 3), None), (None, lower_bound("B", [99.0] * 3))):
        assert of_pairs("throughput", [(100.0, 99.0)] * 3, bounds=bounds).pairs_needed is None
    assert of_pairs("throughput", [(100.0, 99.0)] * 3, "A is invalid").pairs_needed is None


PAIRS = "a difference of 3 % in throughput takes"


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([(100.0, 97.0), (100.0, 100.0), (100.0, 103.0)], "some 15 pairs at this spread"),
        ([(100.0, 50.0), (100.0, 200.0)], "more than 100 pairs at this spread"),
        ([(100.0, 97.0)] * 6, ""),  # it is found to be worse
        ([(100.0, 97.0)], ""),  # the spread of one pair is unknown
    ],
)
def test_where_no_difference_shows_a_comparison_says_what_it_takes_to_find_one(
    pairs: list[tuple[float, float]], expected: str
) -> None:
    text = pairs_text([of_pairs("throughput", pairs)], "throughput")
    assert text.startswith(f"{PAIRS} {expected}" if expected else "")
    assert bool(text) == bool(expected)


def bimodal(chance: random.Random) -> float:
    return chance.gauss(0, 1) if chance.random() < 0.4 else chance.gauss(8, 1)


SPREADS: dict[str, tuple[Callable[[random.Random], float], float]] = {
    "normal": (lambda chance: chance.gauss(0, 1), 0.0),
    "lognormal": (lambda chance: chance.lognormvariate(0, 1), 1.0),
    "bimodal": (bimodal, 7.0326),  # 0.4 + 0.6 P(z < m - 8) = 0.5
}


@pytest.mark.parametrize("count", [6, 7, 8, 9, 10, 12, 20])
@pytest.mark.parametrize("spread", SPREADS)
def test_the_interval_of_a_median_has_it_in_94_of_100_cases(spread: str, count: int) -> None:
    draw, middle = SPREADS[spread]
    chance = random.Random(count)
    covered = 0
    for _ in range(1_000):
        found = repetitions.interval([draw(chance) for _ in range(count)])
        assert found is not None
        covered += found.low <= middle <= found.high
    assert covered >= 940
