"""The search for the largest safe load, against servers that are functions of the load."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trueload.search.decide import (
    PRECISION,
    STEPS_DOWN,
    Bounds,
    Found,
    NotFound,
    Outcome,
    Step,
    Try,
    decide,
)

RATES = Bounds(start=1_000, floor=1, ceiling=10_000_000)
CONNECTIONS = Bounds(start=8, floor=1, ceiling=100_000, whole=True)

Server = Callable[[float, str], Outcome]


def up_to(largest: float, generator: float = float("inf")) -> Server:
    """Keeps to the limit up to a load; the generator can offer no more than another."""

    def server(load: float, stage: str) -> Outcome:
        if load > generator:
            return "limited"
        return "kept" if load <= largest else "exceeded"

    return server


def search(bounds: Bounds, server: Server) -> tuple[Found | NotFound, list[Step]]:
    steps: list[Step] = []
    while True:
        following = decide(bounds, steps)
        if not isinstance(following, Try):
            return following, steps
        assert bounds.floor <= following.load <= bounds.ceiling
        steps.append(Step(following.load, server(following.load, following.stage), following.stage))
        assert len(steps) < 80, "a search ends"


@pytest.mark.parametrize("largest", [1, 1.5, 7, 124, 999, 1_000, 1_001, 12_345, 3e5, 9_999_999])
def test_the_largest_rate_is_found_to_three_percent(largest: float) -> None:
    done, steps = search(RATES, up_to(largest))
    assert isinstance(done, Found)
    assert done.above is not None
    assert done.load <= largest < done.above
    assert done.above <= done.load * (1 + PRECISION) * 1.001
    assert done.limited_by == "server"
    assert steps[-1] == Step(done.load, "kept", "confirm")
    assert [step.stage for step in steps].count("confirm") == 1


@pytest.mark.parametrize("largest", [1, 2, 3, 8, 9, 33, 100, 1_000])
def test_the_largest_number_of_connections_is_found(largest: int) -> None:
    done, steps = search(CONNECTIONS, up_to(largest))
    assert isinstance(done, Found)
    assert done.load <= largest
    assert done.load >= largest * (1 - PRECISION) - 1e-9
    assert all(step.load == int(step.load) for step in steps)


def test_what_nothing_keeps_to_ends_at_the_lowest_load() -> None:
    done, steps = search(RATES, up_to(0))
    assert done == NotFound("none", 1)
    assert [step.load for step in steps] == [1_000, 125, 15.6, 1.95, 1]


def test_a_server_without_an_end_is_confirmed_at_the_ceiling_as_a_lower_bound() -> None:
    done, _ = search(CONNECTIONS, up_to(float("inf")))
    assert done == Found(100_000, None, "ceiling")


def test_what_the_generator_cannot_offer_is_a_lower_bound_and_no_verdict_on_the_server() -> None:
    done, steps = search(RATES, up_to(largest=float("inf"), generator=20_000))
    assert isinstance(done, Found)
    assert done.limited_by == "generator"
    assert done.load <= 20_000
    assert done.load >= 20_000 * (1 - PRECISION)
    limited = [step.load for step in steps if step.outcome == "limited"]
    assert sorted(limited[::2]) == sorted(limited[1::2]), "each was tried twice"


def test_a_generator_that_can_offer_nothing_is_told_from_a_server_that_keeps_nothing() -> None:
    done, _ = search(RATES, up_to(largest=float("inf"), generator=0))
    assert done == NotFound("generator", 1)


def test_a_step_that_was_spoiled_once_is_as_if_it_had_not_been() -> None:
    spoiled: set[float] = set()

    def server(load: float, stage: str) -> Outcome:
        if load not in spoiled:
            spoiled.add(load)
            return "limited"
        return up_to(5_000)(load, stage)

    done, steps = search(RATES, server)
    calm, calm_steps = search(RATES, up_to(5_000))
    assert done == calm
    assert [step for step in steps if step.outcome != "limited"] == calm_steps


def test_a_load_that_is_not_confirmed_steps_down() -> None:
    def server(load: float, stage: str) -> Outcome:
        return up_to(4_500 if stage == "confirm" else 5_000)(load, stage)

    done, steps = search(RATES, server)
    assert isinstance(done, Found)
    confirming = [step for step in steps if step.stage == "confirm"]
    assert [step.outcome for step in confirming] == ["exceeded", "exceeded", "kept"]
    assert done.load == confirming[-1].load
    assert done.load <= 4_500
    assert done.above == confirming[-2].load


def test_confirming_ends() -> None:
    def server(load: float, stage: str) -> Outcome:
        return "exceeded" if stage == "confirm" else up_to(5_000)(load, stage)

    done, steps = search(RATES, server)
    assert isinstance(done, NotFound)
    assert done.why == "unconfirmed"
    assert [step.stage for step in steps].count("confirm") == len(STEPS_DOWN)
    done, steps = search(CONNECTIONS, lambda load, stage: server(load * 5_000, stage))
    assert done == NotFound("unconfirmed", 1)
    assert [step.stage for step in steps].count("confirm") == 1


@settings(max_examples=300, deadline=None)
@given(
    largest=st.floats(min_value=0.1, max_value=2e7),
    start=st.floats(min_value=1, max_value=1e7),
    noise=st.floats(min_value=0, max_value=0.3),
    seed=st.integers(0, 1000),
    whole=st.booleans(),
)
def test_every_search_ends_and_confirms_what_it_finds(
    largest: float, start: float, noise: float, seed: int, whole: bool
) -> None:
    chance = random.Random(seed)

    def server(load: float, stage: str) -> Outcome:
        if chance.random() < noise / 3:
            return "limited"
        return up_to(largest * (1 + chance.uniform(-noise, noise)))(load, stage)

    bounds = Bounds(start=start, floor=1, ceiling=10_000_000, whole=whole)
    done, steps = search(bounds, server)
    if isinstance(done, Found):
        assert steps[-1] == Step(done.load, "kept", "confirm")
        assert done.above is None or done.above > done.load
