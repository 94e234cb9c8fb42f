"""The checks of the flow of answers, against simulated servers whose truth is known."""

from __future__ import annotations

import math
import random
import re
import statistics
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from samples import (
    NO_COUNTS,
    OK,
    check_of,
    counts,
    distribution,
    flow,
    good_record,
    histogram,
    sparse_index,
    staged,
)
from trueload.protocol.flow import Backlog, Flow
from trueload.protocol.load_options import Arrivals
from trueload.protocol.plan import Closed
from trueload.record.schema import Record, RecordPlan, Status, Warmup
from trueload.stats import Distribution, decode_histogram
from trueload.verdict import judge
from trueload.verdict.backlog import check_backlog
from trueload.verdict.limit import bottleneck_text
from trueload.verdict.stall import open_loop_ns
from trueload.verdict.stretches import PARTS, largest_change

S = 1_000_000_000
MS = 1_000_000
RAW_PARTS = 300  # an engine has 256 to 511
AUTOCORRELATION = 0.57  # of successive parts: the median of 88 real runs (bench/ordinary.py)


# --- pure tables


def opened(*rates: tuple[float, float]) -> RecordPlan:
    """The plan of an open loop, at 10,000/s unless told otherwise."""
    window = staged(*(rates or ((OK, OK),)))
    return good_record().plan.model_copy(update={"window": window})


def staged_connections() -> RecordPlan:
    plan = good_record().plan
    load = Closed.model_validate({"active": [{"ns": S, "from": 1, "to": 9}]})
    return plan.model_copy(update={"window": plan.window.model_copy(update={"load": load})})


def flowing(*levels: float) -> dict[str, Any]:
    """Answers at these levels, each for an equal part of the window."""
    each = 480 // len(levels)
    return {"flow": flow(*(round(100 * level) for level in levels for _ in range(each)))}


def gaps(*lengths: tuple[int, int]) -> Flow:
    """Gaps without an answer, as (length in ns, count)."""
    return flow(gaps={sparse_index(ns): count for ns, count in lengths})


def queued(at_start: int, at_end: int, growth: int) -> dict[str, Any]:
    """An open loop at 10,000/s for a second whose latency grows.

    Those scheduled first are answered in 1 ms; those scheduled last wait ``growth`` times as long.
    """
    sums_ns = (OK // 2 * MS, OK // 2 * growth * MS)
    answered = (OK // 2, OK // 2)
    backlog = Backlog(at_start=at_start, at_end=at_end, answered=answered, latency_sum_ns=sums_ns)
    return {"plan": opened(), "flow": flow(backlog=backlog)}


def of_burst(takes_ns: int) -> dict[str, Any]:
    """A replay of 20 requests in 2 s, each answered in 9 ms, and then 100 at once."""
    backlog = Backlog(
        at_start=0,
        at_end=100,
        answered=(5, 5, 5, 105),
        latency_sum_ns=(45 * MS, 45 * MS, 45 * MS, 45 * MS + 100 * takes_ns),
    )
    return {
        "plan": opened((10, 10), (600, 600)),
        "flow": flow(window_ns=2 * S, backlog=backlog),
        "counts": counts(ok=120, issued=120, scheduled=120),
        "latency_ns": replace(good_record().latency_ns, stdev=float(takes_ns)),
    }


CASES: dict[str, list[tuple[str, dict[str, Any], Status, str]]] = {
    "backlog": [
        ("a closed loop", {}, "n/a", "not an open loop"),
        ("a server that keeps up", queued(10, 12, 1), "pass", "12 at the end"),
        ("one that falls behind", queued(0, 900, 5), "fail", "9,100/s of 10,000/s asked"),
        ("its connections are named where requests waited for one", {
            **queued(0, 900, 5), "counts": counts(unsent=500, issued=OK - 500, ok=OK - 500)},
         "fail", "/s of 10,000/s asked over 10 connections; latency"),
        ("not where all were sent", queued(0, 900, 5), "fail", "/s of 10,000/s asked; latency"),
        ("a burst at the end", of_burst(9 * MS), "pass", "100 at the end"),
        ("a burst that queues", of_burst(500 * MS), "fail", "carried 10/s of 60/s asked"),
        ("the engine died", {**queued(0, 900, 5), "flow": None}, "n/a", "it is not known when"),
        ("nothing scheduled", {**queued(0, 0, 1), "counts": NO_COUNTS}, "n/a", "no request"),
        ("hardly any answer", {**queued(0, 900, 5), "flow": flow(backlog=Backlog(
            at_start=0, at_end=900, answered=(9,), latency_sum_ns=(90,)))}, "n/a", "too few"),
    ],
    "steady-state": [
        ("even", {}, "pass", "10,000 requests/s throughout"),
        ("halves 8 % apart", flowing(1.0, 0.92), "pass", ""),
        ("a first half 12 % slower", flowing(0.88, 1.0), "warn", "in the rest of the window"),
        ("a second half 12 % slower", flowing(1.0, 0.88), "pass", ""),
        ("a second half 25 % slower", flowing(1.0, 0.75), "warn", "in the rest of the window"),
        ("nothing in the first half", flowing(0.0, 1.0), "fail", ""),
        ("stages", {"plan": opened((1, 9), (9, 9))}, "n/a", "--stages"),
        ("a rate that is held", {"plan": opened()}, "pass", ""),
        ("few answers", {"flow": flow(*(1, 0) * 90)}, "n/a", "90 answers are too few"),
        ("a window of one answer time", {"service_ns": distribution(histogram((490_000_000, 9)))},
         "n/a", "no answer is expected in the first 980 ms"),
        ("the engine died", {"flow": None}, "n/a", "it is not known when"),
    ],
    "stall": [
        ("gaps of nine slow answers", {"flow": gaps((9_000_000, 90))}, "pass", ""),
        ("gaps of 100 ms in a hundredth", {"flow": gaps((9_900_000, 1))}, "pass", ""),
        ("gaps of 100 ms", {"flow": gaps((100_000_000, 2))}, "warn", "100 ms at a time, 20 %"),
        ("an open loop", {"plan": opened(), "flow": gaps((300_000_000, 1))}, "n/a", "closed"),
        ("connections over time", {"plan": staged_connections()}, "n/a", "the load itself changes"),
        ("the engine died", {"flow": None}, "n/a", "it is not known when"),
        ("requests fail", {"flow": gaps((300_000_000, 1)), "counts": counts(
            ok=OK, issued=2 * OK, scheduled=2 * OK, failed={"reset": OK})}, "n/a", "not known"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("check", "changes", "status", "why"),
    [
        pytest.param(check, changes, status, why, id=f"{check}: {sentence}")
        for check, cases in CASES.items()
        for sentence, changes, status, why in cases
    ],
)
def test_a_check_says(check: str, changes: dict[str, Any], status: Status, why: str) -> None:
    result = check_of(good_record(**changes), check)
    assert (result.status, why in result.why) == (status, True), result
    assert (result.value is None) <= (result.limit is None)


# --- steady-state


def window(
    level: Callable[[float], float],
    per_part: float = 60,
    noise: float = 0.1,
    window_ns: int = 10 * S,
) -> Record:
    """A window of a server whose speed at each time, from 0 to 1, is ``level(time)``."""
    chance = random.Random(7)
    means = (per_part * level((place + 0.5) / RAW_PARTS) for place in range(RAW_PARTS))
    parts = (max(0, round(mean * (1 + chance.gauss(0, noise)))) for mean in means)
    return good_record(flow=flow(*parts, window_ns=window_ns))


@pytest.mark.parametrize(
    ("what", "level", "status"),
    [
        ("steady", lambda _: 1, "pass"),
        ("a slow start of 3 s", lambda at: 0.5 if at < 0.3 else 1, "warn"),
        ("a slow start of 1 s", lambda at: 0.3 if at < 0.1 else 1, "warn"),
        ("a little slower at the end", lambda at: 1 if at < 0.8 else 0.7, "pass"),
        ("a slow end", lambda at: 1 if at < 0.8 else 0.4, "warn"),
        ("a slow middle", lambda at: 0.6 if 0.3 < at < 0.6 else 1, "warn"),
        ("a machine that wanders", lambda at: 0.8 if 0.3 < at < 0.6 else 1, "pass"),
        ("no answer for 3.9 s", lambda at: 0 if 0.3 < at < 0.69 else 1, "fail"),
        ("slowing to a third", lambda at: 1 - at * 2 / 3, "warn"),
        ("growing faster", lambda at: 0.5 + at / 2, "warn"),
        ("a symmetric V", lambda at: 0.5 + abs(at - 0.5), "warn"),
        ("a symmetric roof", lambda at: 1 - abs(at - 0.5), "warn"),
        ("a third as fast half of the time", lambda at: 1 if at < 0.5 else 0.33, "fail"),
        ("settling within a second", lambda at: 1 - 0.8 * math.exp(-at * 10), "warn"),
        ("a moment at half speed", lambda at: 0.5 if 0.5 < at < 0.52 else 1, "pass"),
        ("bursts of 64 answers a second", lambda at: 10 if (at * 10) % 1 < 0.1 else 0, "pass"),
        ("a wave of ten periods", lambda at: 1 + 0.3 * math.sin(at * 20 * math.pi), "pass"),
    ],
)
def test_a_flow_is_steady_if_no_stretch_of_it_differs(
    what: str, level: Callable[[float], float], status: str
) -> None:
    check = check_of(window(level), "steady-state")
    assert check.status == status, (what, check)


@pytest.mark.parametrize(
    ("window_ns", "status"),
    [(10 * S, "warn"), (60 * MS, "warn"), (24 * MS, "pass")],
)
def test_a_turn_of_the_scheduler_is_no_change_of_the_server_s(
    window_ns: int, status: Status
) -> None:
    # The server is paused for 2.9 ms of a 24 ms window, and for 7.2 ms of a 60 ms one.
    record = window(lambda at: 0 if 0.4 < at < 0.52 else 1, window_ns=window_ns)
    check = check_of(record, "steady-state")
    assert check.status == status, check


def test_without_a_warm_up_the_first_answers_are_awaited() -> None:
    record = window(lambda at: 0 if at < 0.1 else 1)
    slow = {"service_ns": distribution(histogram((S, 10_000))), "flow": record.flow}
    assert check_of(good_record(**slow), "steady-state").status == "pass"
    assert check_of(record, "steady-state").status == "warn"
    good = good_record()
    warmed = {
        "plan": good.plan.model_copy(update={"warmup": good.plan.window}),
        "warmup": Warmup(counts=counts(), wall_s=1.0),
    }
    assert check_of(good_record(**slow, **warmed), "steady-state").status == "warn"


def autocorrelated(chance: random.Random, count: int, share: float) -> list[float]:
    """Noise of deviation 1 in which each value has the share ``share`` of the one before."""
    values = [chance.gauss(0, 1)]
    for _ in range(count - 1):
        values.append(share * values[-1] + math.sqrt(1 - share**2) * chance.gauss(0, 1))
    return values


@pytest.mark.parametrize("correlation", [0.0, 0.3, AUTOCORRELATION])
def test_chance_alone_is_no_change(correlation: float) -> None:
    """docs/verdicts.md has the figure of 10,000 runs."""
    chance, runs = random.Random(11), 500
    noise = (autocorrelated(chance, PARTS, correlation) for _ in range(runs))
    alarms = sum(largest_change([10 + value for value in values]) is not None for values in noise)
    assert alarms <= runs / 100, f"{alarms} of {runs}"


# --- backlog


GOOD = good_record()


class Queue:
    """A server with one worker, or one per request, and an engine's record of it."""

    def __init__(self, per_s: float, seconds: float, warmup_s: float = 0.0) -> None:
        self.per_s, self.seconds, self.warmup_s = per_s, seconds, warmup_s
        self.chance = random.Random(5)
        self.poisson = False
        self.judged = True

    def one_by_one(self, serve_s: Callable[[], float], poisson: bool = False) -> Record:
        """Serve with one worker: requests wait for those before them."""
        self.poisson, free_s, ended = poisson, -math.inf, []
        for at_s in self._arrivals(poisson):
            free_s = max(at_s, free_s) + serve_s()
            ended.append((at_s, free_s))
        return self._record(ended)

    def at_once(self, serve_s: Callable[[float], float]) -> Record:
        """Serve each request at once; ``serve_s`` gets its arrival time."""
        return self._record((at_s, at_s + serve_s(at_s)) for at_s in self._arrivals(False))

    def _arrivals(self, poisson: bool) -> Iterable[float]:
        at_s = -self.warmup_s
        while at_s < self.seconds:
            yield at_s
            at_s += self.chance.expovariate(self.per_s) if poisson else 1 / self.per_s

    def _record(self, ended: Iterable[tuple[float, float]]) -> Record:
        requests = list(ended)
        answered, sums = [0] * 4, [0] * 4
        for at_s, end_s in requests:
            if at_s >= 0:
                quarter = min(3, int(at_s / self.seconds * 4))
                answered[quarter] += 1
                sums[quarter] += round((end_s - at_s) * S)
        backlog = Backlog(
            at_start=sum(at_s < 0 < end_s for at_s, end_s in requests),
            at_end=sum(end_s > self.seconds for _, end_s in requests),
            answered=tuple(answered),
            latency_sum_ns=tuple(sums),
        )
        # As the engine: 256 parts at most, whose length is a power of two.
        part_s = 2 ** math.ceil(math.log2(self.seconds * S / 256)) / S
        parts = [0] * max(1, round(self.seconds / part_s))
        for _, end_s in requests:
            if 0 <= end_s < self.seconds:
                parts[int(end_s / self.seconds * len(parts))] += 1
        scheduled = sum(at_s >= 0 for at_s, _ in requests)
        window_ns = round(self.seconds * S)
        window = staged((self.per_s, self.per_s))
        arrivals: Arrivals = "poisson" if self.poisson else "constant"
        load = window.load.model_copy(update={"arrivals": arrivals})
        window = window.model_copy(update={"load": load})
        took = [(end_s - at_s) * S for at_s, end_s in requests if at_s >= 0]
        record = GOOD.model_copy(
            update={
                "plan": GOOD.plan.model_copy(update={"window": window}),
                "counts": counts(scheduled=scheduled, issued=scheduled, ok=scheduled),
                "flow": flow(*parts, window_ns=window_ns, backlog=backlog),
                "latency_ns": Distribution(count=len(took), stdev=statistics.pstdev(took)),
            }
        )
        return judge(record) if self.judged else record


def every(seconds: float) -> Callable[[], float]:
    return lambda: seconds


@pytest.mark.parametrize(
    ("per_s", "seconds", "warmup_s"),
    [(2000, 4, 0), (1500, 5, 0), (1150, 10, 0), (2000, 4, 1), (1200, 2, 1), (2000, 0.5, 0)],
)
def test_a_server_that_falls_behind_fails_with_what_it_carried(
    per_s: float, seconds: float, warmup_s: float
) -> None:
    check = check_of(Queue(per_s, seconds, warmup_s).one_by_one(every(1 / 990)), "backlog")
    assert check.status == "fail", check
    carried = re.search(r"carried ([\d,]+)/s of", check.why)
    assert carried is not None, check
    assert 980 <= int(carried[1].replace(",", "")) <= 1000, check
    assert "a longer run would show more" in check.why


@pytest.mark.parametrize(
    ("per_s", "status"),
    [(980, "pass"), (1000, "warn"), (1020, "warn"), (1040, "warn"), (1060, "fail")],
)
def test_a_queue_that_grows_slowly_is_told(per_s: float, status: str) -> None:
    check = check_of(Queue(per_s, 2).one_by_one(every(1 / 990)), "backlog")
    assert check.status == status, check


def rising(by: float, at_s: float) -> float:
    """The time of an answer that takes longer with the time of its request."""
    return 0.01 + by * at_s


@pytest.mark.parametrize(
    ("per_s", "busy", "poisson"),
    [(50, 0.9, True), (1000, 0.9, True), (200, 0.9, False)],
)
def test_quarters_that_rise_by_chance_are_no_growth(
    per_s: float, busy: float, poisson: bool
) -> None:
    warned = 0
    for seed in range(200):
        queue = Queue(per_s, 1_000 / per_s, 1)
        queue.chance, queue.judged = random.Random(seed), False
        serve_s = partial(queue.chance.expovariate, per_s / busy)
        warned += check_backlog(queue.one_by_one(serve_s, poisson)).status != "pass"
    assert warned <= 10, f"{warned} of 200"


@pytest.mark.parametrize(
    ("capacity", "seconds"), [(198, 15), (198, 30), (198, 60), (990, 2), (990, 5), (9_900, 2)]
)
def test_one_percent_above_capacity_is_told(capacity: float, seconds: float) -> None:
    record = Queue(capacity / 0.99, seconds, 1).one_by_one(every(1 / capacity))
    check = check_of(record, "backlog")
    carried = re.search(r"carried ([\d,]+)/s of", check.why)
    assert check.status == "warn", check
    assert carried is not None, check
    assert int(carried[1].replace(",", "")) == pytest.approx(capacity, rel=0.001)
    assert bottleneck_text(record) == ""


def test_short_parts_do_not_make_even_answers_look_random() -> None:
    check = check_of(Queue(1005, 2, 0.5).one_by_one(every(1 / 1000)), "backlog")
    assert (check.status, "carried 1,000/s of" in check.why) == ("warn", True), check


def test_nothing_keeps_up_whose_latency_rises_all_the_time() -> None:
    for rises, said in ((0.0001, False), (0.0, True)):
        queue = Queue(200, 30, 1)
        queue.judged = False
        record = queue.at_once(partial(rising, rises))
        text = bottleneck_text(record.model_copy(update={"verdict": "valid"}))
        assert ("kept up" in text) is said, text


def test_a_pause_at_the_end_is_no_queue_that_grows() -> None:
    ends = Queue(1000, 5)
    record = ends.at_once(lambda at_s: max(0.005, 5.005 - at_s) if at_s > 4.8 else 0.005)
    check = check_of(record, "backlog")
    assert check.status == "pass", check
    assert record.flow is not None
    assert record.flow.backlog is not None
    assert record.flow.backlog.at_end > 0.02 * 5000


@pytest.mark.parametrize("seconds", [0.5, 0.8, 1.2, 2, 5])
@pytest.mark.parametrize("warmup_s", [0, 1, 3])
@pytest.mark.parametrize("kind", ["constant", "uniform", "exponential", "bimodal"])
def test_a_pipe_that_fills_is_no_queue(seconds: float, warmup_s: float, kind: str) -> None:
    queue = Queue(500, seconds, warmup_s)
    takes_s: dict[str, Callable[[float], float]] = {
        "constant": lambda _: 1.0,
        "uniform": lambda _: queue.chance.uniform(0.5, 1.5),
        "exponential": lambda _: queue.chance.expovariate(1.0),
        "bimodal": lambda _: 5.0 if queue.chance.random() < 0.2 else 0.01,
    }
    check = check_of(queue.at_once(takes_s[kind]), "backlog")
    assert check.status == "pass", check


def test_a_slow_start_is_no_queue_either() -> None:
    queue = Queue(1000, 4)
    check = check_of(queue.at_once(lambda at_s: 0.5 if at_s < 0.5 else 0.005), "backlog")
    assert check.status == "pass", check


@pytest.mark.parametrize("per_s", [50, 500, 5000])
@pytest.mark.parametrize("busy", [0.5, 0.8, 0.95])
def test_a_queue_that_walks_by_chance_does_not_grow(per_s: float, busy: float) -> None:
    for seed in range(10):
        queue = Queue(per_s, 2, 1)
        queue.chance = random.Random(seed)
        serve_s = partial(queue.chance.expovariate, per_s / busy)
        record = queue.one_by_one(serve_s, poisson=True)
        check = check_of(record, "backlog")
        assert check.status == "pass", (seed, check)


# --- stall


def frozen(freeze_ms: int, every_ms: int, p999_ms: float = 0.33, slots: int = 64) -> Record:
    """A server that freezes periodically for 9 s, under a closed loop."""
    times = 9_000 // every_ms
    usual, slow = 200_000, min(slots * times, 3 * slots)
    latency = histogram((round(p999_ms * MS), usual), (freeze_ms * MS, slow))
    good, asked = good_record(), usual + slow
    return good_record(
        histograms=good.histograms.model_copy(update={"latency": latency}),
        counts=counts(scheduled=asked, issued=asked, ok=asked, statuses={"200": asked}),
        slots=good.slots
        and good.slots.model_copy(
            update={"asked": slots, "means": (), "permitted_ns": slots * 9_000 * MS}
        ),
        flow=flow(
            window_ns=9_000 * MS,
            gaps={sparse_index(freeze_ms * MS): times, sparse_index(MS // 2): 9_000},
        ),
    )


@pytest.mark.parametrize(
    ("what", "record", "status", "expected"),
    [
        ("300 ms of 3 s", frozen(300, 3000), "warn", "p99 of about 27"),
        ("10 ms of 100 ms", frozen(10, 100), "warn", "p99 of about 9"),
        ("100 ms of 9 s", frozen(100, 9000), "warn", "p99 of about 1"),
        ("50 ms of 9 s", frozen(50, 9000), "pass", "0.5"),
        ("2 ms of 20 ms", frozen(2, 20), "pass", "0 %"),
        ("few connections", frozen(300, 3000, slots=4), "warn", "p99.9 is"),
        ("one connection", frozen(300, 3000, slots=1), "warn", "p99.9 is"),
        ("as many wait as p99.9 sees", frozen(300, 3000, slots=200), "warn", "p99 is"),
        ("a scheduler's", frozen(20, 1000, slots=200), "pass", "p99"),
        ("slow answers are usual", frozen(300, 3000, p999_ms=40), "pass", ""),
    ],
)
def test_a_server_that_stands_still_is_told(
    what: str, record: Record, status: str, expected: str
) -> None:
    check = check_of(record, "stall")
    assert (check.status, expected in check.why) == (status, True), (what, check)


def test_what_an_open_loop_would_have_shown_is_what_one_shows() -> None:
    known = decode_histogram(histogram((MS, 1_000)))
    for freeze_ms, every_ms in [(300, 3000), (50, 1000), (20, 1900)]:
        waits = [
            max(1, freeze_ms - at_ms) for at_ms in range(every_ms) for _ in range(10)
        ]  # with even arrivals, a request in the freeze waits for its end
        true_ms = sorted(waits)[math.ceil(0.99 * len(waits)) - 1]
        gaps: dict[float, int] = {freeze_ms * MS: 1}
        shown_ms = open_loop_ns(known, gaps, every_ms * MS) / MS
        assert abs(shown_ms - true_ms) <= 2, (freeze_ms, every_ms)
