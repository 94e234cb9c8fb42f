"""The number of clients a broadcast carries: the next step, its judgement and its presentation."""

from __future__ import annotations

import json
from typing import Any

import pytest
from broadcast_samples import DELIVERED, broadcast
from samples import OK, counts, histogram
from trueload.protocol.plan import Histograms
from trueload.record.schema import Record
from trueload.record.thresholds import CLIENTS_LIMIT, LIMIT, parse_condition
from trueload.request.exchange import WsBroadcast
from trueload.request.traffic import Traffic
from trueload.request.values import Request
from trueload.search.broadcast_rows import (
    clients_header,
    clients_lines,
    is_published,
    shootout_line,
)
from trueload.search.decide import NoSafeLoad, Outcome, SafeLoad, Step, Try, decide
from trueload.search.execute import SearchPlan, make_clients, outcome, spec_at, take
from trueload.search.judge import confirming_messages, judge_broadcast
from trueload.search.result import exit_code, labels, plan_json, read_plan, read_steps, sentence
from trueload.stats import decode_histogram, summarise
from trueload.trial.spec import TrialSpec

LIMIT_500 = parse_condition("receipt_p95<500ms", CLIENTS_LIMIT)
PLAN = SearchPlan("clients", LIMIT_500, make_clients(1_000, 1_000, None), None, samples=100)
MS = 1_000_000

KEPT: Outcome = "kept"
OVER: Outcome = "exceeded"


@pytest.mark.parametrize(
    ("what", "initial", "steps_max", "taken", "following"),
    [
        ("the first step", 1_000, None, [], Try(1_000, "bracket")),
        ("a smaller first step", 250, None, [], Try(250, "bracket")),
        ("a step more", 250, None, [(250, KEPT)], Try(1_250, "bracket")),
        ("and another", 1_000, None, [(1_000, KEPT), (2_000, KEPT)], Try(3_000, "bracket")),
        ("the last one allowed is confirmed", 1_000, 2, [(1_000, KEPT), (2_000, KEPT)],
         Try(2_000, "confirm")),
        ("between the last two", 1_000, None, [(1_000, KEPT), (2_000, OVER)],
         Try(1_414, "bisect")),
        ("a first step that is too large", 1_000, None, [(1_000, OVER)], Try(125, "bracket")),
        ("not even one client", 1, None, [(1, OVER)], NoSafeLoad("none", 1)),
    ],
)  # fmt: skip
def test_clients_join_by_steps_and_are_bisected_where_the_limit_was_crossed(
    what: str,
    initial: int,
    steps_max: int | None,
    taken: list[tuple[float, Outcome]],
    following: object,
) -> None:
    bounds = make_clients(initial, 1_000, steps_max)
    steps = [Step(load, result, "bracket") for load, result in taken]
    assert decide(bounds, steps) == following, what


@pytest.mark.parametrize("largest", [1, 7, 124, 999, 1_000, 1_001, 4_321, 15_999])
def test_the_largest_number_of_clients_is_found_to_two_percent(largest: int) -> None:
    steps: list[Step] = []
    while isinstance(following := decide(PLAN.bounds, steps), Try):
        kept = following.load <= largest
        steps.append(Step(following.load, KEPT if kept else OVER, following.purpose))
        assert len(steps) < 60
    assert isinstance(following, SafeLoad)
    assert following.above is not None
    assert following.load <= largest < following.above
    assert following.above <= max(following.load * 1.02, following.load + 1)


@pytest.mark.parametrize(
    ("limit", "samples", "per_s", "messages"),
    [
        ("p95<500ms", 100, 500.0, 1_000),
        ("p95<500ms", 100, 10.0, 400),
        ("p95<500ms", 100, 1.0, 200),
        ("p95<500ms", 100, None, 200),
        ("p95<500ms", 20, 500.0, 400),
        ("p99<500ms", 100, 500.0, 2_000),
        ("max<500ms", 40, 500.0, 400),
    ],
)
def test_a_confirming_step_has_the_messages_of_a_narrow_interval_in_bounded_time(
    limit: str, samples: int, per_s: float | None, messages: int
) -> None:
    assert confirming_messages(parse_condition(limit, LIMIT), samples, per_s) == messages


def test_only_a_confirming_step_claims_the_limits_percentile() -> None:
    opening = Request(host="h", path="/ws")
    spec = TrialSpec(
        url="ws://h/ws",
        addresses=("127.0.0.1:1",),
        traffic=Traffic(exchange=WsBroadcast(opening=opening, dialect="json", padding=200)),
    )
    for stage, count, percentile in (("bracket", 100, None), ("confirm", 400, "p95")):
        one = spec_at(PLAN, spec, Try(2_000, stage), count)  # type: ignore[arg-type]
        assert (one.load.connections, one.load.stop.model_dump()["count"]) == (2_000, count)
        assert one.claim.percentile == percentile


def received(p95_ms: float, **changes: Any) -> Record:
    """A broadcast whose receipts all took this long."""
    record = broadcast(**changes)
    latency = histogram((int(p95_ms * MS), OK))
    histograms = Histograms(
        latency=latency, service=latency, connect=None, first_byte=latency, total=None
    )
    return record.model_copy(
        update={"histograms": histograms, "latency_ns": summarise(decode_histogram(latency))}
    )


def test_what_was_lost_to_receivers_says_nothing_of_the_receipts() -> None:
    lossy = received(20, delivered=DELIVERED - 1, lost=1)
    failed = lossy.model_copy(
        update={
            "counts": counts(failed={"lost": 600}, issued=OK + 600, scheduled=OK + 600, statuses={})
        }
    )
    taken = take(PLAN, Try(1_000, "bracket"), failed)
    assert (taken.judgement.outcome, taken.judgement.why) == ("kept", "")
    assert taken.judgement.values[0].value == pytest.approx(20 * MS, rel=0.01)
    other = failed.model_copy(
        update={"counts": failed.counts.model_copy(update={"failed": {"timeout.total": 600}})}
    )
    assert take(PLAN, Try(1_000, "bracket"), other).judgement.outcome == "exceeded"


@pytest.mark.parametrize(("stops", "result"), [(True, NoSafeLoad("lost", 1_000)), (False, None)])
def test_a_loss_ends_the_run_only_if_asked(stops: bool, result: NoSafeLoad | None) -> None:
    plan = SearchPlan("clients", LIMIT_500, PLAN.bounds, None, samples=100, stop_on_loss=stops)
    lossy = take(plan, Try(1_000, "bracket"), received(20, delivered=DELIVERED - 1, lost=1))
    assert outcome(plan, [lossy]) == result
    if stops:
        assert exit_code(plan, [lossy]) == 4
        assert "--stop-on-loss" in sentence(plan, [lossy])


def test_a_broadcast_is_read_back_from_what_is_stored_of_it() -> None:
    taken = [
        take(PLAN, Try(1_000, "bracket"), received(100)),
        take(PLAN, Try(2_000, "bracket"), received(600)),
    ]
    stored = json.loads(json.dumps(plan_json(PLAN)))
    assert read_plan(stored) == PLAN
    rows = [
        (labels(each), Record.model_validate_json(each.record.model_dump_json(by_alias=True)))
        for each in taken
    ]
    assert read_steps(PLAN, rows) == taken


@pytest.mark.parametrize(
    ("clients", "receipt_ms", "line"),
    [
        (1_000, 14, "clients:  1000    95per-rtt:  14ms    min-rtt:  14ms    median-rtt:  14ms"
                    "    max-rtt:  14ms"),
        (20_000, 1_024.1, "clients: 20000    95per-rtt: 1024ms    min-rtt: 1024ms"
                          "    median-rtt: 1024ms    max-rtt: 1024ms"),
        (5, 0.4, "clients:     5    95per-rtt:   0ms    min-rtt:   0ms    median-rtt:   0ms"
                 "    max-rtt:   0ms"),
    ],
)  # fmt: skip
def test_the_published_line_is_as_the_original_prints_it(
    clients: int, receipt_ms: float, line: str
) -> None:
    assert shootout_line(take(PLAN, Try(clients, "bracket"), received(receipt_ms))) == line


@pytest.mark.parametrize(
    ("stage", "receipt_ms", "shown"),
    [("bracket", 100, True), ("bracket", 600, False), ("bisect", 100, False),
     ("confirm", 100, False)],
)  # fmt: skip
def test_the_original_shows_neither_the_step_that_crossed_the_limit_nor_what_follows(
    stage: Any, receipt_ms: float, shown: bool
) -> None:
    assert is_published(take(PLAN, Try(1_000, stage), received(receipt_ms))) is shown


def test_rows_stand_under_their_header() -> None:
    line = clients_lines(take(PLAN, Try(1_000, "bracket"), received(100)))[0]
    header = clients_header().splitlines()[-1]
    assert line.endswith("bracket, kept")
    for name, cell in (("clients", "1,000"), ("receipt", "100 ms"), ("lost", "0")):
        at = header.index(name) + len(name)
        assert line[:at].endswith(cell), name


def unsent(established: int) -> Record:
    """A step of 100 clients in which no message could be sent."""
    record = broadcast(delivered=0)
    none = {"ok": 0, "issued": 0, "scheduled": 100, "unsent": 100, "failed": {}}
    slots = {"requested": 100, "established": established}
    return record.model_copy(
        update={
            "counts": record.counts.model_copy(update=none),
            "connections": record.connections.model_copy(update=slots),
        }
    )


@pytest.mark.parametrize(
    ("established", "outcome"), [(100, "gone"), (99, "exceeded"), (0, "exceeded")]
)
def test_a_server_whose_clients_are_all_lost_is_gone_and_one_that_takes_no_more_is_not(
    established: int, outcome: str
) -> None:
    judged = judge_broadcast(unsent(established), parse_condition("p95<500ms", LIMIT), "confirm")
    assert judged.outcome == outcome
    assert ("no message could be sent" in judged.why) == (outcome == "gone")
