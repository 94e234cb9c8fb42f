"""Intervals of percentiles: how often they have the truth in them, and when there is none."""

from __future__ import annotations

from typing import Any

import pytest
from trueload.record.percentile_interval import Beyond

RUNS = 100


@pytest.mark.parametrize("share", [0.5, 0.99])
@pytest.mark.parametrize("kind", range(4))
def test_the_truth_is_mostly_within(bench: Any, kind: int, share: float) -> None:
    """88 of 100 are three standard deviations below 95.

    Each has its own percentile in it, too.
    """
    coverage = bench["coverage"]
    found = coverage.coverage(coverage.KINDS[kind], share, RUNS)
    assert found.intervals >= 0.8 * RUNS
    assert found.share >= 0.88, found


@pytest.mark.parametrize(
    ("beyond", "moments", "few"),
    [
        ([10.0] * 30, 30, False),
        ([0.0] * 29 + [300.0], 1, True),
        ([0.0, 0.0, 100.0] * 3, 3, False),
        ([0.0, 0.0, 0.0, 100.0] * 3, 3, True),
        ([0.0, 0.0, 100.0] * 10, 10, False),
        ([1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0], 10, False),
        ([0.0, 0.0, 0.0, 100.0], 1, False),
        ([0.0] * 10, 0, False),
    ],
)
def test_moments_are_counted_by_what_they_have(
    beyond: list[float], moments: float, few: bool
) -> None:
    found = Beyond(tuple([1000] * len(beyond)), tuple(beyond))
    assert found.is_of_few is few
    if moments:
        assert found.moments == pytest.approx(moments, rel=0.02)


@pytest.mark.parametrize(
    ("beyond", "least", "most"),
    [
        ([10.0] * 30, 1.95, 1.97),
        ([5.0, 15.0] * 15, 3.0, 3.5),
        ([5.0] * 15 + [15.0] * 15, 7, 10),
        ([0.0, 20.0] * 4, 1.95, 1.97),
    ],
)
def test_seconds_that_differ_widen_an_interval_and_more_so_if_neighbours_are_alike(
    beyond: list[float], least: float, most: float
) -> None:
    found = Beyond(tuple([1000] * len(beyond)), tuple(beyond))
    assert least < found.deviations(0.99) < most
