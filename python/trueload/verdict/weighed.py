"""The waits of a closed loop, weighed by the time that they take.

A place is what a request in flight takes: a connection, or one of its streams. A request that comes
at a random time finds a place within a wait of length L with the share count x L of the time of all
places, and waits for the rest of it. So a pause of the server, in which few requests are sent, has
the weight that a schedule would give it. Answers that are slow by themselves have a large weight,
too, but a schedule meets them as often as they are. Only waits that end together are pauses:
soon behind each other, or in the same seconds. Pure.
"""

from __future__ import annotations

import math
from bisect import bisect_right

from trueload.buckets import Buckets
from trueload.protocol.flow import Flow
from trueload.protocol.plan import Measurement
from trueload.record.schema import Record
from trueload.record.stalls import our_stalls
from trueload.stats import merge_sparse, sparse_bounds
from trueload.units import NS_PER_S

CHANCE = 0.001  # how often slow answers may end together by chance
GROUPS = (2.0, 4.0, 8.0, 16.0, 32.0)  # waits that end together
# The engine counts waits by length, in powers of two from 2^23 ns on, and those that follow another
# within a sixteenth of it. How many answers come so soon is known to within a factor of two.
LONG_SHIFT, SOON_PART, LIKELIER = 23, 16, 3.0
LEVELS = 8  # the lengths that are judged, at most times


def place_ns(record: Record, known: Buckets) -> float:
    """Return the time of all places in the window, in ns."""
    twice, _ = known.moments
    permitted_ns = record.slots.permitted_ns if record.slots is not None else 0
    return max(permitted_ns, twice / 2, 1)


def long_waits(known: Buckets, beyond_ns: float) -> dict[float, int]:
    """Return the waits that are longer, by their length in ns."""
    first = bisect_right(known.highs, beyond_ns)
    parts = zip(known.lows[first:], known.highs[first:], known.counts[first:], strict=True)
    return {(low + high) / 2: count for low, high, count in parts}


def left_share(record: Record, known: Buckets, waits: dict[float, int], beyond_ns: float) -> float:
    """Return the share of the places' time in which more than this is left of one of these waits.

    Waits in which our own generator was paused are not the server's.
    """
    left_ns = math.fsum(count * max(0.0, ns - beyond_ns) for ns, count in waits.items())
    stood = our_stalls(record)
    ours_ns = math.fsum(each.requests * max(0.0, each.length_ns - beyond_ns) for each in stood)
    return max(0.0, left_ns - ours_ns) / place_ns(record, known)


def pauses(record: Record, known: Buckets, beyond_ns: float) -> dict[float, int]:
    """Return those of the longer waits that end together, beyond chance.

    Waits between two powers of two are judged by themselves: a short pause says nothing of answers
    that are slow for longer.
    """
    found, waits = dict[float, int](), long_waits(known, beyond_ns)
    for power in {int(ns).bit_length() - 1 for ns in waits}:
        these = {ns: count for ns, count in waits.items() if int(ns) >> power == 1}
        followed = _follow_each_other(record, sum(these.values()), known.total, power - LONG_SHIFT)
        if followed or _end_together(record, max(beyond_ns, 1 << power), 2 << power):
            found |= these
    return found


def all_at_once(known: Buckets, beyond_ns: float, slots: int) -> float:
    """Return the share of the window in which all slots are within longer waits by chance.

    It holds if each slot waits independently of the others.
    """
    twice, _ = known.moments
    return (known.twice_above(beyond_ns) / max(1, twice)) ** slots


def requests_in_unit(of: Record | Measurement) -> float:
    """Return how many requests chance makes slow together: those of a session, else one."""
    sessions = of.sessions
    if sessions is None:
        return 1.0
    # A session that is under way has sent half of its requests.
    count = sessions.ok + sessions.failed + sessions.unfinished / 2
    return max(1.0, of.counts.ok / max(1.0, count))


def _end_together(record: Record, from_ns: float, to_ns: float) -> bool:
    """Whether the waits of these lengths end in some seconds rather than in others.

    By chance their number in a second is Poisson's. If they end in groups it is spread more widely,
    as by the negative binomial distribution. The likelihood ratio of both is 1 / p or more in at
    most a share p of all cases (Ville 1939).
    """
    unit, found = requests_in_unit(record), []
    for each in record.whole_seconds():
        if each.t_s * NS_PER_S >= from_ns:  # before that no wait can have been so long
            settled = merge_sparse([each.latency])
            first, end = (bisect_right(settled.lows, ns) for ns in (from_ns, to_ns))
            found.append((each.ok / unit, sum(settled.counts[first:end]) / unit))
    answers, slow = (math.fsum(each) for each in zip(*found, strict=True)) if found else (0, 0)
    if not slow:
        return False
    # Fewer answers than usual do not make a slow one more likely.
    usual = answers / len(found)
    weights = [max(count, usual) for count, _ in found]
    expected = [slow * weight / math.fsum(weights) for weight in weights]
    logs = [
        math.fsum(_log_ratio(n, mean, group) for (_, n), mean in zip(found, expected, strict=True))
        for group in GROUPS
    ]
    return max(logs) - math.log(len(GROUPS)) >= -math.log(CHANCE)


def _log_ratio(count: float, mean: float, group: float) -> float:
    """Return how much likelier a count is in groups of so many than one by one, as a logarithm."""
    size = mean / (group - 1)
    grouped = math.lgamma(count + size) - math.lgamma(size) - size * math.log(group)
    return grouped + count * math.log(1 - 1 / group) - count * math.log(mean) + mean


def _follow_each_other(record: Record, waits: int, answers: int, level: int) -> bool:
    """Whether waits of this level end soon behind each other more often than by chance.

    Those of one pause do so within a small part of its length. By chance an answer behind a long
    one is as seldom long as any other. Pipelined requests, and those of a session, are slow
    together. The engine counts what is longer, too; without any in between, a lower level counts
    the same waits.
    """
    flow, generate = record.flow, record.plan.generate
    if flow is None or not 0 <= level < len(flow.work.together):
        return False
    levels = (*flow.work.together, (0, 0))
    longer, depth = levels[level + 1], 1 if generate.http2 is not None else generate.pipeline
    units, in_unit = (levels[level][0] - longer[0]) / depth, requests_in_unit(record)
    for lower in range(level + 1):
        if levels[lower][0] != levels[level][0]:
            continue
        groups = units * depth - max(0, levels[lower][1] - longer[1])
        soon = _soon_before(flow, answers, (1 << LONG_SHIFT + lower) / SOON_PART) / depth
        expected = units * waits / answers * soon / in_unit
        if _is_unlikely((units - groups) / in_unit, expected):
            return True
    return False


def _is_unlikely(count: float, expected: float) -> bool:
    """Whether a count is far larger than expected by the upper tail of Poisson's distribution, as
    bounded by Chernoff (1952)."""
    if not expected or count < LIKELIER * expected:
        return False
    return count * math.log(count / expected) - count + expected >= -math.log(CHANCE / LEVELS)


def _soon_before(flow: Flow, answers: int, soon_ns: float) -> float:
    """Return how many answers come in such a time before one, on average.

    Longer silent times are left out, as many answers may come at once between them.
    """
    lengths = {sum(sparse_bounds(index)) / 2: count for index, count in flow.gaps.items()}
    silent = {ns: count for ns, count in lengths.items() if ns > soon_ns}
    groups_ns = sum(silent.values()) * soon_ns
    left_ns = flow.whole_ns - math.fsum(ns * count for ns, count in silent.items()) + groups_ns
    return answers * soon_ns / max(left_ns, soon_ns)
