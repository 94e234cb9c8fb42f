"""Values that compare with what one would type."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta

import pytest
from trueload.api.results.quantities import Share, Time
from trueload.errors import UserError

TEN_MS = Time(10_000_000)
UNKNOWN = Time(math.inf, 12_000_000)


@pytest.mark.parametrize(
    ("held", "what"),
    [
        (TEN_MS < "11ms", "less than more"),
        (not TEN_MS < "10ms", "not less than itself"),
        (TEN_MS <= "10ms", "at most itself"),
        (TEN_MS == "0.01s", "the same in another unit"),
        (TEN_MS != "10us", "another number is another time"),
        (timedelta(milliseconds=9) < TEN_MS, "a timedelta is a time"),
        (Time(10_000_000) <= TEN_MS, "another time is one"),
        (TEN_MS > "9ms", "text may stand first"),
        (not UNKNOWN < "24h", "what nobody knows is longer than any"),
        (UNKNOWN > "24h", "and more than any"),
        (hash(TEN_MS) == hash(Time(10_000_000)), "equal times have one hash"),
        (Share(0.001) <= "0.1%", "a share at most itself"),
        (Share(0.001) < 0.01, "a share is a number"),
        (Share(0) == "0%", "none is none"),
        (Share(0.5) > "10%", "half is more than a tenth"),
        (Share(0.5) >= "50%", "half is at least half"),
        (Share(0.5) == 0.5, "half is a half"),
    ],
)
def test_quantities_compare_as_they_read(held: bool, what: str) -> None:
    assert held, what


@pytest.mark.parametrize(
    ("compare", "said"),
    [
        (lambda: TEN_MS < 10, "10, which has no unit"),  # type: ignore[operator]
        (lambda: TEN_MS < "10", "'10' has no unit"),
        (lambda: TEN_MS > "soon", "'soon' is not a duration"),
        (lambda: Share(0.1) > "5", "'5' is more than all"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_a_hint(
    compare: Callable[[], bool], said: str
) -> None:
    with pytest.raises(UserError, match=said) as refused:
        compare()
    assert refused.value.hint


def test_quantities_are_shown_with_their_unit() -> None:
    shown = [repr(TEN_MS), repr(UNKNOWN), repr(Time(math.inf)), repr(Share(0.001))]
    assert shown == ["10.0 ms", "> 12.0 ms", "unknown", "0.1 %"]
    assert (TEN_MS.us, TEN_MS.ms, TEN_MS.s) == (10_000, 10, 0.01)
