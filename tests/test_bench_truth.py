"""The pure parts of the reports on accuracy: the computed truth, and the test for Poisson."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import numpy as np
import pytest


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
    """Send as the engine does: one wake-up per quantum, then all that is due, 2 us apart."""
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
    # Nothing is sent in every other ms; then all that fell due is sent at once.
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


# --- the witness: requests and answers on the wire

CLIENT, SERVER = False, True
# When the segment passed, the client's port, its position in the stream, and who sent it.
Passed = tuple[int, int, int, bool]


def capture(bench: Any, *passed: Passed) -> Any:
    """Match these segments, shuffled, since their order must not matter."""
    matching = bench["matching"]
    segments = np.zeros(len(passed), dtype=matching.SEGMENT)
    shuffled = Random(1).sample(passed, len(passed))
    for number, (ns, port, sequence, from_server) in enumerate(shuffled):
        segments[number] = (ns, sequence, port, 90, from_server, 0)
    return matching.match(segments)


def test_an_answer_belongs_to_the_request_before_it_on_its_own_connection(bench: Any) -> None:
    found = capture(
        bench,
        (100, 7001, 1, CLIENT),
        (110, 7002, 1, CLIENT),
        (150, 7002, 1, SERVER),
        (190, 7001, 1, SERVER),
        (200, 7001, 91, CLIENT),
        (230, 7001, 91, SERVER),
    )
    assert found.service_ns.tolist() == [30, 40, 90]
    assert (found.unanswered, found.unasked, found.repeated) == (0, 0, 0)


def test_a_service_time_ends_with_the_last_segment_of_the_answer(bench: Any) -> None:
    answer = [(120, 7001, 1, SERVER), (121, 7001, 91, SERVER), (170, 7001, 181, SERVER)]
    assert capture(bench, (100, 7001, 1, CLIENT), *answer).service_ns.tolist() == [70]


def test_a_segment_that_was_sent_again_counts_once(bench: Any) -> None:
    found = capture(
        bench,
        (100, 7001, 1, CLIENT),
        (300, 7001, 1, CLIENT),
        (310, 7001, 1, SERVER),
        (500, 7001, 1, SERVER),
    )
    assert found.service_ns.tolist() == [210]
    assert (found.unanswered, found.repeated) == (0, 2)


def test_what_has_no_counterpart_is_counted_and_has_no_time(bench: Any) -> None:
    # The first answer belongs to a request before the capture, and the last request is open at the
    # end. The answer of the next connection does not belong to it.
    found = capture(
        bench,
        (90, 7001, 1, SERVER),
        (100, 7001, 1, CLIENT),
        (130, 7001, 91, SERVER),
        (140, 7001, 91, CLIENT),
        (150, 7002, 1, SERVER),
    )
    assert found.service_ns.tolist() == [30]
    assert (found.unanswered, found.unasked) == (1, 2)


def test_nothing_heard_has_no_percentile(bench: Any) -> None:
    found = capture(bench)
    assert len(found.service_ns) == 0
    with pytest.raises(ValueError, match="no request was matched"):
        found.percentile_ns(50)


@pytest.mark.parametrize(("part", "ns"), [(50, 50), (99, 99), (99.1, 100), (100, 100), (0, 1)])
def test_a_percentile_is_by_the_nearest_rank(bench: Any, part: float, ns: int) -> None:
    pairs = [
        passed
        for number in range(1, 101)
        for passed in (
            (1_000 * number, 7001, 90 * number, CLIENT),
            (1_000 * number + number, 7001, 90 * number, SERVER),
        )
    ]
    assert capture(bench, *pairs).percentile_ns(part) == ns


def test_a_sample_of_connections_has_the_percentiles_of_those_connections(bench: Any) -> None:
    # 32 connections: the time of an answer in ns is its connection's number.
    pairs = [
        passed
        for port in range(1, 33)
        for passed in ((100, port, 1, CLIENT), (100 + port, port, 1, SERVER))
    ]
    found = capture(bench, *pairs)
    assert found.port.tolist() == list(range(1, 33))
    low, high = found.sampled_ns(99)
    assert 2 <= low < high <= found.percentile_ns(99) == 32, "the slower of two connections"
    alone = capture(bench, (100, 1, 1, CLIENT), (140, 1, 1, SERVER))
    assert alone.sampled_ns(99) == (40, 40), "one connection is its own sample"


def test_what_a_tool_says_less_its_own_part_is_compared_with_the_wire(bench: Any) -> None:
    witnessed = bench["witnessed"]
    wire = capture(bench, (100_000, 7001, 1, CLIENT), (400_000, 7001, 1, SERVER))
    for own_us, off_us, within in ((None, 50, False), ((10, 10), 40, False), ((35, 70), 15, True)):
        reported = witnessed.Reported(1, 1.0, (350.0, 350.0), own_us)
        p50, p99 = witnessed.compare(reported, wire)
        assert p50.off_us == off_us
        row = witnessed.Row(64, "closed loop", "a tool", (1.0,), ((p50, p99),))
        assert row.is_within is within
    assert p50.allowed_us == 20
    assert witnessed.Compared(5_000.0, 0.0, 4_950.0).allowed_us == pytest.approx(99)


def test_a_row_is_within_its_target_in_the_median_run(bench: Any) -> None:
    witnessed = bench["witnessed"]
    good, bad = witnessed.Compared(110.0, 0.0, 100.0), witnessed.Compared(150.0, 0.0, 100.0)
    runs = ((good, good), (bad, good), (good, good))
    row = witnessed.Row(64, "50%", "trueload", (1.0,) * 3, runs, judged=True)
    assert (row.is_within, witnessed.within_text(row)) == (True, "met")
    worse = witnessed.Row(64, "50%", "trueload", (1.0,) * 3, (*runs[:2], (good, bad)), judged=True)
    assert worse.is_within is True, "each percentile has a median of its own"
    worst = witnessed.Row(64, "50%", "trueload", (1.0,) * 2, (runs[1], runs[1]), judged=True)
    assert (worst.is_within, worst.mark().met) == (False, False)
    assert witnessed.within_text(worst) == "**missed**"


def test_a_run_of_which_the_witness_saw_too_little_is_not_compared(bench: Any) -> None:
    witnessed = bench["witnessed"]
    wire = capture(bench, (100, 7001, 1, CLIENT), (400, 7001, 1, SERVER))
    with pytest.raises(bench["process"].BenchError, match="2 requests by the tool, 1 by"):
        witnessed.compare(witnessed.Reported(2, 1.0, (1.0, 1.0)), wire)
    row = witnessed.Row(64, "50%", "trueload", why="the witness missed 3 segments", judged=True)
    assert row.is_within is None
    assert "not measured: the witness missed 3 segments" in witnessed.line(row)


def test_what_the_others_say_is_read_in_microseconds(bench: Any) -> None:
    witnessed = bench["witnessed"]
    wrk = "percentile 50 310\npercentile 99 1204\n  39812 requests in 1.10s, 5.05MB read\n"
    assert witnessed.read_wrk(wrk) == witnessed.Reported(39_812, 1.1, (310.0, 1_204.0))
    oha = {
        "summary": {"total": 1.5},
        "statusCodeDistribution": {"200": 43_000},
        "errorDistribution": {"aborted due to deadline": 64},
        "latencyPercentiles": {"p50": 0.00031, "p99": 0.001204},
    }
    reported = witnessed.read_oha(json.dumps(oha))
    assert (reported.requests, reported.wall_s, reported.own_us) == (43_000, 1.5, None)
    assert reported.percentiles_us == pytest.approx((310.0, 1_204.0))
    for output in (wrk + "Socket errors: read 3", wrk + "Non-2xx", "nothing"):
        with pytest.raises(bench["process"].BenchError):
            witnessed.read_wrk(output)


@pytest.mark.parametrize(
    ("seconds", "rate_per_s", "takes_s"),
    [(3, None, 3), (3, 200_000, 3), (3, 20_000, 25), (3, 1_000, 30), (1, 1_000, 1)],
)
def test_a_low_rate_is_sent_for_longer_so_that_its_p99_is_known(
    bench: Any, seconds: float, rate_per_s: float | None, takes_s: float
) -> None:
    assert bench["witnessed"].run_s(seconds, rate_per_s) == takes_s
