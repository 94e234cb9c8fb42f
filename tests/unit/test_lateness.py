"""``hiccup``: how far stalls of the generator can have changed the shown figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from samples import GENERATOR, OK, good_record, histogram, staged
from stall_samples import (
    FOR_OTHERS,
    FOR_THE_SERVER,
    GOOD,
    MS,
    SHARED,
    answers,
    queued,
    stalls,
    stopped,
)
from trueload.engines.merge import merge_lateness
from trueload.protocol.lateness import Lateness
from trueload.record.schema import CpuWait, Status

OPEN = {"plan": GOOD.plan.model_copy(update={"window": staged((OK, OK))})}
FIVE_MS: Mapping[float, int] = {5: 9_890, 52: 110}

CASES: list[tuple[str, dict[str, Any], Status, str]] = [
    ("none", {}, "pass", "the generator was never paused"),
    ("one turn of the scheduler", {**stopped(3, 1, 64), **answers({5: 9_990, 8: 10})}, "pass",
     "was paused 1 time, for 3.00 ms in all (0.3 % of the window), while 64 requests waited"),
    # Throughput: thresholds of 2 and 5 % of the window.
    ("2 % of a closed loop", stopped(20, 1, 10), "pass", "2 % of the window"),
    ("above", stopped(21, 1, 10), "warn", "2.1 % of the window"),
    ("above 5 %", stopped(51, 1, 10), "fail", "5.1 % of the window"),
    ("half of the time, in short stops", stopped(5, 100, 64), "fail", "50 % of the window"),
    ("an open loop sends later what was due", {**OPEN, **stopped(15, 2, 10)}, "pass", "3 % of"),
    # Percentiles: the stalls' part of the requests beyond, and how much they can have added.
    ("50 ms that a hundredth of all waited for", {**answers(FIVE_MS), **OPEN,
     **stopped(50, 1, 100)}, "fail", "up to 47.0 ms of p99 52.0 ms is the generator's own delay"),
    ("a pause that moved a tail by less than a quarter", {**answers({5: 9_880, 6: 120}), **OPEN,
     **stopped(1, 1, 100)}, "pass", "up to 999 us of p99 6.00 ms is the generator's own delay"),
    ("a median by as much", {**answers({5: 4_000, 6: 6_000}), **OPEN, **stopped(1, 50, 60)},
     "warn", "of p50"),
    ("too little to matter, whatever the share", {**answers({0.3: 9_880, 0.7: 120}), **OPEN,
     **stopped(1, 1, 100)}, "pass", "up to 400 us of p99 700 us is the generator's own delay"),
    ("little, and only worth a warning", {**answers({0.3: 9_880, 2: 120}), **OPEN,
     **stopped(2, 1, 100)}, "warn", "up to 1.70 ms of p99 2.00 ms"),
    ("a thousandth by the pause of a virtual machine", {**answers({1: 9_985, 7: 15}), **OPEN,
     **stopped(6, 1, 10)}, "pass", "up to 6.00 ms of p99.9 7.00 ms"),
    ("a quarter of a hundredth", {**answers({5: 9_850, 52: 150}), **OPEN, **stopped(50, 1, 25)},
     "pass", "25 requests waited"),
    ("a third of a hundredth that moved it", {**answers({5: 9_885, 52: 115}), **OPEN,
     **stopped(50, 1, 33)}, "warn", "of p99"),
    ("the percentile is where it is without them", {**answers({5: 9_000, 52: 1_000}), **OPEN,
     **stopped(50, 1, 100)}, "pass", "100 requests waited"),
    ("a request that waits each time", {**answers({5: 10_000}), **stopped(1, 4, 9_000)},
     "pass", "while 9,000 requests waited each time"),
    ("stalls that are short beside it", {**answers({5: 9_900, 520: 100}), **OPEN,
     **stopped(50, 1, 100)}, "pass", ""),
    ("the median, by half of all", {**answers({5: 4_000, 10: 6_000}), **OPEN,
     **stopped(5, 50, 60)}, "fail", "of p50"),
    ("a thousandth by turns of the scheduler", {**answers({1: 9_985, 3: 15}), **OPEN,
     **stopped(3, 1, 10)}, "pass", ""),
    ("a thousandth by more", {**answers({1: 9_985, 12: 15}), **OPEN, **stopped(11, 1, 10)},
     "fail", "of p99.9"),
    ("a percentile that too few have is not shown", {**answers({1: 100, 12: 2}), **OPEN,
     **stopped(11, 1, 2)}, "pass", ""),
    # Waits for a CPU that other processes or a CPU limit caused.
    ("it waited for others", queued(9, 9, 64, FOR_OTHERS), "fail", "8.1 % of the window"),
    ("it waited for the server", {**queued(9, 9, 64, FOR_THE_SERVER), **SHARED}, "pass",
     "was never paused"),
    ("the server has a CPU of its own", queued(9, 9, 64, FOR_THE_SERVER), "fail",
     "8.1 % of the window"),
    ("it is not known for whom", {**queued(9, 9, 64, None), **SHARED}, "pass", "was never paused"),
    ("half of the waits were for others", {
        **queued(9, 9, 64, CpuWait(share=0.1, for_others=0.05)), **SHARED},
     "warn", "4 % of the window"),
    ("its CPU limit stopped it for less than a turn of the scheduler", {
        **answers({5: 9_970, 8: 30}), **OPEN,
        **queued(3, 1, 64, CpuWait(share=0.006, for_others=0.0), throttled_share=0.002)},
     "fail", "up to 3.00 ms of p99.9 8.00 ms"),
    ("others did for as long", {
        **answers({5: 9_970, 8: 30}), **OPEN,
        **queued(3, 1, 64, CpuWait(share=0.006, for_others=0.006), throttled_share=0.0005)},
     "pass", ""),
    ("its CPU limit stopped it", queued(9, 9, 64, FOR_THE_SERVER, throttled_share=0.08), "fail",
     "of the window"),
    ("the kernel tells no waits", {"generator": GENERATOR.model_copy(update={
        "lateness": Lateness(stopped=stalls(50, 2, 64))})}, "n/a", "the kernel does not say"),
    ("several threads were paused for a part each", stopped(51, 1, 10, threads=4), "pass",
     "1.3 % of the window"),
    ("the engine died", {"generator": GENERATOR.model_copy(update={"lateness": None})}, "n/a",
     "before it could say"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "status", "why"),
    [pytest.param(*case, id=sentence) for sentence, *case in CASES],
)
def test_a_stall_is_judged_by_what_it_can_have_done(
    changes: dict[str, Any], status: Status, why: str
) -> None:
    found = next(check for check in good_record(**changes).checks if check.name == "hiccup")
    assert found.status == status, found
    assert why in found.why, found


def test_the_percentile_without_our_part_stands_beside_it() -> None:
    # p99 is 52 ms, of which 47 ms lie between the kernel's receive time and our read.
    latency = histogram((5 * MS, 9_890), (52 * MS, 110))
    lag = histogram((6_000, 900), (47 * MS, 100))
    assert GOOD.client_ns.receive is not None
    record = good_record(
        histograms=GOOD.histograms.model_copy(update={"latency": latency, "receive_lag": lag}),
        client_ns=GOOD.client_ns.model_copy(
            update={"receive": GOOD.client_ns.receive.model_copy(update={"p99": 47 * MS})}
        ),
        **stopped(50, 1, 100),
    )
    (found,) = (check for check in record.checks if check.name == "hiccup")
    assert (
        "p99 52.0 ms is the generator's own delay (5.00 ms without, by the kernel's receive times)"
        in found.why
    )


def test_what_several_engines_say_adds_up_by_length() -> None:
    first = Lateness(waited_ns=5, stopped=stalls(3, 1, 64), queued=stalls(9, 2, 8))
    second = Lateness(waited_ns=7, stopped=(*stalls(3, 2, 64), *stalls(50, 1, 1)))
    both = merge_lateness([first, second])
    assert both.waited_ns == 7
    assert both.stopped == (*stalls(3, 3, 64), *stalls(50, 1, 1))
    assert both.queued == stalls(9, 2, 8)
