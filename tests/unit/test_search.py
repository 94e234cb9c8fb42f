"""The search for the largest safe load, against servers that are functions of the load."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import OK, counts, good_record
from search_samples import FULL, LIMIT_10MS, READ_LATE, SERVED_SLOWLY, SLOW, failing, nobody
from trueload.protocol.engine_options import EngineOptions
from trueload.protocol.plan import Duration
from trueload.record.certainty import Ruling
from trueload.record.schema import Bounds as RecordBounds
from trueload.record.schema import Record, Trouble
from trueload.record.thresholds import LIMIT, parse_condition
from trueload.request.traffic import Traffic
from trueload.search.decide import (
    PRECISION,
    STEPS_DOWN,
    Bounds,
    NoSafeLoad,
    Outcome,
    Purpose,
    SafeLoad,
    Step,
    Try,
    decide,
)
from trueload.search.execute import SearchPlan, StepResult, make_bounds, spec_at
from trueload.search.execute import search as run_steps
from trueload.search.judge import judge_step, step_ns
from trueload.search.result import (
    exit_code,
    labels,
    plan_json,
    read_plan,
    read_steps,
    search_json,
    search_lines,
    sentence,
)
from trueload.trial.spec import TrialSpec, open_load

RATES = Bounds(start=1_000, floor=1, ceiling=10_000_000)
CONNECTIONS = Bounds(start=8, floor=1, ceiling=100_000, whole=True)

Server = Callable[[float, str], Outcome]


def up_to(largest: float, generator: float = float("inf")) -> Server:
    """A server that meets the limit up to a load; the generator may offer less."""

    def server(load: float, purpose: str) -> Outcome:
        if load > generator:
            return "limited"
        return "kept" if load <= largest else "exceeded"

    return server


def search(bounds: Bounds, server: Server) -> tuple[SafeLoad | NoSafeLoad, list[Step]]:
    steps: list[Step] = []
    while True:
        following = decide(bounds, steps)
        if not isinstance(following, Try):
            return following, steps
        assert bounds.floor <= following.load <= bounds.ceiling
        steps.append(
            Step(following.load, server(following.load, following.purpose), following.purpose)
        )
        assert len(steps) < 80, "a search ends"


@pytest.mark.parametrize("largest", [1, 1.5, 7, 124, 999, 1_000, 1_001, 12_345, 3e5, 9_999_999])
def test_the_largest_rate_is_found_to_three_percent(largest: float) -> None:
    done, steps = search(RATES, up_to(largest))
    assert isinstance(done, SafeLoad)
    assert done.above is not None
    assert done.load <= largest < done.above
    assert done.above <= done.load * (1 + PRECISION) * 1.001
    assert done.limited_by == "server"
    assert steps[-1] == Step(done.load, "kept", "confirm")
    assert [step.purpose for step in steps].count("confirm") == 1


@pytest.mark.parametrize("largest", [1, 2, 3, 8, 9, 33, 100, 1_000])
def test_the_largest_number_of_connections_is_found(largest: int) -> None:
    done, steps = search(CONNECTIONS, up_to(largest))
    assert isinstance(done, SafeLoad)
    assert done.load <= largest
    assert done.load >= largest * (1 - PRECISION) - 1e-9
    assert all(step.load == int(step.load) for step in steps)


def test_what_nothing_keeps_to_ends_at_the_lowest_load() -> None:
    done, steps = search(RATES, up_to(0))
    assert done == NoSafeLoad("none", 1)
    assert [step.load for step in steps] == [1_000, 125, 15.6, 1.95, 1]


def test_a_server_without_an_end_is_confirmed_at_the_ceiling_as_a_lower_bound() -> None:
    done, _ = search(CONNECTIONS, up_to(float("inf")))
    assert done == SafeLoad(100_000, None, "ceiling")


def test_what_the_generator_cannot_offer_is_a_lower_bound_and_no_verdict_on_the_server() -> None:
    done, steps = search(RATES, up_to(largest=float("inf"), generator=20_000))
    assert isinstance(done, SafeLoad)
    assert done.limited_by == "generator"
    assert done.load <= 20_000
    assert done.load >= 20_000 * (1 - PRECISION)
    limited = [step.load for step in steps if step.outcome == "limited"]
    assert sorted(limited[::2]) == sorted(limited[1::2]), "each was tried twice"


def test_what_is_too_little_of_ends_a_search_with_a_lower_bound_and_is_not_tried_twice() -> None:
    def server(load: float, purpose: str) -> Outcome:
        return "short" if load > 300 else "kept"

    done, steps = search(CONNECTIONS, server)
    assert isinstance(done, SafeLoad)
    assert done.limited_by == "shortage"
    assert done.above is not None
    assert done.load <= 300 < done.above <= done.load * (1 + PRECISION)
    loads = [step.load for step in steps if step.purpose != "confirm"]
    assert len(loads) == len(set(loads))


@pytest.mark.parametrize(
    ("beyond", "claimed"), [("exceeded", True), ("limited", False), ("short", False)]
)
def test_a_largest_load_is_claimed_only_where_the_server_did_not_keep_to_a_larger_one(
    beyond: Outcome, claimed: bool
) -> None:
    steps: list[Step] = []
    confirming: list[Try] = []
    while isinstance(following := decide(RATES, steps), Try):
        confirming += [following] if following.purpose == "confirm" else []
        outcome: Outcome = "kept" if following.load <= 5_000 else beyond
        steps.append(Step(following.load, outcome, following.purpose))
    assert [each.largest for each in confirming] == [claimed]


def test_a_generator_that_can_offer_nothing_is_told_from_a_server_that_keeps_nothing() -> None:
    done, _ = search(RATES, up_to(largest=float("inf"), generator=0))
    assert done == NoSafeLoad("generator", 1)


def test_a_step_that_was_spoiled_once_is_as_if_it_had_not_been() -> None:
    spoiled: set[float] = set()

    def server(load: float, purpose: str) -> Outcome:
        if load not in spoiled:
            spoiled.add(load)
            return "limited"
        return up_to(5_000)(load, purpose)

    done, steps = search(RATES, server)
    calm, calm_steps = search(RATES, up_to(5_000))
    assert done == calm
    assert [step for step in steps if step.outcome != "limited"] == calm_steps


@pytest.mark.parametrize("restart", range(10))
def test_a_server_that_restarts_during_a_step_is_found_to_carry_what_it_carries(
    restart: int,
) -> None:
    steps: list[Step] = []
    while isinstance(following := decide(RATES, steps), Try):
        away = len(steps) == restart
        kept = following.load <= 5_000 and not away
        outcome: Outcome = "kept" if kept else "exceeded"
        steps.append(Step(following.load, outcome, following.purpose, away=away))
    assert isinstance(following, SafeLoad)
    assert 5_000 / 1.031 <= following.load <= 5_000
    again = [step.load for step in steps[restart : restart + 2]]
    assert len(set(again)) == 1, "the same load, once more"


def test_a_load_that_brings_the_server_down_each_time_is_too_much() -> None:
    steps: list[Step] = []
    while isinstance(following := decide(RATES, steps), Try):
        down = following.load > 5_000
        steps.append(
            Step(following.load, "exceeded" if down else "kept", following.purpose, away=down)
        )
    assert isinstance(following, SafeLoad)
    assert 5_000 / 1.031 <= following.load <= 5_000
    assert following.limited_by == "server"


def test_a_step_with_refused_connections_that_were_served_before_saw_the_server_away() -> None:
    record = good_record()
    judgement = judge_step(record, LIMIT_10MS, "bracket")
    outage = record.connections.model_copy(update={"outages": 2})
    taken = StepResult(Try(1, "bracket"), record, judgement)
    assert not taken.step.away
    assert replace(taken, record=record.model_copy(update={"connections": outage})).step.away


def test_a_load_that_is_not_confirmed_steps_down() -> None:
    def server(load: float, purpose: str) -> Outcome:
        return up_to(4_500 if purpose == "confirm" else 5_000)(load, purpose)

    done, steps = search(RATES, server)
    assert isinstance(done, SafeLoad)
    confirming = [step for step in steps if step.purpose == "confirm"]
    assert [step.outcome for step in confirming] == ["exceeded", "exceeded", "kept"]
    assert done.load == confirming[-1].load
    assert done.load <= 4_500
    assert done.above == confirming[-2].load


def test_confirming_ends() -> None:
    def server(load: float, purpose: str) -> Outcome:
        return "exceeded" if purpose == "confirm" else up_to(5_000)(load, purpose)

    done, steps = search(RATES, server)
    assert isinstance(done, NoSafeLoad)
    assert done.why == "unconfirmed"
    assert [step.purpose for step in steps].count("confirm") == len(STEPS_DOWN)
    done, steps = search(CONNECTIONS, lambda load, purpose: server(load * 5_000, purpose))
    assert done == NoSafeLoad("unconfirmed", 1)
    assert [step.purpose for step in steps].count("confirm") == 1


# When a server that carries 5,000 disappears for good, and the lowest load without an answer.
GONE = [
    ("while the bracket grows", lambda load, purpose: load >= 4_000, 4_000),
    ("in bisection", lambda load, purpose: purpose == "bisect", 5_660),
    ("in the confirming run", lambda load, purpose: purpose == "confirm", 4_970),
]


@pytest.mark.parametrize(("when", "is_gone", "lowest"), GONE, ids=[when for when, *_ in GONE])
def test_a_server_that_is_gone_ends_the_search_at_once(
    when: str, is_gone: Callable[[float, str], bool], lowest: float
) -> None:
    def server(load: float, purpose: str) -> Outcome:
        return "gone" if is_gone(load, purpose) else up_to(5_000)(load, purpose)

    done, steps = search(RATES, server)
    assert done == NoSafeLoad("gone", lowest), when
    assert [step.outcome for step in steps].count("gone") == 1, when
    assert steps[-1].outcome == "gone", when


def test_where_nobody_has_ever_answered_one_step_more_makes_sure() -> None:
    done, steps = search(RATES, lambda load, purpose: "gone")
    assert done == NoSafeLoad("gone", 125)
    assert [step.load for step in steps] == [1_000, 125]


def test_confirming_runs_that_our_side_spoiled_are_no_verdict_on_the_server() -> None:
    def server(load: float, purpose: str) -> Outcome:
        return "limited" if purpose == "confirm" else up_to(5_000)(load, purpose)

    done, _ = search(RATES, server)
    assert isinstance(done, NoSafeLoad)
    assert done.why == "generator"


@settings(max_examples=300)
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

    def server(load: float, purpose: str) -> Outcome:
        if chance.random() < noise / 3:
            return "limited"
        return up_to(largest * (1 + chance.uniform(-noise, noise)))(load, purpose)

    bounds = Bounds(start=start, floor=1, ceiling=10_000_000, whole=whole)
    done, steps = search(bounds, server)
    if isinstance(done, SafeLoad):
        assert steps[-1] == Step(done.load, "kept", "confirm")
        assert done.above is None or done.above > done.load


@pytest.mark.parametrize(
    ("record", "purpose", "outcome", "why"),
    [
        (good_record(), "bracket", "kept", ""),
        (good_record(histograms=SLOW), "bracket", "exceeded", "p99 is 20.0 ms"),
        (
            good_record(counts=counts(ok=9_900, failed={"reset": 100})),
            "bisect",
            "exceeded",
            "errors",
        ),
        (failing("send-lag", histograms=SLOW), "bisect", "limited", "send-lag"),
        (failing("generator-limit", histograms=SLOW), "bisect", "limited", "generator-limit"),
        (failing("hiccup", histograms=SLOW), "bracket", "limited", "hiccup"),
        (failing("noise", histograms=SLOW), "bracket", "limited", "noise"),
        # We were late, but it also took too long from the actual send.
        (failing("send-lag", histograms=SERVED_SLOWLY), "bisect", "exceeded", "p99"),
        (failing("send-lag", "hiccup", histograms=SERVED_SLOWLY), "bisect", "limited", ""),
        (failing("client-share", histograms=SLOW), "bisect", "limited", "client-share"),
        (failing("client-share", histograms=SERVED_SLOWLY), "bisect", "exceeded", "p99"),
        # 20 ms until we had read the answer, but less than 10 ms until the kernel had it.
        (failing("client-share", histograms=READ_LATE), "bisect", "limited", "client-share"),
        # Our lag only adds to the time from the schedule, so a limit that is met all the same is
        # met.
        (failing("send-lag"), "bisect", "kept", "send-lag"),
        (failing("send-lag"), "confirm", "limited", "send-lag"),
        # Requests waited for free connections: the server's doing, unless the generator was
        # saturated.
        (failing("rate-reached"), "bracket", "exceeded", "rate-reached"),
        (failing("rate-reached", histograms=SLOW), "bracket", "exceeded", "p99"),
        (
            failing("rate-reached", generator=FULL, server=None),
            "bracket",
            "limited",
            "rate-reached",
        ),
        (failing("unsolicited"), "bracket", "exceeded", "unsolicited"),
        # Its p99 is within the limit, but would not stay there.
        (failing("backlog"), "bracket", "exceeded", "backlog"),
        (good_record(trouble=Trouble(kind="died", what="it died")), "bisect", "limited", "it died"),
        (good_record(partial=True, histograms=SLOW), "bisect", "limited", "cut short"),
        (
            nobody("connect.refused"),
            "confirm",
            "gone",
            "no connection was established: c",
        ),
        (nobody("connect.unreachable"), "bracket", "gone", "no connection was established"),
        # It may be there but overloaded or full.
        (nobody("connect.timeout"), "bracket", "exceeded", ""),
        (nobody("connect.refused", "reset"), "bracket", "exceeded", ""),
        (nobody("connect.refused", established=1), "bracket", "exceeded", ""),
    ],
)
def test_a_step_is_the_servers_doing_or_ours(
    record: Record, purpose: Purpose, outcome: Outcome, why: str
) -> None:
    judged = judge_step(record, LIMIT_10MS, purpose)
    assert (judged.outcome, judged.why[: len(why)]) == (outcome, why)


@pytest.mark.parametrize(
    ("limit", "per_s", "purpose", "seconds"),
    [
        ("p99<10ms", 100_000, "bracket", 2),
        ("p99<10ms", 300, "bracket", 10 / 3),
        ("p99<10ms", 10, "bracket", 5),
        ("p99<10ms", 100, "bisect", 10),
        ("p99<10ms", 100, "confirm", 20),
        ("p99<10ms", 1, "confirm", 40),
        ("p99.9<10ms", 1_000, "bisect", 10),
        ("p50<1s and p99<10ms", 100, "bisect", 10),
        ("errors<0.1%", 1_000, "bisect", 10),
        ("max<1s", None, "bisect", 2),
    ],
)
def test_a_step_is_long_enough_for_its_percentile_and_no_longer_than_it_may_be(
    limit: str, per_s: float | None, purpose: Purpose, seconds: float
) -> None:
    found_ns = step_ns(parse_condition(limit, LIMIT), per_s, purpose)
    assert found_ns / 1e9 == pytest.approx(seconds, rel=0.01)


def records_up_to(largest: float) -> Callable[[Try, int], Record]:
    return lambda following, _: good_record() if following.load <= largest else SLOW_RECORD


SLOW_RECORD = good_record(histograms=SLOW)


def test_a_search_is_read_back_from_what_is_stored_of_it() -> None:
    plan = SearchPlan("rate", LIMIT_10MS, make_bounds("rate", None), None)
    taken = list(run_steps(plan, records_up_to(5_000)))
    stored = json.loads(json.dumps(plan_json(plan)))
    read = read_plan(stored)
    assert read == plan
    again = read_steps(read, [(labels(each), each.record) for each in taken])
    assert again == taken
    assert search_lines(read, again) == search_lines(plan, taken)
    found = search_json(plan, taken, "an-id", interrupted=False)
    assert found["verdict"] == "valid"
    assert found["result"]["outcome"] == "found"
    assert found["result"]["interval"]["low"] <= 5_000 < found["result"]["interval"]["high"]
    assert [step["counts"]["ok"] for step in found["steps"]] == [OK] * len(taken)
    assert exit_code(plan, taken) == 0
    assert exit_code(plan, taken, rulings=[Ruling(plan.limit, "kept")]) == 0
    assert exit_code(plan, taken, rulings=[Ruling(plan.limit, "undecided")]) == 4
    assert exit_code(plan, taken, interrupted=True) == 130


@pytest.mark.parametrize(
    ("record", "code", "sentence"),
    [
        (
            SLOW_RECORD,
            1,
            "no load keeps to p99<10ms and errors<1%; the lowest tried was 1 request/s",
        ),
        (failing("send-lag", histograms=SLOW), 4, "the generator sent late at every load"),
        (failing("noise", histograms=SLOW), 4, "other processes held it up at every load"),
        (failing("hiccup", histograms=SLOW), 4, "the generator was paused at every load"),
        (
            failing("generator-limit", histograms=SLOW),
            4,
            "the generator was the limit at every load",
        ),
        (
            good_record(trouble=Trouble(kind="died", what="the engine died")),
            4,
            "the generator failed at every load",
        ),
    ],
)
def test_what_is_not_found_is_said(record: Record, code: int, sentence: str) -> None:
    plan = SearchPlan("rate", LIMIT_10MS, make_bounds("rate", None), None)
    taken = list(run_steps(plan, lambda following, ns: record))
    assert exit_code(plan, taken) == code
    assert sentence in joined(search_lines(plan, taken))
    assert search_json(plan, taken, None, interrupted=False)["result"]["load"] is None


SUSPECT = good_record().model_copy(update={"verdict": "suspect"})
# A fault of the server that makes the record invalid.
UNASKED = failing("unsolicited", histograms=SLOW)
# A fault that only adds to response times, so that the limit is kept for certain.
DISTURBED = failing("noise").model_copy(
    update={"bounds": RecordBounds(latency="at_most", throughput="at_least", errors="at_most")}
)
UNKNOWN = RecordBounds(latency="unknown")


@pytest.mark.parametrize(
    ("searching", "confirming", "code", "verdict"),
    [
        (good_record(), good_record(), 0, "valid"),
        (failing("send-lag"), SUSPECT, 0, "suspect"),
        (SUSPECT, SLOW_RECORD, 1, SLOW_RECORD.verdict),
        (good_record(), UNASKED, 4, "invalid"),
        (good_record(), failing("noise"), 4, "invalid"),
        (good_record(), DISTURBED, 0, "invalid"),
        (good_record(), DISTURBED.model_copy(update={"bounds": UNKNOWN}), 4, "invalid"),
        (SLOW_RECORD, None, 1, SLOW_RECORD.verdict),
        (UNASKED, None, 4, "invalid"),
    ],
)
def test_exit_code_and_verdict_are_those_of_the_step_that_decides(
    searching: Record, confirming: Record | None, code: int, verdict: str
) -> None:
    plan = SearchPlan("rate", LIMIT_10MS, make_bounds("rate", None), None)

    def measure(following: Try, ns: int) -> Record:
        if following.purpose == "confirm":
            assert confirming is not None
            return confirming
        return searching if following.load <= 5_000 else SLOW_RECORD

    taken = list(run_steps(plan, measure))
    assert exit_code(plan, taken) == code
    assert search_json(plan, taken, None, interrupted=False)["verdict"] == verdict
    assert f"{'verdict':<13}{verdict}" in search_lines(plan, taken)
    strict = exit_code(plan, taken, strict=True)
    assert strict == (4 if verdict != "valid" else code)


def joined(lines: list[str]) -> str:
    """The lines as one, as they were before they were wrapped."""
    return " ".join(" ".join(lines).split())


def test_a_lower_bound_that_nothing_confirmed_is_said() -> None:
    plan = SearchPlan("rate", LIMIT_10MS, make_bounds("rate", None), None)
    spoiled = itertools.cycle([failing("send-lag"), failing("noise")])

    def measure(following: Try, ns: int) -> Record:
        if following.purpose == "confirm":
            return next(spoiled)
        return records_up_to(5_000)(following, ns)

    taken = list(run_steps(plan, measure))
    assert exit_code(plan, taken) == 4
    why = "the generator sent late or other processes held it up in each confirming run"
    lines = search_lines(plan, taken)
    assert f"a lower bound that is not confirmed: {why}" in joined(lines)
    at = lines.index("verdict      invalid")
    assert lines[at - 1] == ""
    assert lines[at + 1].startswith("  fail noise: ")
    assert search_json(plan, taken, None, interrupted=False)["verdict"] == "invalid"


def test_what_spoiled_the_next_larger_load_is_said() -> None:
    plan = SearchPlan("rate", LIMIT_10MS, make_bounds("rate", None), None)
    noisy = failing("noise", histograms=SLOW)

    def measure(following: Try, ns: int) -> Record:
        return records_up_to(5_000)(following, ns) if following.load <= 5_000 else noisy

    taken = list(run_steps(plan, measure))
    shown = joined(search_lines(plan, taken))
    assert "a lower bound, because other processes held it up at 5," in shown
    assert exit_code(plan, taken) == 0


def test_a_step_is_the_same_specification_at_another_load() -> None:
    spec = TrialSpec(url="u", addresses=(), traffic=Traffic(), engine=EngineOptions(threads=4))
    plan = SearchPlan("rate", LIMIT_10MS, make_bounds("rate", None), None)
    one = spec_at(plan, spec, Try(500, "bisect"), 10**9)
    assert one.load.pacing == open_load(500, Duration(ns=10**9))
    assert one.load.stop == Duration(ns=10**9)
    assert (one.claim.percentile, one.claim.maximum) == ("p99", False)
    poisson = replace(
        spec, load=replace(spec.load, pacing=open_load(1, spec.load.stop, "poisson", 7))
    )
    assert spec_at(plan, poisson, Try(500, "confirm"), 10**9).load.pacing == open_load(
        500, Duration(ns=10**9), "poisson", 7
    )
    plan = replace(plan, axis="connections")
    one = spec_at(plan, spec, Try(2, "confirm", largest=True), 10**9)
    assert (one.load.connections, one.engine.threads, one.claim.maximum) == (2, 2, True)


def test_a_search_that_was_ended_says_what_kept_the_limit_until_then() -> None:
    plan = SearchPlan("rate", LIMIT_10MS, make_bounds("rate", None), None)
    taken = list(run_steps(plan, records_up_to(5_000)))
    begun = taken[:3]
    best = max(each.next.load for each in begun if each.judgement.outcome == "kept")
    kept = f"the largest that kept p99<10ms and errors<1% until then was {best:,.0f} requests/s"
    assert sentence(plan, begun) == f"stopped before a load was confirmed; {kept}"
    assert sentence(plan, begun, by_user=True).startswith("stopped by you before a load was")
    none = list(run_steps(plan, lambda following, ns: SLOW_RECORD))[:1]
    without = "none had kept p99<10ms and errors<1% until then"
    assert sentence(plan, none) == f"stopped before a load was confirmed; {without}"
    assert sentence(plan, taken, by_user=True) == sentence(plan, taken), "it had its result"
