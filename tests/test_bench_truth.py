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


def poisson_ns(rate_per_s: float, count: int) -> list[int]:
    """Times of a Poisson process."""
    chance, at_ns, times_ns = Random(3), 0, []
    for _ in range(count):
        at_ns += int(chance.expovariate(rate_per_s) * 1e9)
        times_ns.append(at_ns)
    return times_ns


def run(bench: Any, rate_per_s: int, times_ns: list[int]) -> Any:
    return bench["pacing"].Run(rate_per_s, tuple(times_ns), len(times_ns), 0.0)


QUESTIONS = ("darling_of_all", "darling_above_resolution", "darling_thinned")


def test_poisson_arrivals_pass_every_question_and_even_ones_none(bench: Any) -> None:
    pacing = bench["pacing"]
    poisson = [run(bench, 10_000, poisson_ns(10_000, 20_000))]
    even = [run(bench, 1_000, list(range(0, 5 * 10**9, 10**6)))]
    for question in QUESTIONS:
        assert getattr(pacing, question)(poisson) <= pacing.CRITICAL_5, question
        assert getattr(pacing, question)(even) > 100, question


def sent_together(due_ns: list[int], quantum_ns: int) -> list[int]:
    """As the engine sends: not woken again within the quantum, and then all that is due, 2 us one
    after the other."""
    times_ns: list[int] = []
    woken_ns, number = -quantum_ns, 0
    while number < len(due_ns):
        woken_ns = send_ns = max(due_ns[number], woken_ns + quantum_ns)
        while number < len(due_ns) and due_ns[number] <= woken_ns:
            times_ns.append(send_ns)
            send_ns += 2_000
            number += 1
    return times_ns


def test_sends_put_together_within_the_resolution_fail_only_the_question_about_all(
    bench: Any,
) -> None:
    pacing = bench["pacing"]
    together = [run(bench, 10_000, sent_together(poisson_ns(10_000, 20_000), 25_000))]
    assert pacing.darling_of_all(together) > 10
    assert pacing.darling_above_resolution(together) <= pacing.CRITICAL_5
    assert pacing.darling_thinned(together) <= pacing.CRITICAL_5


def test_storms_after_a_pause_fail(bench: Any) -> None:
    pacing = bench["pacing"]
    # Nothing is sent in every other ms, then all that fell due.
    times_ns = []
    for due_ns in poisson_ns(10_000, 20_000):
        ms = due_ns // 10**6
        times_ns.append(due_ns if ms % 2 else (ms + 1) * 10**6)
    assert pacing.darling_above_resolution([run(bench, 10_000, times_ns)]) > pacing.CRITICAL_5


def test_constant_arrivals_are_off_by_what_intervals_differ_in_the_median_run(bench: Any) -> None:
    exact = list(range(0, 10**9, 10**6))
    late = [time_ns + (300_000 if number % 20 == 0 else 0) for number, time_ns in enumerate(exact)]
    runs = [run(bench, 1_000, times_ns) for times_ns in (exact, late, late)]
    assert bench["pacing"].off_p99_us(runs) == pytest.approx(300)
    assert bench["pacing"].off_p99_us(runs[:1]) == 0
