"""The lateness of wake-ups, measured with a simulated clock."""

from __future__ import annotations

import os

import pytest
from trueload.machine.wakeups import STEP_S, measure_wakeups, sleep_until, summarise


class Clock:
    """A clock that only sleeping advances; each sleep takes this much longer than asked."""

    def __init__(self, *late_s: float) -> None:
        self.now_s = 100.0
        self._late_s = list(late_s)

    def now(self) -> float:
        return self.now_s

    def sleep(self, wanted_s: float) -> None:
        self.now_s += wanted_s + self._late_s.pop(0)


def test_each_waking_is_compared_with_its_own_time() -> None:
    clock = Clock(0.0, 0.0005, 0.010, 0.0)
    until_s = clock.now_s + 4 * STEP_S + 0.0105
    # Earlier lateness does not make the next wake-up late.
    assert sleep_until(until_s, clock.now, clock.sleep) == pytest.approx(
        [0, 500_000, 10_000_000, 0], abs=5
    )


def test_there_is_a_waking_however_short_the_time() -> None:
    clock = Clock(0.0)
    assert len(sleep_until(clock.now_s - 1.0, clock.now, clock.sleep)) == 1


@pytest.mark.parametrize(
    ("count", "p99", "p999"), [(1, 1, 1), (100, 99, 100), (1000, 990, 999), (3001, 2971, 2998)]
)
def test_percentiles_are_values_that_were_seen(count: int, p99: int, p999: int) -> None:
    found = summarise(list(range(count, 0, -1)))
    assert (found.count, found.p99_ns, found.p999_ns) == (count, p99, p999)


def test_a_watch_leaves_the_process_where_it_was() -> None:
    cpus = sorted(os.sched_getaffinity(0))
    found = measure_wakeups(0.02, cpus)
    assert found.count >= len(cpus)
    assert sorted(os.sched_getaffinity(0)) == cpus
