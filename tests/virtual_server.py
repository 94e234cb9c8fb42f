"""Records of closed loops against servers that exist only in virtual time.

A server is a function of the slot, the time of its request and the generator of chance. It returns
when the answer is there, in seconds.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from samples import PHASE, counts, flow, good_record, slots, sparse_index
from samples import histogram as encoded
from trueload.protocol.flow import Work
from trueload.protocol.plan import Duration
from trueload.protocol.tick import Second
from trueload.record import figures
from trueload.record.schema import Record
from trueload.verdict import judge

S = 1_000_000_000
SHORTEST_NS = 1 << 23
Serve = Callable[[int, float, random.Random], float]


def fixed(takes_s: float) -> Serve:
    """Each answer takes this long."""
    return lambda slot, at, chance: at + takes_s


def exponential(mean_s: float) -> Serve:
    """Each answer takes an exponential time."""
    return lambda slot, at, chance: at + chance.expovariate(1 / mean_s)


def lognormal(median_s: float, sigma: float) -> Serve:
    """Each answer takes a lognormal time."""
    return lambda slot, at, chance: at + median_s * chance.lognormvariate(0, sigma)


def at_random(usual_s: float, share: float, slow_s: float) -> Serve:
    """This share of the answers takes longer, by chance."""
    return lambda slot, at, chance: at + (slow_s if chance.random() < share else usual_s)


def in_queue(workers: int, takes: Serve) -> Serve:
    """One queue for so many workers."""
    free = [0.0] * workers

    def serve(slot: int, at: float, chance: random.Random) -> float:
        worker = min(range(workers), key=free.__getitem__)
        free[worker] = takes(slot, max(at, free[worker]), chance)
        return free[worker]

    return serve


def pausing(workers: int, pause_s: float, every_s: float, takes: Serve) -> Serve:
    """Each worker has its slots, and is paused for ``pause_s`` of every ``every_s``, in turn."""

    def serve(slot: int, at: float, chance: random.Random) -> float:
        began_s = every_s * (slot % workers) / workers
        left = takes(slot, at, chance) - at
        while True:
            into = (at - began_s) % every_s
            if into < pause_s:
                at, into = at + pause_s - into, pause_s
            if left <= every_s - into:
                return at + left
            at, left = at + every_s - into, left - (every_s - into)

    return serve


def no_rest(slot: int, chance: random.Random) -> float:
    """A slot that sends at once."""
    return 0.0


def some(slots: int, these: Serve, others: Serve) -> Serve:
    """The first slots have one server, all others another."""
    return lambda slot, at, chance: (these if slot < slots else others)(slot, at, chance)


def closed_loop(
    serve: Serve,
    asked: int,
    window_s: float,
    seed: int = 1,
    rest: Callable[[int, random.Random], float] = no_rest,
    **changes: Any,
) -> Record:
    """The record of so many slots that each send as soon as they are answered, and have rested."""
    chance = random.Random(seed)
    due = [(slot * 1e-6, slot) for slot in range(asked)]
    times: Counter[int] = Counter()
    seconds: defaultdict[int, Counter[int]] = defaultdict(Counter)
    waits: defaultdict[int, list[int]] = defaultdict(list)
    ends, took = [], [[0, 0] for _ in range(asked)]
    window_ns = round(window_s * S)
    long: list[tuple[int, int]] = []
    while due:
        at, slot = heapq.heappop(due)
        end = serve(slot, at, chance)
        ns = max(1, round((end - at) * S))
        times[ns] += 1
        seconds[int(end)][sparse_index(ns)] += 1
        if ns >= S:
            waits[slot].append(ns)
        if ns >= SHORTEST_NS:
            long.append((round(end * S), ns))
        took[slot][0] += 1
        took[slot][1] += ns
        ends.append(end)
        again = end + rest(slot, chance)
        if again < window_s:
            heapq.heappush(due, (again, slot))
    answered = len(ends)
    ends.sort()
    gaps = Counter(
        sparse_index(round((two - one) * S))
        for one, two in pairwise([0.0, *(end for end in ends if end < window_s)])
        if two - one > 0.000_26
    )
    means = Counter((sparse_index(ns // count), _at_least(count)) for count, ns in took)
    good = good_record()
    latency = encoded(*sorted(times.items()))
    found = {"latency": latency, "service": latency, "send_lag": None, "receive_lag": None}
    fields: dict[str, Any] = {
        "plan": good.plan.model_copy(
            update={"window": PHASE.model_copy(update={"stop": Duration(ns=window_ns)})}
        ),
        "histograms": good.histograms.model_copy(update={**found, "round_trip": None}),
        "counts": counts(scheduled=answered, issued=answered, ok=answered),
        "series": tuple(
            Second(t_s=at, ok=each.total(), failed=0, latency=dict(each))
            for at, each in sorted(seconds.items())
        ),
        "slots": slots(
            asked=asked,
            answers_sum=answered,
            answers_sum_squares=sum(count * count for count, _ in took),
            answers_min=min(count for count, _ in took),
            answers_max=max(count for count, _ in took),
            means=tuple((*key, alike) for key, alike in means.items()),
            long_waits_ns=tuple(max(each) for each in waits.values()),
            long_waits=tuple(
                (took[slot][0], *(sum(ns >= S << level for ns in each) for level in range(6)))
                + (0,) * 6
                for slot, each in waits.items()
            ),
            permitted_ns=asked * window_ns,
        ),
        "flow": flow(
            window_ns=window_ns, gaps=dict(gaps), work=Work(together=together(long, window_ns))
        ),
        "window": good.window.model_copy(update={"window_ns": window_ns}),
    }
    record = good.model_copy(update={**fields, **changes})
    return judge(figures.with_figures(record))


def together(waits: list[tuple[int, int]], window_ns: int) -> tuple[tuple[int, int], ...]:
    """Count long waits as the engine does, from when they end and how long they take."""
    part_ns = 1 << max(0, (window_ns - 1).bit_length() - 8)
    found: dict[int, list[int]] = {}
    for end_ns, ns in sorted(waits):
        if end_ns // part_ns == (end_ns - ns) // part_ns or end_ns >= window_ns:
            continue
        for level in range((ns // SHORTEST_NS).bit_length()):
            count, followers, last_ns = found.get(level, (0, 0, -S))
            follows = end_ns < last_ns + (SHORTEST_NS >> 4 << level)
            found[level] = [count + 1, followers + follows, end_ns]
    return tuple((count, followers) for _, (count, followers, _) in sorted(found.items()))


def _at_least(count: int) -> int:
    """A count rounded down as the engine does, to three bits."""
    shift = max(0, count.bit_length() - 3)
    return count >> shift << shift
