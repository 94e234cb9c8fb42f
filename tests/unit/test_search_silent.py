"""The search of a server without one good answer: the load was too high, or it is useless."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import NO_COUNTS, counts, good_record
from search_samples import LIMIT_10MS, SLOW, failing
from trueload.record.schema import Record, Warmup
from trueload.search.decide import Bounds, Done, NoSafeLoad, Outcome, SafeLoad, Step, Try, decide
from trueload.search.execute import SearchPlan, make_bounds
from trueload.search.execute import search as run_steps
from trueload.search.result import exit_code, search_json
from trueload.verdict import judge

RATES = Bounds(start=1_000, floor=1, ceiling=10_000_000)
CONNECTIONS = Bounds(start=8, floor=1, ceiling=100_000, whole=True)

Server = Callable[[float, int], tuple[Outcome, bool]]
"""What comes of a load in the step of this number, from 0, and whether there was a good answer."""


def search(bounds: Bounds, server: Server) -> tuple[Done, list[Step]]:
    steps: list[Step] = []
    while isinstance(following := decide(bounds, steps), Try):
        outcome, answered = server(following.load, len(steps))
        steps.append(Step(following.load, outcome, following.purpose, answered))
        assert len(steps) < 80, "a search ends"
    return following, steps


def silent_beyond(most: float) -> Server:
    """A server that meets the limit up to a load, and answers nobody beyond it."""
    return lambda load, _: ("kept", True) if load <= most else ("exceeded", False)


@pytest.mark.parametrize(("bounds", "loads"), [(RATES, [1_000, 1]), (CONNECTIONS, [8, 1])])
def test_who_never_answers_is_asked_twice(bounds: Bounds, loads: list[float]) -> None:
    done, steps = search(bounds, silent_beyond(0))
    assert (done, [step.load for step in steps]) == (NoSafeLoad("none", 1), loads)


def test_where_our_side_spoils_each_step_each_is_done_twice() -> None:
    done, steps = search(RATES, lambda load, number: ("limited", False))
    assert done == NoSafeLoad("generator", 1)
    assert [step.load for step in steps] == [1_000, 1_000, 1, 1]


@pytest.mark.parametrize("most", [1, 3, 10, 124, 999])
def test_who_answers_nothing_of_too_much_and_less_well_is_searched_downwards(most: float) -> None:
    done, steps = search(RATES, silent_beyond(most))
    assert isinstance(done, SafeLoad)
    assert done.load <= most
    assert done.load >= most / 1.031
    assert done.limited_by == "server"
    assert [step.load for step in steps[:2]] == [1_000, 1]


def test_who_answers_something_is_searched_step_by_step() -> None:
    done, steps = search(RATES, lambda load, _: ("exceeded", load < 1_000))
    assert done == NoSafeLoad("none", 1)
    assert len(steps) == 2
    done, steps = search(RATES, lambda load, _: ("exceeded", True))
    assert [step.load for step in steps] == [1_000, 125, 15.6, 1.95, 1]


@pytest.mark.parametrize("fallen", range(1, 10))
def test_who_falls_silent_for_good_is_asked_once_more_what_it_carried(fallen: int) -> None:
    def server(load: float, number: int) -> tuple[Outcome, bool]:
        if number >= fallen:
            return "exceeded", False
        return ("kept" if load <= 5_000 else "exceeded"), True

    done, steps = search(RATES, server)
    kept = {step.load for step in steps if step.outcome == "kept"}
    assert isinstance(done, NoSafeLoad)
    assert done.why == "gone"
    assert done.lowest <= max(kept)
    assert fallen < len(steps) <= fallen + 2


@settings(max_examples=200)
@given(
    most=st.floats(min_value=0.5, max_value=1e6),
    answers=st.floats(min_value=1, max_value=4),
    start=st.floats(min_value=1, max_value=1e6),
)
def test_a_server_that_breaks_off_beyond_its_most_is_measured_as_any_other(
    most: float, answers: float, start: float
) -> None:
    def server(load: float, number: int) -> tuple[Outcome, bool]:
        return ("kept" if load <= most else "exceeded"), load <= most * answers

    done, steps = search(Bounds(start=start, floor=1, ceiling=1e7), server)
    assert len(steps) < 45
    if most < 1:
        assert done == NoSafeLoad("none", 1)
    else:
        assert isinstance(done, SafeLoad)
        assert done.load <= most
        assert done.load >= most / 1.04


NOBODY_OK = judge(
    good_record(
        counts=counts(ok=0, failed={"timeout.first_byte": 10_000}, statuses={}), histograms=SLOW
    )
)


def searched(record: Record, before: int = 0) -> tuple[SearchPlan, list[Record]]:
    return SearchPlan("rate", LIMIT_10MS, make_bounds("rate", None), None), [
        *(good_record() for _ in range(before)),
        record,
    ]


@pytest.mark.parametrize(
    ("before", "outcome", "sentence"),
    [
        (
            0,
            "none",
            "no load keeps to p99<10ms and errors<1%; the lowest tried was 1 request/s, and no"
            " request was ok: timeout.first_byte",
        ),
        (
            2,
            "gone",
            "the server no longer answered at 2,000 requests/s: no request was ok:"
            " timeout.first_byte; 2,000 requests/s had kept p99<10ms and errors<1%, not confirmed",
        ),
    ],
)
def test_the_result_names_what_became_of_the_requests(
    before: int, outcome: str, sentence: str
) -> None:
    plan, records = searched(NOBODY_OK, before)
    at = iter(records)
    taken = list(run_steps(plan, lambda following, ns: next(at, NOBODY_OK)))
    assert len(taken) == before + 2
    result = search_json(plan, taken, None, interrupted=False)["result"]
    assert (result["outcome"], result["load"]) == (outcome, None)
    assert result["sentence"] == sentence
    assert exit_code(plan, taken) == 4


def test_so_it_does_where_our_side_spoiled_each_step() -> None:
    plan, _ = searched(NOBODY_OK)
    record = failing("noise", histograms=SLOW, counts=NOBODY_OK.counts)
    taken = list(run_steps(plan, lambda following, ns: record))
    text = search_json(plan, taken, None, interrupted=False)["result"]["sentence"]
    assert text.startswith("other processes held it up at every load")
    assert text.endswith("1 request/s, and no request was ok: timeout.first_byte")


def test_a_good_answer_in_the_warmup_is_one() -> None:
    warmed = Warmup(counts=NO_COUNTS.model_copy(update={"issued": 1, "ok": 1}), wall_s=1.0)
    plan, _ = searched(NOBODY_OK)
    record = NOBODY_OK.model_copy(update={"warmup": warmed})
    taken = list(run_steps(plan, lambda following, ns: record))
    assert [each.next.load for each in taken] == [1_000, 125, 15.6, 1.95, 1]
