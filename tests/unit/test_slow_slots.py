"""Whether slowness belongs to connections: slow answers by chance, and slots that starve."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from samples import connections, distribution, good_record, histogram, slots
from trueload.record.schema import Status
from trueload.stats import log_binomial_tail
from trueload.units import NS_PER_S
from trueload.verdict.slots import check_starvation, starved

Slot = tuple[int, int]  # how many requests it had, and how many of them were slow
RUNS = 300


def by_chance(rng: random.Random, slow: float, window_s: float, fast_s: float = 0.005) -> Slot:
    """A slot of a closed loop: each answer takes 1 s with probability ``slow``, else 5 ms."""
    ended = long = 0
    while window_s > 0:
        fast = int(math.log(1 - rng.random()) / math.log(1 - slow))
        left = math.ceil(window_s / fast_s)
        if fast >= left:
            return ended + left, long
        ended, long, window_s = ended + fast + 1, long + 1, window_s - fast * fast_s - 1
    return ended, long


def by_turns(rng: random.Random, slow: float, count: int) -> Slot:
    """A slot of an open loop: it has ``count`` turns, however long it waited."""
    return count, sum(rng.random() < slow for _ in range(count))


def judged(found: Sequence[Slot], wait_s: float = 1.2, lost: int = 0, hung: bool = False) -> Status:
    """The status of the check for these slots, with waits of ``wait_s`` in a window of one second.

    The first ``lost`` waits were on connections that were never answered. If ``hung``, no answer
    took as long.
    """
    wait_ns = round(wait_s * NS_PER_S)
    waiting = [(ended, slow) for ended, slow in found if slow]
    unanswered = [number < lost for number in range(len(waiting))]
    levels = [wait_s >= 1 << level for level in range(6)]
    spread = slots(
        asked=len(found),
        answers_sum=sum(ended for ended, _ in found),
        long_waits_ns=tuple(wait_ns for _ in waiting),
        long_waits=tuple(
            (ended, *(slow * level for level in levels), *(lost * level for level in levels))
            for (ended, slow), lost in zip(waiting, unanswered, strict=True)
        ),
    )
    more = connections(reconnects=sum(unanswered))
    service = distribution(histogram((NS_PER_S if hung else wait_ns, 1)))
    record = good_record(slots=spread, connections=more, service_ns=service)
    return check_starvation(record).status


@pytest.mark.parametrize("slow", [0.0005, 0.001, 0.01, 0.2])
@pytest.mark.parametrize("window_s", [1, 5, 10])
def test_slow_answers_that_fall_by_chance_are_not_the_connections(
    slow: float, window_s: int
) -> None:
    rng = random.Random(f"{slow} {window_s}")
    runs = [[by_chance(rng, slow, window_s) for _ in range(64)] for _ in range(RUNS // 10)]
    assert all(judged(run) == "pass" for run in runs)


def test_slow_answers_by_chance_are_not_the_connections_at_a_rate() -> None:
    rng = random.Random(7)
    runs = [[by_turns(rng, 0.002, 31) for _ in range(64)] for _ in range(RUNS)]
    assert all(judged(run) == "pass" for run in runs)


SERVED = (1_000, 0)


@pytest.mark.parametrize(
    ("sentence", "found", "expected"),
    [
        ("six that had one request each", [(1, 1)] * 6 + [SERVED] * 58, "fail"),
        ("six that waited twice", [(2, 2)] * 6 + [SERVED] * 58, "fail"),
        ("one that waited each time", [(4, 4)] + [SERVED] * 63, "fail"),
        ("half of them, answered once", [(2, 1)] * 10 + [SERVED] * 10, "fail"),
        ("one of a thousand", [(4, 4)] + [SERVED] * 999, "warn"),
        ("six among slow answers by chance", [(4, 4)] * 6 + [(800, 1)] * 58, "fail"),
        ("a slow answer or two on each", [(800, 1)] * 40 + [(600, 2)] * 24, "pass"),
        ("one slow answer of all", [(500, 1)] + [SERVED] * 63, "pass"),
        ("one slow answer, and no time for more", [(1, 1)] + [(200, 0)] * 63, "pass"),
        ("all wait alike", [(10, 5)] * 64, "pass"),
    ],
)  # fmt: skip
def test_slots_that_wait_while_others_are_served_are_starved(
    sentence: str, found: list[Slot], expected: str
) -> None:
    assert judged(found) == expected, sentence


@pytest.mark.parametrize(
    ("sentence", "found", "expected"),
    [
        ("answered once, and never again", [(2, 1)] + [SERVED] * 63, "warn"),
        ("the same, while others had very many", [(2, 1)] + [(100_000, 0)] * 63, "fail"),
        ("the same, of slots that had few answers, too", [(2, 1)] + [(20, 0)] * 63, "warn"),
        ("a request of many that was never answered", [(800, 1)] + [SERVED] * 63, "warn"),
        ("slow answers that fall by chance, not all of them in time", [(800, 1)] * 64, "warn"),
    ],
)
def test_a_slot_that_waits_in_vain_to_the_end_of_the_window_is_told(
    sentence: str, found: list[Slot], expected: str
) -> None:
    assert judged(found, hung=True) == expected, sentence
    if expected == "warn":
        assert judged(found) == "pass", sentence


def test_a_slot_that_hangs_is_told_however_slow_the_others_are() -> None:
    slow = distribution(histogram((200_000_000, 1_000)))
    spread = slots(asked=64, long_waits_ns=(5 * NS_PER_S,), long_waits=((2, 1, 1, 1, *(0,) * 9),))
    changes = {"slots": spread, "latency_ns": slow, "service_ns": slow}
    assert check_starvation(good_record(**changes)).status == "warn", "no 100 medians"
    slower = distribution(histogram((700_000_000, 1_000)))
    changes |= {"latency_ns": slower, "service_ns": slower}
    assert check_starvation(good_record(**changes)).status == "pass", "it may be a queue"


def test_connections_that_are_never_answered_are_starved_though_their_slots_are_served_later() -> (
    None
):
    for count in (1, 6):
        served_later = [(800, 1)] * count + [SERVED] * (64 - count)
        assert judged(served_later, lost=count) == "fail", count
    assert judged(served_later) == "pass", "slow answers of connections that were kept"
    among_slow = [(800, 1)] * 40 + [SERVED] * 24
    assert judged(among_slow, lost=1) == "pass", "one of many such requests is the first by chance"
    # One connection per request: each has one answer, and chance decides which are slow.
    each_its_own = [(1, 1)] * 40 + [(1, 0)] * 24
    assert judged(each_its_own, lost=40) == "pass"


@pytest.mark.parametrize(
    ("count", "trials", "share"), [(1, 1, 0.01), (3, 40, 0.001), (40, 40, 0.7), (9, 10, 0.5)]
)
def test_a_binomial_tail_is_bounded_from_above(count: int, trials: int, share: float) -> None:
    exact = sum(
        math.comb(trials, n) * share**n * (1 - share) ** (trials - n)
        for n in range(count, trials + 1)
    )
    assert exact <= math.exp(log_binomial_tail(count, trials, share)) * (1 + 1e-9) < 9 * exact


def test_slots_that_are_not_listed_are_taken_to_wait_like_the_others() -> None:
    waits = (2, 2, *(0,) * 11)
    listed = slots(
        asked=100_000,
        answers_sum=200_000,
        long_waits_ns=(NS_PER_S,) * 10_000,
        long_waits=(waits,) * 10_000,
    )
    service = distribution(histogram((NS_PER_S, 1)))
    assert check_starvation(good_record(slots=listed, service_ns=service)).status == "pass"


def test_only_waits_as_long_as_the_threshold_are_compared() -> None:
    """All slots have waits over 1 s, the tenth part of a hundred medians."""
    record = good_record(latency_ns=distribution(histogram((50_000_000, 10_000))))
    none = (0,) * 6
    usual = (100, 20, 10, 0, 0, 0, 0, *none)
    spread = slots(
        asked=64,
        answers_sum=6_004,
        long_waits_ns=(3_000_000_000,) * 60 + (9_000_000_000,) * 4,
        long_waits=(usual,) * 60 + ((1, 1, 1, 1, 1, 0, 0, *none),) * 4,
    )
    record = record.model_copy(update={"slots": spread})
    assert check_starvation(record).status == "fail"
    assert starved(spread, 0, 5 * NS_PER_S) == 4


def test_a_slot_that_is_never_answered_is_starved_at_once() -> None:
    spread = slots(asked=64, never_answered=1)
    assert check_starvation(good_record(slots=spread)).status == "fail"
    assert starved(spread, 0, NS_PER_S) == 1
