"""Turns are taken while the CPUs share a cache: when to wait for that, and what is reported."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import chain, repeat
from typing import Any

import pytest
from harness import ROOT

NEAR, APART = 90.0, 380.0
FIRST_PAUSES, PAUSES = 120, 1_200
"""After so many pauses its patience is over, while it has not seen them near, and when it has."""


@pytest.fixture(scope="module")
def placement() -> Any:
    sys.path.insert(0, str(ROOT / "bench"))
    try:
        return import_module("placement")
    finally:
        sys.path.remove(str(ROOT / "bench"))


def looking(*seen_ns: float) -> Callable[[], float]:
    """Return these core latencies one after the other, and the last of them for ever."""
    looks: Iterator[float] = chain(seen_ns, repeat(seen_ns[-1]))
    return lambda: next(looks)


@pytest.mark.parametrize(
    ("seen_ns", "turns", "taken", "paused", "expected"),
    [
        ((NEAR,), 3, 3, 0, "in all turns (a round trip between them 90 ns, else up to 90)"),
        ((APART, APART, NEAR), 1, 1, 2, "else up to 380); for that 1 s were waited, and 0 of them"),
        ((NEAR, APART, NEAR), 1, 2, 0, "and 1 of them taken once more"),
        # The host moves the CPUs within each turn, so attempts are limited.
        ((NEAR, APART) * 9, 1, 4, 0, "in all turns but 1"),
        ((APART,), 2, 2, FIRST_PAUSES, "shared no cache (a round trip between them 380 ns)"),
        ((NEAR, NEAR, *[APART] * (PAUSES + 9)), 3, 3, PAUSES, "in all turns but 2"),
    ],
)
def test_a_turn_is_taken_where_the_cpus_share_a_cache_as_long_as_that_can_be_had(
    placement: Any, seen_ns: tuple[float, ...], turns: int, taken: int, paused: int, expected: str
) -> None:
    pauses: list[float] = []
    placed = placement.Placement(looking(*seen_ns), pauses.append)
    counted: list[int] = []

    def measure() -> int:
        counted.append(len(counted))
        return counted[-1]

    found = [placed.measured(measure) for _ in range(turns)]
    assert len(counted) == taken
    assert found[-1] == counted[-1], "what counts is the last that was taken"
    assert expected in str(placed)
    assert len(pauses) == paused


def test_where_nothing_is_known_of_the_cpus_each_turn_counts(placement: Any) -> None:
    unknown = placement.Unknown("there is no gcc")
    assert unknown.measured(lambda: 1) == 1
    assert str(unknown) == "Whether the two CPUs share a cache is not known: there is no gcc."
