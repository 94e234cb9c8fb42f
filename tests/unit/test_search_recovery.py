"""A server that is slow for a while after an overload is not judged by that."""

from __future__ import annotations

import pytest
from samples import flat, good_record, histogram
from search_samples import LIMIT_10MS
from trueload.protocol.plan import Histograms
from trueload.record.schema import Record
from trueload.search.decide import PROBES_MOST, Bounds, NoSafeLoad, SafeLoad, Step, Try, decide
from trueload.search.execute import SearchPlan, StepResult, make_bounds, make_clients, take
from trueload.search.judge import judge_recovery
from trueload.search.result import exit_code, labels, read_steps, search_lines, sentence

RATES = make_bounds("rate", None)


class Hysteresis:
    """Carries ``most``; once that was exceeded, half of it for so many probes, and then all again.

    A probe at a load that it carries all the time shows whether it is as fast as before.
    """

    def __init__(self, most: float, degraded: int) -> None:
        self.most, self.degraded, self.left = most, degraded, 0

    def serve(self, following: Try) -> Step:
        slow = self.left > 0
        most = self.most / 2 if slow else self.most
        kept = following.load <= most and not (slow and following.purpose == "recover")
        self.left = self.degraded if following.load > self.most else max(0, self.left - 1)
        return Step(following.load, "kept" if kept else "exceeded", following.purpose)


def search(server: Hysteresis, bounds: Bounds = RATES) -> tuple[SafeLoad | NoSafeLoad, list[Step]]:
    steps: list[Step] = []
    while isinstance(following := decide(bounds, steps), Try):
        steps.append(server.serve(following))
        assert len(steps) < 120, "a search ends"
    return following, steps


@pytest.mark.parametrize("most", [3.0, 90.0, 1_000.0, 1_300.0, 47_000.0])
@pytest.mark.parametrize("degraded", [0, 1, 2])
def test_the_limit_of_a_server_that_recovers_is_found(most: float, degraded: int) -> None:
    done, steps = search(Hysteresis(most, degraded))
    assert isinstance(done, SafeLoad)
    assert most / 1.04 <= done.load <= most
    probes = [at for at, step in enumerate(steps) if step.purpose == "recover"]
    lowest = min(step.load for step in steps if step.outcome == "kept")
    assert {steps[at].load for at in probes} == {lowest}
    assert all(steps[at - 1].outcome == "exceeded" for at in probes), "only behind an overload"


def test_one_that_does_not_recover_is_the_result() -> None:
    done, steps = search(Hysteresis(1_500, PROBES_MOST))
    assert done == NoSafeLoad("unrecovered", 2_000)
    assert [step.purpose for step in steps] == ["bracket", "bracket", *["recover"] * PROBES_MOST]


def test_one_that_is_gone_or_silent_ends_the_search() -> None:
    steps = [Step(1_000, "kept", "bracket"), Step(2_000, "exceeded", "bracket")]
    assert decide(RATES, steps) == Try(1_000, "recover")
    for probe in (Step(1_000, "gone", "recover"), Step(1_000, "exceeded", "recover", False)):
        assert decide(RATES, [*steps, probe]) == NoSafeLoad("gone", 1_000)
    # What our side did to a probe says nothing: the search goes on.
    spoiled = [*steps, Step(1_000, "limited", "recover")]
    assert decide(RATES, spoiled) == Try(1_410, "bisect")


def test_clients_of_a_broadcast_stay_and_are_not_probed() -> None:
    steps = [Step(1_000, "kept", "bracket"), Step(2_000, "exceeded", "bracket")]
    following = decide(make_clients(1_000, 1_000, None), steps)
    assert isinstance(following, Try)
    assert following.purpose != "recover"


def test_loads_on_the_way_down_are_tried_again_once_one_is_kept() -> None:
    """The first steps met the overload of the one before: 500/s is carried by a rested server."""
    down = [Step(load, "exceeded", "bracket") for load in (4_000, 500, 62.5)]
    steps = [*down, Step(7.81, "kept", "bracket")]
    while isinstance(following := decide(RATES, steps), Try):
        kept = following.load <= 600
        steps.append(Step(following.load, "kept" if kept else "exceeded", following.purpose))
    assert isinstance(following, SafeLoad)
    assert 575 <= following.load <= 600


def answered_in(ns: int) -> Record:
    times = histogram((ns, 10_000))
    return good_record(
        histograms=Histograms(
            latency=times, service=times, connect=None, first_byte=None, total=None
        )
    )


@pytest.mark.parametrize(
    ("before_ns", "now_ns", "outcome"),
    [
        (1_000_000, 1_200_000, "kept"),
        (1_000_000, 2_000_000, "exceeded"),  # half of its speed
        (80_000, 200_000, "kept"),  # a machine in use
        (1_000_000, 30_000_000, "exceeded"),  # beyond the limit itself
    ],
)
def test_recovered_is_as_fast_as_before(before_ns: int, now_ns: int, outcome: str) -> None:
    judged = judge_recovery(answered_in(now_ns), LIMIT_10MS, answered_in(before_ns))
    assert judged.outcome == outcome


def test_the_result_says_what_it_did_not_recover_from_and_is_read_from_the_store() -> None:
    plan = SearchPlan("rate", LIMIT_10MS, RATES, None)
    taken: list[StepResult] = []
    for load, stage, ns in [
        (1_000, "bracket", 1_000_000),
        (2_000, "bracket", 20_000_000),
        *[(1_000, "recover", 3_000_000)] * PROBES_MOST,
    ]:
        taken.append(take(plan, Try(load, stage), answered_in(ns), taken))  # type: ignore[arg-type]
    text = sentence(plan, taken)
    assert text.startswith(
        "the server does not recover from 2,000 requests/s: at 1,000 requests/s p50 is 3.0"
    )
    assert "1,000 requests/s had kept p99<10ms and errors<1%, not confirmed" in text
    assert exit_code(plan, taken) == 1
    recoveries = flat(search_lines(plan, taken)).split("recover ")[1:]
    assert [each.count("before it was") for each in recoveries[:3]] == [1, 1, 1]
    again = read_steps(plan, [(labels(each), each.record) for each in taken])
    assert sentence(plan, again) == text


def test_a_stored_search_is_read_if_its_steps_are_judged_otherwise_now() -> None:
    plan = SearchPlan("rate", LIMIT_10MS, RATES, None)
    stored = [("bracket", 1_000), ("bracket", 2_000), ("recover", 1_000)]
    rows = [
        ({"load": str(load), "stage": stage}, answered_in(30_000_000)) for stage, load in stored
    ]
    assert [each.judgement.outcome for each in read_steps(plan, rows)] == ["exceeded"] * 3
