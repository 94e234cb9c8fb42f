"""The check `delayed-ack`: which modes of the latency distribution it reports."""

from __future__ import annotations

import random
from typing import Any

import pytest
from samples import check_of, good_record, histogram, plan, sparse_index
from trueload.record.accounts.targets import TargetRecord
from trueload.record.outcomes import Outcomes
from trueload.record.schema import Check, Status
from trueload.stats import Distribution, decode_histogram
from trueload.verdict.delayed_ack import delayed_mode

MS = 1_000_000
Times = tuple[tuple[int, int], ...]


def spread(count: int, from_ms: float, to_ms: float) -> Times:
    """``count`` times, evenly spaced."""
    step = (to_ms - from_ms) / count
    return tuple((int((from_ms + nth * step) * MS), 1) for nth in range(count))


def tail(count: int, median_ms: float, sigma: float) -> Times:
    """Log-normal times, like those of most servers, which are slow now and then."""
    drawn = random.Random(1)
    return tuple((int(median_ms * MS * drawn.lognormvariate(0, sigma)), 1) for _ in range(count))


QUICK: Times = spread(980, 0.1, 0.5)

CASES = [
    ("one mode", QUICK, None),
    ("a timer of a quick clock", (*QUICK, *spread(20, 40.1, 41.2)), 20),
    ("a timer in jiffies of 4 ms, rounded up", (*QUICK, *spread(20, 40, 48.1)), 20),
    ("the long timer", (*QUICK, *spread(20, 200, 206)), 20),
    ("answers that take 8 ms, and 40 ms more", (*spread(980, 7, 9), *spread(20, 47, 51.9)), 20),
    ("both timers, of which more wait for one",
     (*QUICK, *spread(10, 40, 44), *spread(30, 200, 206)), 30),
    ("a mode at 51 ms is another", (*QUICK, *spread(20, 51, 53)), None),
    ("a mode at 39 ms, too", (*QUICK, *spread(20, 38, 39.9)), None),
    ("every answer takes 40 ms: it is the server's time", spread(1000, 40, 42), None),
    ("most do", (*spread(400, 0.1, 0.5), *spread(600, 40, 42)), None),
    ("a broad mode", (*QUICK, *spread(100, 30, 60)), None),
    ("a tail that passes 40 ms", tail(20_000, 8, 0.8), None),
    ("a tail that passes 200 ms", tail(20_000, 40, 0.8), None),
    ("answers of 15 ms are not far from it", (*spread(900, 14, 16), *spread(100, 40, 44)), None),
    ("nine are chance", (*QUICK, *spread(9, 40, 44)), None),
    ("nothing", (), None),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "times", "count"), CASES)
def test_a_mode_at_a_timer_is_found_where_it_stands_apart(
    sentence: str, times: Times, count: int | None
) -> None:
    mode = delayed_mode(decode_histogram(histogram(*added(times)) if times else None))
    assert (mode and mode.count) == count, sentence


def added(times: Times) -> Times:
    """Add up the counts of equal times."""
    counts: dict[int, int] = {}
    for value, count in times:
        counts[value] = counts.get(value, 0) + count
    return tuple(counts.items())


def check(service: Times, first_byte: Times, pipeline: int = 1, **changes: Any) -> Check:
    """The check of a record with these times."""
    good = good_record()
    encoded = {"service": histogram(*added(service)), "first_byte": histogram(*added(first_byte))}
    histograms = good.histograms.model_copy(update=encoded)
    changed = good.plan.model_copy(update={"generate": plan(pipeline=pipeline)})
    record = good_record(**{"histograms": histograms, "plan": changed, **changes})
    return check_of(record, "delayed-ack")


DELAYED: Times = (*QUICK, *spread(20, 40, 44))
AT_ONCE: Times = spread(1000, 0.1, 0.4)


@pytest.mark.parametrize(
    ("sentence", "service", "first_byte", "pipeline", "status", "why"),
    [
        ("its rest is late", DELAYED, AT_ONCE, 1, "warn", "20 answers (2 %) took just over 40"),
        ("all of it is", DELAYED, DELAYED, 1, "pass", "so did their first bytes"),
        ("all of it, but others are under way", DELAYED, DELAYED, 10, "warn", "Nagle"),
        ("one in two hundred", (*spread(3980, 0.1, 0.5), *spread(20, 40, 44)), AT_ONCE, 1, "pass",
         "0.5 %) took just over 40.0 ms: too few"),
        ("the rest of all", spread(1000, 47.5, 48.2), AT_ONCE, 1, "warn",
         "1,000 answers (100 %) took just over 40.0 ms, a group apart from the others (p50 of"),
        ("the rest of all, with others under way", spread(1000, 47.5, 48.2), AT_ONCE, 10, "warn",
         "Nagle"),
        ("all of all: it takes 40 ms", spread(1000, 40, 42), spread(1000, 39.9, 41.9), 10, "pass",
         "no separate group of answers"),
        ("most of it after a while", spread(1000, 40, 42), spread(1000, 15, 16), 1, "pass",
         "no separate group of answers"),
        ("bodies that take from 20 to 60 ms", spread(1000, 20, 60), AT_ONCE, 1, "pass",
         "no separate group of answers"),
        ("none", QUICK, QUICK, 1, "pass", "no separate group of answers"),
    ],
)  # fmt: skip
def test_answers_whose_rest_waits_are_told_from_a_server_that_waits(
    sentence: str, service: Times, first_byte: Times, pipeline: int, status: Status, why: str
) -> None:
    seen = check(service, first_byte, pipeline)
    assert (seen.status, why in seen.why) == (status, True), f"{sentence}: {seen.why}"


def target(times: Times) -> TargetRecord:
    latency: dict[int, int] = {}
    for value, count in times:
        index = sparse_index(value)
        latency[index] = latency.get(index, 0) + count
    ok = sum(latency.values())
    outcomes = Outcomes(issued=ok, ok=ok, stale=0, cancelled=0, failed={}, statuses={})
    return TargetRecord(
        name=None, method="GET", url="http://127.0.0.1/", weight=1, counts=outcomes,
        latency_ns=Distribution(), latency=latency,
    )  # fmt: skip


def test_a_target_that_takes_40_ms_by_itself_is_no_mode_of_the_others() -> None:
    slow = spread(40, 40, 42)
    several = (target(QUICK), target(slow))
    assert check((*QUICK, *slow), AT_ONCE, targets=several).status == "pass"
    assert check((*QUICK, *slow), AT_ONCE, targets=(target((*QUICK, *slow)),)).status == "warn"
