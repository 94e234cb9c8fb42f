"""Stored searches that are judged again: today's rules might have taken other steps."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from trueload.search.decide import Bounds, NoSafeLoad, Outcome, SafeLoad, Step, Try, decide

OUTCOMES: tuple[Outcome, ...] = ("kept", "exceeded", "limited", "short", "gone")


def taken(bounds: Bounds, largest: float) -> list[Step]:
    """The steps of a search whose server meets the limit up to a load."""
    steps: list[Step] = []
    while isinstance(following := decide(bounds, steps), Try):
        outcome: Outcome = "kept" if following.load <= largest else "exceeded"
        steps.append(Step(following.load, outcome, following.purpose))
    return steps


@settings(max_examples=300)
@given(largest=st.integers(1, 40), seed=st.integers(0, 10_000), step=st.sampled_from([None, 4.0]))
def test_whatever_is_said_of_the_steps_now_it_has_a_result_or_none(
    largest: int, seed: int, step: float | None
) -> None:
    bounds = Bounds(start=4, floor=1, ceiling=64, whole=True, step=step)
    chance = random.Random(seed)
    again = [
        replace(each, outcome=chance.choice((each.outcome, *OUTCOMES)))
        for each in taken(bounds, largest)
    ]
    done = decide(bounds, again)
    if isinstance(done, SafeLoad):
        assert done.load == again[-1].load
        assert done.above is None or done.above > done.load


def test_a_confirmed_load_stays_found_when_no_other_step_is_kept_any_more() -> None:
    bounds = Bounds(start=10, floor=10, ceiling=40, whole=True, step=10)
    steps = [Step(10, "exceeded", "bracket"), Step(20, "exceeded", "bracket")]
    assert decide(bounds, [*steps, Step(10, "kept", "confirm")]) == SafeLoad(10, 20, "server")
    refused = Step(10, "exceeded", "confirm")
    assert decide(bounds, [*steps, refused]) == NoSafeLoad("unconfirmed", 10)
