"""Figures are floats that can be compared with values as a user would type them."""

from __future__ import annotations

import copy
import json
import math
import pickle
import statistics
from collections.abc import Callable
from datetime import timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from trueload.api.results.quantities import IncomparableError, Quantity, Share, Throughput, Time
from trueload.errors import UserError

ten_ms = Time(0.010)
unknown = Time(math.inf, 0.012)
carried = Throughput(50_000.0, 1e6, None)


@pytest.mark.parametrize(
    ("held", "what"),
    [
        (ten_ms < 0.011, "a number is in seconds"),
        (not ten_ms < 0.010, "not less than itself"),
        (ten_ms == 0.010, "a time is the number of its seconds"),
        (0.009 < ten_ms < 1, "numbers may stand first"),
        (ten_ms < "11ms", "less than more"),
        (ten_ms <= "10ms", "at most itself"),
        (ten_ms >= "10000us", "at least itself in another unit"),
        (ten_ms > "9ms", "more than less"),
        (timedelta(milliseconds=9) < ten_ms, "a timedelta is a time"),
        (ten_ms <= timedelta(milliseconds=10), "and exact"),
        (ten_ms == Time("10ms") == Time(timedelta(milliseconds=10)), "a time may be read first"),
        (ten_ms != Time("10us"), "another number is another time"),
        (ten_ms < Fraction(1, 50), "any number is one"),
        (bool(np.float64(0.005) < ten_ms), "numpy's too"),
        (list(np.array([0.001, 0.1]) < ten_ms) == [True, False], "and its arrays"),
        (not unknown < "24h", "what nobody knows is longer than any"),
        (unknown > 86_400, "and more than any"),
        (unknown == math.inf, "it is infinite"),
        (max(ten_ms, unknown) is unknown, "also when sorted"),
        (Share(0.001) <= "0.1%", "a share at most itself"),
        (Share(0.001) < 0.01, "a share is a number"),
        (Share(0) == Share("0%"), "none is none"),
        (Share(0.5) > "10%", "half is more than a tenth"),
        (Share(0.5) == 0.5, "half is a half"),
        (carried >= "50k/s", "a throughput is read as a rate"),
        (40_000 < carried < 60_000, "and is a number"),
        (carried == 50_000, "of requests per second"),
        (Throughput(None) < 1, "where nothing was measured it is nothing"),
    ],
)
def test_quantities_compare_as_they_read(held: bool, what: str) -> None:
    assert held, what


@pytest.mark.parametrize("value", [ten_ms, unknown, Share(0.25), carried])
def test_equal_values_have_one_hash_and_copies_are_equal(value: Quantity) -> None:
    assert hash(value) == hash(float(value))
    assert {float(value): "found"}[value] == "found"
    for again in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
        assert (type(again), again, repr(again)) == (type(value), value, repr(value))
        assert vars(again) == vars(value)


def test_arithmetic_is_that_of_floats() -> None:
    assert ten_ms * 2 == 0.02
    assert (ten_ms + Time("5ms"), ten_ms - 0.005) == (0.015, 0.005)
    assert ten_ms / Time("5ms") == 2
    assert statistics.median([ten_ms, Time(0.02), Time(0.03)]) == 0.02
    assert sum([carried, carried]) == 100_000
    assert json.dumps([ten_ms, Share(0.5), carried]) == "[0.01, 0.5, 50000.0]"
    assert f"{ten_ms:.3f}" == "0.010"


@pytest.mark.parametrize(
    ("compare", "expected"),
    [
        (lambda: ten_ms < "10", "'10' has no unit"),
        (lambda: ten_ms > "soon", "'soon' is not a duration"),
        (lambda: ten_ms > float("nan"), "nan is not a time"),
        (lambda: ten_ms > True, "True is not a time"),
        (lambda: ten_ms > Share(0.5), "50 % is not a time"),
        (lambda: ten_ms == "10ms", "== and != do not read '10ms'"),
        (lambda: ten_ms != "nonsense", "== and != do not read 'nonsense'"),
        (lambda: ten_ms == timedelta(milliseconds=10), "== and != do not read"),
        (lambda: Share(0.1) > "5", "'5' is more than all"),
        (lambda: Share(0.1) == "10%", "== and != do not read '10%'"),
        (lambda: Share(0.1) < ten_ms, "10.0 ms is not a share"),
        (lambda: carried > "10ms", "'10ms' is not a rate"),
        (lambda: carried > ten_ms, "10.0 ms is not a throughput"),
        (lambda: Time("soon"), "'soon' is not a duration"),
        (lambda: Time(math.nan), "nan is not a time"),
    ],
)
def test_nonsense_is_refused_with_a_hint(compare: Callable[[], object], expected: str) -> None:
    with pytest.raises(IncomparableError, match=expected) as refused:
        compare()
    assert isinstance(refused.value, UserError)
    assert isinstance(refused.value, TypeError)
    assert refused.value.hint


@pytest.mark.parametrize("nonsense", [None, [0.01], object(), b"10ms", 1j])
@pytest.mark.parametrize("value", [ten_ms, Share(0.25), carried])
def test_what_is_no_number_is_refused_as_by_any_number(value: Quantity, nonsense: Any) -> None:
    for compare in (value.__lt__, value.__le__, value.__gt__, value.__ge__):
        assert compare(nonsense) is NotImplemented
    with pytest.raises(TypeError):
        assert value < nonsense
    assert value != nonsense


def test_quantities_are_shown_with_their_unit() -> None:
    shown = [repr(each) for each in (ten_ms, unknown, Time(math.inf), Share(0.001), carried)]
    assert shown == ["10.0 ms", "> 12.0 ms", "unknown", "0.1 %", "50,000 requests/s"]
    assert f"{unknown} {Throughput(None)}" == "> 12.0 ms nothing measured"
    assert (ten_ms.ns, ten_ms.us, ten_ms.ms) == (10_000_000, 10_000, 10)
    assert unknown.at_least == 0.012
    assert (unknown.is_known, unknown.ms) == (False, math.inf)
    assert (carried.ok_per_s, carried.bytes_in_per_s, carried.bytes_out_per_s) == (
        50_000,
        1e6,
        None,
    )


@pytest.mark.parametrize("ns", [1, 999, 12_345_678, 1_234_567_891, 86_399_999_999_999, 2.5])
def test_a_time_keeps_each_nanosecond(ns: float) -> None:
    assert Time(ns / 1_000_000_000).ns == ns
