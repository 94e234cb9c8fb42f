"""The check `backlog`: did a queue grow that would be longer in a longer run?

A pipe that fills is no queue. If answers take one second each, nothing is answered in the first
second, and yet the server keeps up. The two differ in how long requests wait. In a pipe, requests
scheduled late take as long as those scheduled early. By Little's law, no more than rate x that time
are unanswered. In a queue the late ones take longer. So the time of an answer without a queue is
the least mean latency of any quarter of the schedule, and rate x that time may be outstanding.

If the rate changes, as in a replay that ends in a burst, rate x time is not known. There the server
has carried the load if the requests of the last quarter took no longer than those of another.

A pause at the window's end leaves requests outstanding, too, perhaps 2 % of a short window, but
that is no growing queue. A queue that grew all the time made the last quarter wait as well. Where
each quarter waited longer than the one before, and chance does not explain that, the queue grew,
however little. Pure.
"""

from __future__ import annotations

import math
import statistics
from itertools import pairwise

from trueload.protocol.flow import Backlog, Flow
from trueload.protocol.plan import Open
from trueload.record.schema import Record
from trueload.record.throughput import LAG_MOST, is_even, lag_ns
from trueload.units import NS_PER_S, format_count, format_share
from trueload.verdict.common import (
    HIDDEN_WAITS,
    Definition,
    Finding,
    graded_beyond,
    not_applicable,
    times,
)

# The limits for throughput: a load 5 % off is another load, and 2 % is more than figures differ by.
BACKLOG_WARN, BACKLOG_FAIL = 0.02, 0.05
# With random arrivals or services a queue's length is a random walk. After n requests it has a
# standard deviation of sqrt(n x dispersion). Dispersion is the mean of those of arrivals and of
# services, each the variance / mean of the number in a part of time: 1 if random, 0 if even (Cox
# and Lewis 1966, 4.5). The number that fills a pipe varies by its square root, at both ends.
WALK = 3.0
SPANS = 32  # parts of a window whose numbers of answers give the dispersion
# In standard deviations, where each quarter took longer. Although quarters depend on each other,
# less than 1 % of simulated queues warn that have random arrivals and services (M/M/1) at 90 % of
# the capacity; at 99 % some 4 % do.
RISE = 1.5
RISE_ANSWERS = 10  # in a shorter window, in answers one after the other, few are independent
RISING = 1.1  # the last quarter to the first: less does not matter to anybody
# In a queue that grew evenly, the last quarter waited 7/8 as long as its last request.
LAST_QUARTER = 0.5
QUARTER_MIN = 10  # a mean of fewer answers says little


def check_backlog(record: Record) -> Finding:
    """Grade the growth of the unanswered requests over the window, as a share of those scheduled.

    Requests that only fill the pipe are subtracted.
    """
    load, scheduled = record.plan.window.load, record.counts.scheduled
    if not isinstance(load, Open):
        return not_applicable("the load is not an open loop")
    found = record.flow.backlog if record.flow is not None else None
    if record.flow is None or found is None:
        return not_applicable("it is not known when answers came")
    span_ns = record.flow.whole_ns
    if scheduled == 0 or span_ns <= 0:
        return not_applicable("no request was scheduled")
    even = is_even(load)
    # Without a queue an answer takes the least mean latency of a quarter.
    alone_ns = min(_means_ns(found, QUARTER_MIN if even else 1), default=None)
    if alone_ns is None:
        return not_applicable("too few answers to tell what one takes without a queue")
    peak_per_s = max(value for stage in load.stages for value in (stage.from_, stage.to))
    growth = found.at_end - found.at_start
    filling = max(0.0, peak_per_s * alone_ns / NS_PER_S - found.at_start)
    share = (growth - filling) / scheduled
    by_chance = scheduled * _dispersion(load, record.flow)
    walk = WALK * math.sqrt(by_chance + found.at_start + found.at_end) / scheduled
    warn = max(BACKLOG_WARN, walk) if _has_waited(found, growth * span_ns / scheduled) else math.inf
    status, limit = graded_beyond(share, warn, max(BACKLOG_FAIL, walk))
    if status == "pass" and is_rising(found) and span_ns >= RISE_ANSWERS * alone_ns:
        rise, deviation = _rise(record, found, by_chance)
        if rise > RISE * deviation:
            status, share, limit = "warn", rise / scheduled, RISE * deviation / scheduled
            growth = round(rise)
    text = (
        f"{times(found.at_start, 'request')} unanswered at the beginning,"
        f" {format_count(found.at_end)} at the end, of {format_count(scheduled)} scheduled"
    )
    kept_up = not even and lag_ns(found, record.latency_ns.stdev or 0.0) <= LAG_MOST * span_ns
    if status == "pass" or kept_up:
        return Finding("pass", text, share, max(BACKLOG_WARN, walk))
    asked, carried = (n * NS_PER_S / span_ns for n in (scheduled, scheduled - growth))
    measured = record.throughput.ok_per_s
    # One figure, not two that differ by what the window's edges cut.
    if measured is not None and measured < asked and record.counts.ok == record.counts.issued:
        carried = measured
    # Where requests were never sent, all connections were busy: there may be too few of them.
    over = f" over {times(record.connections.established, 'connection')}"
    why = (
        f"the server carried {format_count(carried)}/s of {format_count(asked)}/s asked"
        f"{over if record.counts.unsent else ''}; latency is that of a growing queue, and a longer"
        f" run would show more ({text}: {format_share(share)} more than an unqueued server has)"
    )
    return Finding(status, why, share, limit)


BACKLOG = Definition(
    name="backlog",
    order=85,
    compute=check_backlog,
    of_client="the client sends when it can: nothing is scheduled",
    fault="subject",
    moves=HIDDEN_WAITS,
    meaning=(
        "A server that cannot keep up builds a queue, so the measured latency depends on how"
        " long the run lasts."
    ),
    remedy=(
        "Use a lower --rate, or more --connections if the server had CPU time left; --limit"
        " searches for the highest rate."
    ),
)


def is_rising(backlog: Backlog) -> bool:
    """Whether the requests of each quarter of the schedule took longer than those before."""
    means = _means_ns(backlog)
    if len(means) < len(backlog.answered) or means[-1] < RISING * means[0]:
        return False
    return all(before < after for before, after in pairwise(means))


def _rise(record: Record, backlog: Backlog, walk: float) -> tuple[float, float]:
    """Return by how many requests a queue grew, and the standard deviation by chance.

    The growth follows from the line through the mean latencies of the quarters. By chance a random
    walk rises, and so do means of latencies that vary. Arrivals and answers add to a walk, and its
    slope has 6/5 of the variance of its end.
    """
    means, scheduled = _means_ns(backlog), record.counts.scheduled
    middle = (len(means) - 1) / 2
    squares = sum((at - middle) ** 2 for at in range(len(means)))
    slope_ns = sum((at - middle) * ns for at, ns in enumerate(means)) / squares
    per_ns = scheduled / record.flow.whole_ns if record.flow is not None else 0.0
    spread_ns = (record.latency_ns.stdev or 0.0) * len(means) / math.sqrt(squares)
    of_means = (per_ns * spread_ns) ** 2 * len(means) / max(1, sum(backlog.answered))
    variance = 1.2 * 2 * walk + backlog.at_start + backlog.at_end + of_means
    return per_ns * slope_ns * len(means), math.sqrt(variance)


def _means_ns(backlog: Backlog, answers_min: int = QUARTER_MIN) -> list[float]:
    """The mean latencies of the quarters of the schedule that have enough answers."""
    quarters = zip(backlog.latency_sum_ns, backlog.answered, strict=True)
    return [ns / count for ns, count in quarters if count >= answers_min]


def _dispersion(load: Open, flow: Flow) -> float:
    """The dispersion of arrivals and answers: 0 if even, 1 if random, more if in bursts."""
    # The last part is cut short. Parts are added up: in a short one an even stream has 8 answers or
    # 9, which would look random.
    parts, each = flow.answered[:-1], max(1, len(flow.answered) // SPANS)
    answered = [sum(parts[at : at + each]) for at in range(0, len(parts) - each + 1, each)]
    mean = statistics.fmean(answered) if len(answered) > 1 else 0.0
    # Successive differences: a rate that changes slowly adds nothing (von Neumann 1941).
    squares = [(after - before) ** 2 for before, after in pairwise(answered)]
    answers = statistics.fmean(squares) / 2 / mean if mean > 0 else 1.0
    return ((0.0 if load.arrivals == "constant" else 1.0) + answers) / 2


def _has_waited(backlog: Backlog, waits_ns: float) -> bool:
    """Whether the last quarter waited long, as in a queue whose last request waits ``waits_ns``."""
    ns, answered = backlog.latency_sum_ns[-1], backlog.answered[-1]
    return answered > 0 and ns / answered >= LAST_QUARTER * waits_ns
