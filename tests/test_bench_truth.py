"""The pure parts of the reports on accuracy: what is the truth, and what is a Poisson process."""

from __future__ import annotations

import sys
from importlib import import_module
from random import Random
from typing import Any

import pytest
from harness import ROOT


@pytest.fixture(scope="module")
def bench() -> Any:
    """`truth`, `scripted` and `pacing` of bench/, which is no package."""
    sys.path.insert(0, str(ROOT / "bench"))
    try:
        return {name: import_module(name) for name in ("truth", "scripted", "pacing")}
    finally:
        sys.path.remove(str(ROOT / "bench"))


def test_with_a_connection_for_each_the_truth_is_the_servers_delay(bench: Any) -> None:
    delays = bench["scripted"].Delays(0.05, 0.05)
    times = bench["truth"].truth(delays, 200, 11, 2.0)
    assert len(times) == 400
    assert times == pytest.approx([0.05] * 400)


def test_requests_that_find_no_connection_wait_with_their_clock_running(bench: Any) -> None:
    delays = bench["scripted"].Delays(0.05, 0.05)
    times = bench["truth"].truth(delays, 40, 1, 1.0)
    # One connection carries 20/s of the 40/s: the last one sent, at 0.95 s, was due at 19 / 40 s.
    assert len(times) == 20
    assert times[-1] == pytest.approx(1.0 - 19 / 40)


def test_a_freeze_delays_what_waits_and_what_comes(bench: Any) -> None:
    delays = bench["scripted"].Delays(0.05, 0.05, freeze_at_s=1.0, freeze_s=2.0)
    cases = [(0.5, 0.55), (0.96, 3.0), (1.0, 3.05), (2.9, 3.05), (3.5, 3.55)]
    for at_s, done_s in cases:
        assert delays.done_s(0, at_s) == pytest.approx(done_s), at_s


def test_one_request_in_so_many_stalls(bench: Any) -> None:
    delays = bench["scripted"].Delays(0.05, 0.05, stall_every=200)
    assert [number for number in range(600) if delays.delay_s(number) == 1.0] == [100, 300, 500]


def test_exponential_gaps_pass_as_poisson_thinned_or_not_and_even_ones_do_not(bench: Any) -> None:
    pacing, chance = bench["pacing"], Random(3)
    at_ns, times_ns = 0, []
    for _ in range(20_000):
        at_ns += int(chance.expovariate(10_000) * 1e9)
        times_ns.append(at_ns)
    assert pacing.median_darling(times_ns) <= pacing.CRITICAL_5
    assert pacing.median_darling(pacing.thinned(times_ns, 0.1)) <= pacing.CRITICAL_5
    assert pacing.median_darling(list(range(0, 10**9, 10**5))) > 100
