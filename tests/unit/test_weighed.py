"""`stall` of pauses that no gap shows: waits weighed by the time that they take."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from samples import check_of, flow
from stall_samples import stopped
from trueload.verdict import judge
from virtual_server import (
    S,
    Serve,
    at_random,
    closed_loop,
    exponential,
    fixed,
    in_queue,
    lognormal,
    pausing,
    some,
)


@pytest.mark.parametrize("connections", [1, 2, 4, 8])
def test_connections_that_wait_at_once_by_chance_are_no_stall(connections: int) -> None:
    for serve in (exponential(0.05), at_random(0.005, 0.002, 0.5)):
        for seed in range(10):
            check = check_of(closed_loop(serve, connections, 5, seed), "stall")
            assert check.status == "pass", check


# Each server, its connections, the seconds of the window.
Virtual = tuple[Callable[[], Serve], int, float]
PAUSING: dict[str, Virtual] = {
    "two workers in turn": (lambda: pausing(2, 0.6, 6, exponential(0.02)), 16, 18),
    "two workers, even answers": (lambda: pausing(2, 0.4, 6, fixed(0.02)), 16, 18),
    "two workers for less time": (lambda: pausing(2, 0.2, 2, fixed(0.005)), 16, 6),
    "four workers with 16 each": (lambda: pausing(4, 0.3, 3, fixed(0.005)), 64, 6),
    "eight workers": (lambda: pausing(8, 0.6, 6, fixed(0.05)), 16, 12),
    "three workers, each second": (lambda: pausing(3, 0.3, 3, fixed(0.02)), 16, 12),
    "two workers of two connections": (lambda: pausing(2, 0.3, 3, fixed(0.02)), 4, 12),
    "two workers of two, for a minute": (lambda: pausing(2, 0.3, 3, fixed(0.02)), 4, 60),
    "three of 64": (lambda: some(3, pausing(1, 0.6, 1.5, fixed(0.02)), fixed(0.02)), 64, 12),
    "three of 64, random answers": (
        lambda: some(3, pausing(1, 0.6, 1.5, exponential(0.02)), exponential(0.02)),
        64,
        12,
    ),
    "24 of 512": (lambda: some(24, pausing(1, 1.2, 2, fixed(0.1)), fixed(0.1)), 512, 12),
    "everybody, one connection of two": (lambda: pausing(1, 0.3, 3, fixed(0.02)), 2, 12),
    "everybody for nine p99": (lambda: pausing(1, 0.44, 9, fixed(0.05)), 16, 18),
    "everybody, random answers": (lambda: pausing(1, 0.44, 9, exponential(0.01)), 16, 18),
}
BY_THEMSELVES: dict[str, Virtual] = {
    "even": (lambda: fixed(0.005), 16, 5),
    "exponential": (lambda: exponential(0.02), 64, 5),
    "lognormal": (lambda: lognormal(0.02, 1), 64, 5),
    "a long tail": (lambda: lognormal(0.005, 2), 64, 10),
    "one in 20 takes 20 times as long": (lambda: at_random(0.02, 0.05, 0.4), 64, 5),
    "one in 200 takes 20 times as long": (lambda: at_random(0.02, 0.005, 0.4), 64, 10),
    "one in 1,000 takes 1 s": (lambda: at_random(0.02, 0.001, 1), 64, 10),
    "a few connections": (lambda: at_random(0.005, 0.003, 0.3), 4, 10),
    "in step, one in 200 takes 2 s": (lambda: at_random(0.2, 0.005, 2), 64, 30),
    "in step, many connections": (lambda: at_random(0.1, 0.004, 1), 512, 10),
    "slow by chance, and a short pause": (
        lambda: pausing(1, 0.08, 11, at_random(0.04, 0.002, 0.7)),
        100,
        12,
    ),
    "one queue": (lambda: in_queue(1, exponential(0.001)), 64, 5),
    "one queue, four workers": (lambda: in_queue(4, exponential(0.004)), 64, 5),
    "one queue, slow by chance": (lambda: in_queue(4, at_random(0.002, 0.05, 0.04)), 64, 5),
    "one queue, a long tail": (lambda: in_queue(16, lognormal(0.002, 2)), 64, 5),
    "workers to spare": (lambda: in_queue(40, exponential(0.02)), 32, 5),
}


@pytest.mark.parametrize("what", PAUSING)
def test_pauses_that_no_gap_shows_are_told(what: str) -> None:
    serve, connections, window_s = PAUSING[what]
    check = check_of(closed_loop(serve(), connections, window_s), "stall")
    assert (check.status, "an open loop" in check.why) == ("warn", True), check


@pytest.mark.parametrize("what", BY_THEMSELVES)
def test_answers_that_are_slow_by_themselves_are_no_stall(what: str) -> None:
    serve, connections, window_s = BY_THEMSELVES[what]
    for seed in range(2):
        check = check_of(closed_loop(serve(), connections, window_s, seed), "stall")
        assert check.status == "pass", (seed, check)


def test_what_is_told_of_two_workers_is_what_a_schedule_shows() -> None:
    def serve() -> Serve:
        return pausing(2, 0.6, 6, fixed(0.02))

    chance = random.Random(1)
    times_s = sorted(
        serve()(slot, at / 1_000, chance) - at / 1_000 for at in range(12_000) for slot in (0, 1)
    )
    true_ms = times_s[math.ceil(0.99 * len(times_s))] * 1_000
    check = check_of(closed_loop(serve(), 16, 36), "stall")
    told_ms = float(check.why.split("about ")[1].split(" ms")[0])
    assert abs(told_ms / true_ms - 1) < 0.1, (true_ms, check)


def test_a_generator_that_stood_still_is_no_stall() -> None:
    stops = closed_loop(pausing(1, 0.44, 9, fixed(0.05)), 16, 17, **stopped(440, 2, 16))
    check = check_of(judge(stops.model_copy(update={"flow": flow(window_ns=17 * S)})), "stall")
    assert check.status == "pass", check
