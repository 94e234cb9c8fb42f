"""Throughput: the rate is right however long an answer takes compared with the window.

Its possible error is known, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from random import Random
from statistics import pstdev

import pytest
import samples
from trueload.protocol.flow import Backlog, Flow, Work
from trueload.protocol.plan import Closed, Duration, Measurement, Open, Phase, Requests, Stage
from trueload.protocol.tick import Second
from trueload.record.schema import Tail
from trueload.record.throughput import (
    filling_ns,
    make_tail,
    of_closed,
    of_open,
    pipe_ns,
    standard_error,
    stretch_of,
)
from trueload.stats import Distribution
from trueload.verdict.window import check_window

S = 1_000_000_000
SLOTS, PARTS = 16, 160
Answer = tuple[float, float]
"""When it was sent and read, in answers' mean times since the window began."""


def warmup(ns: int) -> Phase:
    return Phase(id="warmup", load=Closed(), stop=Duration(ns=ns), connections=1, at_ns=0)


def slots(took: Callable[[], float], before: float, window: float) -> Iterator[Answer]:
    """The answers of slots in a closed loop that began ``before`` the window."""
    for _ in range(SLOTS):
        at = -before
        while at < window:
            sent, at = at, at + took()
            if at > 0:
                yield sent, at


def queue(before: float, window: float) -> Iterator[Answer]:
    """The answers of a server with one queue, when all slots send at once."""
    for number in range(math.ceil(SLOTS * (before + window + 1))):
        read = (number + 1) / SLOTS - before
        sent = max(-before, read - 1)
        if read > 0 and sent < window:
            yield sent, read


def flow_of(answers: Sequence[Answer], window: float) -> Flow:
    """The flow as the engine counts it, by the rule of `meter::Work`."""
    part_ns = round(window * S / PARTS)
    width, counts = part_ns / S, [0.0] * PARTS
    for sent, read in answers:
        first, last = max(0, int(sent / width)), min(PARTS - 1, int(read / width))
        for part in range(first, last + 1):
            inside = min(read, (part + 1) * width) - max(sent, part * width)
            counts[part] += max(0.0, inside) / (read - sent)
    work = Work(part_ns=part_ns, answers=tuple(counts))
    return Flow(whole_ns=part_ns * PARTS, part_ns=part_ns, answered=(), gaps={}, work=work)


def times_of(answers: Sequence[Answer]) -> Distribution:
    """The times of the window's own requests, or of those under way if it has none."""
    own = [answer for answer in answers if answer[0] > -1e-9] or answers
    took = [(read - sent) * S for sent, read in own]
    mean = sum(took) / len(took)
    spread = math.sqrt(sum((each - mean) ** 2 for each in took) / len(took))
    return Distribution(count=len(took), mean=mean, stdev=spread)


def rates(found: Sequence[Sequence[Answer]], before: float, window: float) -> list[float]:
    """The answers per second and slot, for each of these runs."""
    of = warmup(round(before * S)) if before else None
    each = [
        of_closed(flow_of(answers, window), times_of(answers).mean or 0.0, of) for answers in found
    ]
    return [stretch.per_s / SLOTS for stretch in each]


RATIOS = (0.001, 0.01, 0.09, 0.1, 0.18, 0.22, 0.33, 0.476, 0.7, 1.0, 1.3, 2.0)
"""The time that an answer takes, of the window."""


@pytest.mark.parametrize("ratio", RATIOS)
def test_answers_that_keep_step_count_alike_in_any_window(ratio: float) -> None:
    for before in (0.0, 0.4, 3.3):
        answers = list(slots(lambda: 1.0, before, 1 / ratio))
        (rate,) = rates([answers], before, 1 / ratio)
        assert rate == pytest.approx(1.0, rel=0.02), f"{before} before"


@pytest.mark.parametrize("ratio", [each for each in RATIOS if each > 0.01])
def test_answers_of_any_times_count_alike_behind_a_warmup(ratio: float) -> None:
    """The mean of many runs is within 2 % of the truth, or within three standard errors."""
    chance = Random(round(ratio * 1000))
    window = 1 / ratio
    for name, took in (
        ("uniform", lambda: chance.uniform(0.5, 1.5)),
        ("exponential", lambda: chance.expovariate(1.0)),
        ("two kinds", lambda: 0.5 if chance.random() < 0.8 else 3.0),
    ):
        runs = 40 if window < 20 else 10
        found = rates([list(slots(took, 8.0, window)) for _ in range(runs)], 8.0, window)
        mean = sum(found) / runs
        spread = math.sqrt(sum((rate - mean) ** 2 for rate in found) / (runs - 1) / runs)
        assert abs(mean - 1.0) < 0.02 + 3 * spread, f"{name}: {mean}"


def test_a_common_start_does_not_pass_for_speed() -> None:
    """A load that begins with the window has its short requests answered first.

    Counted from the start, exponential times or a queue would give 5 % too much at ten answers a
    slot.
    """
    chance = Random(7)
    for window in (10.0, 15.0, 30.0):
        runs = [list(slots(lambda: chance.expovariate(1.0), 0.0, window)) for _ in range(60)]
        found = rates(runs, 0.0, window)
        assert sum(found) / len(found) == pytest.approx(1.0, abs=0.03), f"{window} answers a slot"
        (rate,) = rates([list(queue(0.0, window))], 0.0, window)
        assert rate == pytest.approx(1.0, rel=0.02), f"a queue, {window} answers a slot"


def test_only_what_a_warmup_did_not_fill_is_left_out() -> None:
    rows = [
        (S, None, 10 * S, 2 * S),
        (S, None, 2 * S, 1.5 * S),
        (S, warmup(S), 10 * S, S),
        (S, warmup(2 * S), 10 * S, 0),
        (5_000_000, warmup(S), 5 * S, 0),
    ]
    for took_ns, before, window_ns, left_out_ns in rows:
        assert filling_ns(took_ns, before, window_ns) == left_out_ns


def test_a_stretch_ends_where_its_window_does() -> None:
    rows = [
        ((1, 2, 3, 4), 0, 40, True, 10.0),
        ((1, 2, 3, 4), 0, 35, True, 10.0),
        ((1, 2, 3, 4), 0, 35, False, 8.0),
        ((1, 2, 3, 4), 11, 40, True, 7.0),
        ((1, 2), 0, 40, False, 3.0),
        ((), 0, 40, False, 0.0),
    ]
    for counts, from_ns, to_ns, exact, total in rows:
        found = stretch_of(counts, 10, from_ns, to_ns, exact)
        assert found.total == total, f"{counts} from {from_ns} to {to_ns}"
    assert stretch_of((1, 2, 3, 4), 10, 11, 40, True).per_s == 7 * S / 20


def asked(rate: float, first: float, growth: float = 0.0) -> Backlog:
    """Latencies that grow by ``growth`` from each quarter of a second to the next."""
    latencies = [first + growth * (quarter + 0.5) for quarter in range(4)]
    counts = (round(rate / 4),) * 4
    sums = tuple(round(count * each * S) for count, each in zip(counts, latencies, strict=True))
    return Backlog(at_start=0, at_end=0, answered=counts, latency_sum_ns=sums)


def test_an_open_loop_is_as_fast_as_its_server_answers() -> None:
    stage = Stage.model_validate({"ns": S, "from": 1000, "to": 1000})
    load = Open(stages=(stage,), arrivals="constant", seed=1)
    for name, answered, backlog, at_start, expected in (
        ("at once", 1000, asked(1000, 0.001), 1, 1000),
        ("a queue grows", 500, asked(1000, 0.0, 0.25), 0, 500),
        ("a queue that grew in the warm-up", 500, asked(1000, 1.0, 0.25), 500, 500),
        ("a pipe fills", 600, asked(1000, 0.4), 0, 1000),
        ("a pipe is half full", 800, asked(1000, 0.4), 200, 1000),
        ("a pipe is full", 1000, asked(1000, 0.4), 400, 1000),
        ("an answer takes longer than the window", 0, asked(1000, 2.0), 0, 1000),
    ):
        # A pipe of 0.4 s answers nothing in its first 0.4 s, or what was under way before.
        empty = 4 - round(at_start / 100) if name.startswith("a pipe") else 0
        counts = (0,) * empty + (answered // (10 - empty),) * (10 - empty)
        changed = backlog.model_copy(update={"at_start": at_start})
        flow = Flow(whole_ns=S, part_ns=S // 10, answered=counts, gaps={}, backlog=changed)
        _, per_s = of_open(flow, load, 1000)
        assert per_s == pytest.approx(expected, rel=0.01), name
    assert pipe_ns(asked(1000, 0.0, 0.25)) == pytest.approx(0, abs=1)
    # A generator that could not send: only requests of the first quarter, which waited for it.
    unsent = Backlog(
        at_start=0, at_end=580, answered=(420, 0, 0, 0), latency_sum_ns=(180 * S, 0, 0, 0)
    )
    parts = (46, 49, 46, 40, 36, 36, 26, 33, 36, 69)
    flow = Flow(whole_ns=S, part_ns=S // 10, answered=parts, gaps={}, backlog=unsent)
    _, per_s = of_open(flow, load, 420)
    assert per_s == pytest.approx(420, rel=0.01)


def test_a_server_that_leaves_connections_waiting_carries_what_it_answers() -> None:
    """Half of the connections are answered at once, and the others after them: 80,000/s asked of
    a server of 35,000/s, and slow from the beginning, as a pipe is."""
    rate, carried, span = 8_000, 3_500, 2.0
    due = [number / rate for number in range(round(rate * span))]
    lucky, left = list(due[::2]), list(due[1::2])
    order = [*lucky[: round(carried * span)]]
    waiting = [*lucky[round(carried * span) :], *left]
    answers = [(at, max(at, number / carried)) for number, at in enumerate(order)]
    answers += [(at, span + number / carried) for number, at in enumerate(waiting)]
    flow, ok, spread_ns = served(answers, span)
    stage = Stage.model_validate({"ns": round(span * S), "from": rate, "to": rate})
    _, found = of_open(flow, Open(stages=(stage,), arrivals="constant", seed=1), ok, spread_ns)
    assert found == pytest.approx(carried, rel=0.01)


@pytest.mark.parametrize(("rate", "span"), [(1_500, 2.0), (20_000, 2.0), (20_000, 1.5)])
def test_a_pipe_of_times_by_chance_loses_nothing_that_is_under_way(rate: int, span: float) -> None:
    chance = Random(7)
    due = [number / rate for number in range(round(rate * span))]
    flow, ok, spread_ns = served([(at, at + chance.expovariate(1)) for at in due], span)
    stage = Stage.model_validate({"ns": round(span * S), "from": rate, "to": rate})
    _, found = of_open(flow, Open(stages=(stage,), arrivals="constant", seed=1), ok, spread_ns)
    assert found == pytest.approx(rate, rel=0.05)


def served(times: Sequence[Answer], span: float) -> tuple[Flow, int, float]:
    """The flow of an open loop of ``span`` seconds whose requests were due and answered at these
    times, the number of its answers, and the standard deviation of their times in ns."""
    answered, sums, parts = [0] * 4, [0] * 4, [0] * PARTS
    for due, read in times:
        quarter = min(3, int(due / span * 4))
        answered[quarter] += 1
        sums[quarter] += round((read - due) * S)
        if read < span:
            parts[int(read / span * PARTS)] += 1
    backlog = Backlog(
        at_start=0,
        at_end=sum(read > span for _, read in times),
        answered=tuple(answered),
        latency_sum_ns=tuple(sums),
    )
    flow = Flow(
        whole_ns=round(span * S),
        part_ns=round(span * S / PARTS),
        answered=tuple(parts),
        gaps={},
        backlog=backlog,
    )
    return flow, len(times), pstdev(read - due for due, read in times) * S


def ramp(first: float, last: float, span: float) -> list[float]:
    """When the requests of a ramp are due."""
    count, growth = round((first + last) / 2 * span), (last - first) / span
    if not growth:
        return [number / first for number in range(count)]
    return [(math.sqrt(first**2 + 2 * growth * at) - first) / growth for at in range(count)]


def one_by_one(due: Sequence[float], took: float) -> list[Answer]:
    """The answers of a server with one worker."""
    free, found = 0.0, []
    for at in due:
        free = max(at, free) + took
        found.append((at, free))
    return found


BURST = [*(0.01 * number for number in range(200)), *[2.0 - 1e-6] * 100]
STEP = [*ramp(10, 10, 2), *(2 + at for at in ramp(200, 200, 4))]
CHANCE = Random(11)


@pytest.mark.parametrize(
    ("name", "answers", "span", "per_s"),
    [
        ("a burst at the end", [(at, at + 0.05) for at in BURST], 2.0, 150),
        ("a ramp", [(at, at + 0.8) for at in ramp(10, 100, 20)], 20.0, 55),
        ("a short ramp", [(at, at + 0.8) for at in ramp(10, 100, 5)], 5.0, 55),
        ("a ramp down", [(at, at + 0.8) for at in ramp(100, 10, 5)], 5.0, 55),
        ("two steps", [(at, at + 0.8) for at in STEP], 6.0, 820 / 6),
        ("times by chance", [(at, at + CHANCE.expovariate(1)) for at in STEP], 6.0, 820 / 6),
        ("a ramp beyond what a server carries", one_by_one(ramp(100, 2000, 5), 1 / 990), 5.0, 781),
        ("a burst beyond it", one_by_one(BURST, 0.01), 2.0, 100),
    ],
)
def test_an_uneven_load_loses_nothing_that_is_under_way_unless_it_queues(
    name: str, answers: Sequence[Answer], span: float, per_s: float
) -> None:
    flow, ok, spread_ns = served(answers, span)
    stages = [
        Stage.model_validate({"ns": S, "from": 1, "to": 1}),
        Stage.model_validate({"ns": S, "from": 9, "to": 9}),
    ]
    load = Open(stages=tuple(stages), arrivals="constant", seed=1)
    _, found = of_open(flow, load, ok, spread_ns)
    assert found == pytest.approx(per_s, rel=0.02), name


def test_the_tail_of_a_number_of_requests_is_told_apart() -> None:
    """Windows of 1 s of which 100 ms count, in parts of 100 ms."""
    by_count = warmup(S).model_copy(update={"stop": Requests(count=1000)})
    for answered, failed_at_s, last in (
        ((990, 9, 0, 0, 0, 0, 0, 0, 0, 1), None, 1),
        ((990, 2, 0, 0, 0, 0, 5, 0, 0, 3), None, 8),
        ((990, 9, 0, 0, 0, 0, 0, 0, 0, 0), 1, 2),
        ((990, 9), None, 1),
    ):
        flow = Flow(whole_ns=S // 10, part_ns=S // 10, answered=answered, gaps={})
        failing = [Second(t_s=1, ok=0, failed=2, latency={})] if failed_at_s else []
        measured = Measurement.model_construct(window_ns=S, flow=flow, series=tuple(failing))
        assert make_tail(measured, by_count) == Tail(ns=9 * S // 10, last=last), answered
        assert make_tail(measured, warmup(S)) is None, "a duration has no tail"


def test_a_window_of_fewer_than_ten_answers_a_slot_warns() -> None:
    for answers, status in ((2.1, "warn"), (9.9, "warn"), (10.1, "pass"), (1000.0, "pass")):
        took_ns = samples.WINDOW_NS / answers
        record = samples.good_record()
        found = check_window(
            record.model_copy(
                update={
                    "service_ns": replace(record.service_ns, mean=took_ns),
                    "total_ns": Distribution(),
                    "throughput": record.throughput.model_copy(update={"ok_error_per_s": 300.0}),
                }
            )
        )
        assert found.status == status, found.why
        assert ("standard error of 3 %" in found.why) is (status == "warn"), found.why
        assert f"{answers:.1f} answers a slot" in found.why


def test_the_standard_error_is_about_what_runs_differ_by() -> None:
    chance = Random(3)
    for window, within in ((2.0, 2.0), (5.0, 2.0), (20.0, 1.6), (60.0, 1.6)):
        found, errors = [], []
        for _ in range(40):
            answers = list(slots(lambda: chance.expovariate(1.0), 8.0, window))
            stretch = of_closed(flow_of(answers, window), S, warmup(8 * S))
            found.append(stretch.per_s)
            errors.append(standard_error(stretch, times_of(answers)) or 0.0)
        mean = sum(found) / len(found)
        truth = math.sqrt(sum((rate - mean) ** 2 for rate in found) / (len(found) - 1))
        estimate = sum(errors) / len(errors)
        assert truth / 1.6 < estimate < truth * within * 1.3, (
            f"{window}: told {estimate}, true {truth}"
        )
    assert standard_error(stretch_of((), 10, 0, 40, True), Distribution()) is None
