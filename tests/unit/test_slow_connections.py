"""Connections that are always slow, distinguished from those with slow answers by chance."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from samples import OK, good_record, histogram, index_of, slots, staged
from trueload.engines.merge import merge_means
from trueload.protocol.plan import Closed
from trueload.record import figures
from trueload.record.schema import Check, Record
from trueload.verdict import CHECKS

MS = 1_000_000
RUNS = 40
Times = list[int]  # the service times of a slot's answers, in ns


def rounded(count: int) -> int:
    """Round a number of answers down as the engine does."""
    shift = max(0, count.bit_length() - 3)
    return count >> shift << shift


def record_of(times: Sequence[Times]) -> Record:
    """The record of slots with these service times."""
    means = Counter(
        (index_of(sum(each) // len(each)), rounded(len(each))) for each in times if each
    )
    values = Counter(value for each in times for value in each)
    spread = slots(
        asked=len(times),
        never_answered=sum(not each for each in times),
        answers_sum=values.total(),
        means=tuple((mean, ok, count) for (mean, ok), count in means.items()),
    )
    found = good_record(slots=spread)
    service = histogram(*values.items())
    return found.model_copy(
        update={
            "histograms": found.histograms.model_copy(update={"service": service}),
            "counts": found.counts.model_copy(update={"ok": values.total(), "issued": OK}),
        }
    )


def judged(times: Sequence[Times]) -> Check:
    return CHECKS["slow-connections"].check(record_of(times))


def closed(window_ns: int, draw: Callable[[], int]) -> Times:
    """The times of a slot in a closed loop."""
    times: Times = []
    while window_ns > 0:
        times.append(draw())
        window_ns -= times[-1]
    return times


def always(ms: float) -> Callable[[], int]:
    return lambda: round(ms * MS)


def slow_slots(count: int, of: int, window_s: float, ms: float = 900) -> list[Times]:
    window_ns = round(window_s * 1_000 * MS)
    slow = [closed(window_ns, always(ms)) for _ in range(count)]
    return slow + [closed(window_ns, always(5)) for _ in range(of - count)]


@pytest.mark.parametrize(
    ("sentence", "times", "expected"),
    [
        ("six of 64", slow_slots(6, 64, 5), "6 of 64 connections took 89"),
        ("six of 64 in a second", slow_slots(6, 64, 1), "6 of 64 connections took 89"),
        ("one of 64", slow_slots(1, 64, 5), "1 of 64 connections took 89"),
        ("half of them", slow_slots(32, 64, 5), "32 of 64 connections"),
        ("not much slower", slow_slots(6, 64, 5, 51), "6 of 64 connections took 5"),
        ("of 10,000", slow_slots(3, 10_000, 0.2, 90), "3 of 10,000 connections took 89"),
    ],
)
def test_connections_that_are_always_slow_are_told(
    sentence: str, times: list[Times], expected: str
) -> None:
    found = judged(times)
    assert found.status == "warn", sentence
    assert found.why.startswith(expected)
    assert found.why.endswith("on average, the median 5.05 ms")


@pytest.mark.parametrize(
    ("sentence", "times"),
    [
        ("all alike", slow_slots(0, 64, 1)),
        ("less than ten medians", slow_slots(6, 64, 5, 49)),
        ("one slow answer among few", [[5 * MS] * 9 + [1_000 * MS]] + [[5 * MS] * 10] * 63),
        ("one answer each, one of them slow", [[1_000 * MS]] + [[5 * MS]] * 63),
        ("one answer each, many slow", [[500 * MS]] * 1_000 + [[5 * MS]] * 4_000),
        ("a slow answer that left no time for more", [[1_000 * MS]] + [[5 * MS] * 200] * 63),
        ("a pause that each tenth met", [[5 * MS, 300 * MS]] * 6 + [[5 * MS] * 2] * 58),
    ],
)  # fmt: skip
def test_slow_answers_are_not_their_connections(sentence: str, times: list[Times]) -> None:
    assert judged(times).status == "pass", sentence


@pytest.mark.parametrize("slow", [0.001, 0.01, 0.1, 0.3])
@pytest.mark.parametrize("answers", [1, 3, 10, 100])
def test_answers_that_are_slow_by_chance_warn_of_no_connection(slow: float, answers: int) -> None:
    rng = random.Random(f"{slow} {answers}")

    def draw() -> int:
        return (1_000 if rng.random() < slow else 5) * MS

    for _ in range(RUNS):
        times = [[draw() for _ in range(answers)] for _ in range(64)]
        assert judged(times).status == "pass"
        assert judged([closed(answers * 20 * MS, draw) for _ in range(64)]).status == "pass"


def test_requests_of_other_costs_that_fall_to_connections_by_chance_warn_of_none() -> None:
    rng = random.Random(3)
    costs = [1 * MS] * 70 + [20 * MS] * 25 + [2_000 * MS] * 5
    for _ in range(RUNS):
        times = [[rng.choice(costs) for _ in range(8)] for _ in range(64)]
        assert judged(times).status == "pass"


def test_where_it_says_nothing() -> None:
    record = record_of([[MS] * 9] * 64)
    stages = [{"ns": OK, "from": 1, "to": 64}]
    load = Closed.model_validate({"active": stages})
    taking_part = record.plan.window.model_copy(update={"load": load})
    changes: list[tuple[str, dict[str, Any]]] = [
        ("an older record", {"slots": slots(means=())}),
        ("no measurement", {"slots": None}),
        ("stages", {"plan": record.plan.model_copy(update={"window": taking_part})}),
    ]
    for sentence, changed in changes:
        found = CHECKS["slow-connections"].check(record.model_copy(update=changed))
        assert found.status == "n/a", sentence
    assert judged([[MS]]).status == "n/a"
    at_a_rate = record.plan.model_copy(update={"window": staged((OK, OK))})
    open_loop = record.model_copy(update={"plan": at_a_rate})
    assert CHECKS["slow-connections"].check(open_loop).status == "pass"


def test_percentiles_over_connections_count_those_without_an_answer_as_slower() -> None:
    record = record_of([*slow_slots(6, 63, 5), []])
    found = figures.with_figures(record).connection_service_ns
    assert (found.count, found.slower) == (63, 1)
    assert found.p50 == pytest.approx(5 * MS, rel=0.02)
    assert found.p95 == pytest.approx(900 * MS, rel=0.02)
    assert found.at_least == ("p99", "p999")


def test_slots_of_several_engines_are_added_up() -> None:
    parts = [((640, 8, 2), (900, 1, 1)), (), ((640, 8, 1), (640, 10, 1))]
    assert merge_means(parts) == ((640, 8, 3), (640, 10, 1), (900, 1, 1))
