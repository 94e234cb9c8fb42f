"""Statistics: percentiles by counting, their neighbours, medians, intervals and ranks."""

from __future__ import annotations

import math
import random
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu, quantile_test, t
from trueload import repetitions, stats
from trueload.buckets import Buckets
from trueload.repetitions import Interval, coefficient_of_variation, ratio, ratio_interval
from trueload.stats import Quantile, rank_interval, samples_for


def buckets(values: list[int]) -> Buckets:
    one_each = [(value, range(value, value + 1)) for value in sorted(set(values))]
    return Buckets(*((it, it, (values.count(value),)) for value, it in one_each))


TEN = buckets(list(range(1, 11)))


@pytest.mark.parametrize(
    ("share", "worse", "expected"),
    [
        (0.5, 0, Quantile(5, above=False)),
        (0.51, 0, Quantile(6, above=False)),
        (0.99, 0, Quantile(10, above=False, too_few=True)),
        (1.0, 0, Quantile(10, above=False)),
        (0.0, 0, Quantile(1, above=False, too_few=True)),
        (0.5, 10, Quantile(10, above=False)),
        (0.51, 10, Quantile(10, above=True)),
        (0.99, 1, Quantile(10, above=True)),
        (0.9, 1, Quantile(10, above=False, too_few=True)),
    ],
)
def test_a_percentile_counts_those_that_never_ended_as_slower_than_any(
    share: float, worse: int, expected: Quantile
) -> None:
    assert stats.quantile(TEN, share, worse) == expected


def test_a_percentile_of_nothing_is_above_nothing() -> None:
    assert stats.quantile(stats.EMPTY, 0.5) == Quantile(None, above=True)


def test_p999_of_a_thousand_is_the_second_largest() -> None:
    assert stats.quantile(buckets(list(range(1000))), 0.999).value == 998


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=200), st.floats(0.001, 1.0))
def test_a_percentile_is_the_nearest_rank(values: list[int], share: float) -> None:
    rank = max(1, math.ceil(share * len(values) * (1 - 1e-12)))
    assert stats.quantile(buckets(values), share).value == sorted(values)[rank - 1]


@given(st.lists(st.integers(1, stats.HIGHEST_NS), min_size=1, max_size=100))
def test_a_histogram_is_read_as_it_was_written_to_three_digits(values: list[int]) -> None:
    encoded = stats.encode_histogram(buckets(values))
    decoded = stats.decode_histogram(encoded)
    assert decoded.total == len(values)
    found = stats.summarise(decoded)
    assert found.min is not None
    assert found.max is not None
    assert found.min == pytest.approx(min(values), rel=2e-3, abs=1)
    assert found.max == pytest.approx(max(values), rel=2e-3, abs=1)
    assert found.mean == pytest.approx(sum(values) / len(values), rel=2e-3, abs=1)


def test_an_empty_histogram_has_no_figures() -> None:
    assert stats.encode_histogram(stats.EMPTY) is None
    assert stats.summarise(stats.decode_histogram(None)) == stats.Distribution()


@pytest.mark.parametrize("junk", ["", "x", "HISTFAAA", "é"])
def test_junk_is_no_histogram(junk: str) -> None:
    with pytest.raises(ValueError, match="not an HdrHistogram"):
        stats.decode_histogram(junk)


def test_the_figures_of_a_summary_are_in_order() -> None:
    chance = random.Random(7)
    values = [round(chance.lognormvariate(14, 2)) for _ in range(5_000)]
    found = stats.summarise(stats.decode_histogram(stats.encode_histogram(buckets(values))))
    order = [found.min, found.p25, found.p50, found.p75, found.p90, found.p95, found.p99]
    rising = [value for value in (*order, found.p999, found.max) if value is not None]
    assert len(rising) == 9
    assert rising == sorted(rising)


@given(st.integers(0, 2**50))
def test_an_index_of_a_sparse_histogram_holds_its_value(value: int) -> None:
    exponent = 0 if value < 128 else value.bit_length() - 7
    index = value if value < 128 else 64 * exponent + (value >> exponent)
    low, high = stats.sparse_bounds(index)
    assert low <= value <= high
    assert high - low <= max(0, low // 64)


def test_sparse_histograms_are_summed() -> None:
    merged = stats.merge_sparse([{1: 2, 200: 1}, {1: 3}, {}])
    assert merged.counts == (5, 1)
    assert merged.lows[0] == 1


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("p50", 0.5),
        ("p99", 0.99),
        ("p99.9", 0.999),
        ("p999", 0.999),
        ("p99.99", 0.9999),
        ("p5", 0.05),
        ("p100", 1.0),
        ("p0", None),
        ("p101", None),
        ("p1000", None),
        ("p", None),
        ("p-1", None),
        ("q50", None),
        ("p1.2.3", None),
        ("p٣", None),
    ],
)
def test_a_percentile_has_a_name(name: str, share: float | None) -> None:
    found = stats.parse_percentile(name)
    assert found == (None if share is None else pytest.approx(share))


@pytest.mark.parametrize(
    ("values", "expected"),
    [([], None), ([3], 3), ([3, 1], 2), ([3, 1, 2], 2), ([1, math.inf, math.inf, 2], math.inf)],
)
def test_the_median_is_the_middle(values: list[float], expected: float | None) -> None:
    assert repetitions.median(values) == expected


def test_few_values_give_their_range_and_say_so() -> None:
    assert repetitions.interval([3.0, 1.0, 2.0]) == Interval(1.0, 3.0, "range")
    assert repetitions.interval([]) is None


@pytest.mark.parametrize(
    # Conover 1999, table A3: 0, 0, 1, 3, 5 and 39 lie beyond at each end.
    ("count", "ranks"),
    [(6, (1, 6)), (8, (1, 8)), (9, (2, 8)), (15, (4, 12)), (20, (6, 15)), (100, (40, 61))],
)
def test_an_interval_of_a_median_lies_between_two_values(
    count: int, ranks: tuple[int, int]
) -> None:
    assert repetitions.interval(range(1, count + 1)) == Interval(*ranks, "95 % interval")


SIDE = st.lists(st.floats(1, 1e6), min_size=1, max_size=20)
MANY = st.lists(st.floats(1, 1e9), min_size=6, max_size=60, unique=True)


@given(MANY)
def test_it_is_the_interval_that_scipy_finds(values: list[float]) -> None:
    known: Any = quantile_test(values, p=0.5).confidence_interval(0.95)
    assert repetitions.interval(values) == Interval(known.low, known.high, "95 % interval")


def test_an_interval_of_equal_values_is_that_value() -> None:
    assert repetitions.interval([5.0] * 6) == Interval(5.0, 5.0, "95 % interval")


def covered(side: int, trials: int) -> int:
    """How often a ratio's interval holds what is true, of equal sides."""
    chance = random.Random(1)
    hits = 0
    for _ in range(trials):
        base, new = ([chance.gauss(100, 10) for _ in range(side)] for _ in range(2))
        found = ratio_interval(base, new)
        assert found is not None
        hits += found.low <= 1 <= found.high
    return hits


@pytest.mark.parametrize("side", [4, 6, 12])
def test_a_ratios_interval_holds_the_truth_nineteen_times_in_twenty(side: int) -> None:
    assert covered(side, 400) >= 367  # 400 x 0.95 = 380; 367 is three standard deviations below


@pytest.mark.parametrize("freedom", [*range(1, 60), 599, 3_599])
def test_an_interval_of_few_values_has_students_width(freedom: int) -> None:
    assert stats.student_t(freedom) == pytest.approx(t.ppf(0.975, freedom), rel=1e-9)


@pytest.mark.parametrize("base", [2, 3, 4, 5, 6, 10, 15])
@pytest.mark.parametrize("new", [4, 5, 6, 8, 9, 20])
def test_a_ratios_interval_is_what_the_rank_sum_test_does_not_reject(base: int, new: int) -> None:
    chance = random.Random(base * 100 + new)
    old = [chance.lognormvariate(0, 0.3) for _ in range(base)]
    now = [chance.lognormvariate(0, 0.3) for _ in range(new)]

    def likely(share: float) -> float:
        return float(mannwhitneyu(old, [each / share for each in now], method="exact").pvalue)

    found = ratio_interval(old, now)
    assert found is not None
    outside, inside = found.low * (1 - 1e-9), found.low * (1 + 1e-9)
    assert (likely(outside) <= 0.05) is (found.kind == "95 % interval")
    assert likely(inside) > 0.05
    assert (likely(found.high * (1 + 1e-9)) <= 0.05) is (found.kind == "95 % interval")
    assert likely(found.high * (1 - 1e-9)) > 0.05


@given(SIDE, SIDE)
def test_a_ratio_lies_in_its_interval(base: list[float], new: list[float]) -> None:
    found = ratio_interval(base, new)
    of_medians = ratio(repetitions.median(new) or 0, repetitions.median(base) or 0)
    assert found is not None
    assert of_medians is not None
    assert found.low <= of_medians <= found.high


def test_many_trials_a_side_stay_quick_and_lie_around_the_ratio() -> None:
    found = ratio_interval(range(1_000, 11_000), range(2_000, 22_000, 2))
    assert found is not None
    assert 1.5 < found.low < 2 < found.high < 2.5


@pytest.mark.parametrize(
    ("count", "share", "worse", "expected"),
    [
        # 1,000 x 0.5 +- 1.96 sqrt(250): ranks 470 and 531.
        (1_000, 0.50, 0, (470, 531)),
        # 1,000 x 0.99 +- 1.96 sqrt(9.9): ranks 984 and 997.
        (1_000, 0.99, 0, (984, 997)),
        (200, 0.99, 0, None),
        (300, 0.99, 0, None),
        (400, 0.99, 0, (393, 400)),
        (50, 0.99, 0, None),
        (1_000, 0.99, 10, None),
        (0, 0.50, 100, None),
        (0, 0.50, 0, None),
    ],
)
def test_a_percentile_lies_between_two_ranks(
    count: int, share: float, worse: int, expected: tuple[int, int] | None
) -> None:
    each = range(1, count + 1)
    known = Buckets((each, each, (1,) * count)) if count else stats.EMPTY
    assert rank_interval(known, share, worse) == expected


@pytest.mark.parametrize(("share", "samples"), [(0.5, 20), (0.99, 1_000), (0.999, 10_000), (1, 1)])
def test_a_percentile_needs_ten_values_beyond_it(share: float, samples: int) -> None:
    assert samples_for(share) == pytest.approx(samples, abs=1)


@pytest.mark.parametrize("share", [0.5, 0.9, 0.95, 0.99, 0.999])
def test_so_many_values_give_an_interval_with_both_ends(share: float) -> None:
    each = range(1, samples_for(share) + 1)
    assert rank_interval(Buckets((each, each, (1,) * len(each))), share) is not None


@pytest.mark.parametrize(
    ("values", "expected"),
    [([], None), ([5], None), ([5, 5], 0), ([1, 3], 2**0.5 / 2), ([0, 0], None), ([1, inf], None)],
)
def test_the_coefficient_of_variation_is_deviation_over_mean(
    values: list[float], expected: float | None
) -> None:
    found = coefficient_of_variation(values)
    assert found == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("base", "new", "low", "high", "kind"),
    [
        ([100], [90], 0.9, 0.9, "range"),
        ([100, 200], [100, 300], 0.5, 3, "range"),
        ([100] * 6, [90] * 6, 0.9, 0.9, "95 % interval"),
        ([100, 101, 102, 103, 104, 105, 106], [206] * 7, 206 / 106, 206 / 100, "95 % interval"),
        ([10, 20], [inf, inf], inf, inf, "range"),
    ],
)
def test_a_ratio_has_an_interval(
    base: list[float], new: list[float], low: float, high: float, kind: str
) -> None:
    found = ratio_interval(base, new)
    assert found is not None
    assert found.kind == kind
    assert low <= found.low * 1.000001
    assert found.high <= high * 1.000001
    if kind == "range":
        assert (found.low, found.high) == (low, high)


def test_a_ratio_of_nothing_has_none() -> None:
    assert ratio_interval([], [1]) is None
    assert ratio_interval([inf], [inf]) is None
    assert ratio(0, 0) is None
    assert ratio(1, 0) == inf
