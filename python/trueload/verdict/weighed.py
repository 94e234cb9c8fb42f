"""The waits of a closed loop, weighed by the time that they take.

A place is what a request in flight takes: a connection, or one of its streams. A request that comes
at a random time finds a place within a wait of length L with the share count x L of the time of all
places, and waits for the rest of it. So a pause of the server, in which few requests are sent, has
the weight that a schedule would give it. Answers that are slow by themselves have a large weight,
too, but a schedule meets them as often as they are. Only waits that belong together are pauses:
they end together, all places wait at once, or each slot has its turn. Pure.
"""

from __future__ import annotations

import math
from bisect import bisect_right

from trueload.buckets import Buckets
from trueload.protocol.plan import Measurement
from trueload.record.schema import Record
from trueload.record.stalls import our_stalls
from trueload.stats import merge_sparse, sparse_bounds
from trueload.units import NS_PER_S

CHANCE = 0.001  # how often slow answers may end together by chance
GROUPS = (2.0, 4.0, 8.0, 16.0, 32.0)  # waits that end together
# Of the variance that chance gives the slots. The engine rounds their answers by up to a fifth, and
# a few slots have equally many slow answers by chance.
ALIKE_MOST, ALIKE_LEAST = 0.5, 0.05


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


def left_share(record: Record, known: Buckets, beyond_ns: float) -> float:
    """Return the share of the places' time in which more than this is left of a wait.

    Waits in which our own generator stood still are not the server's.
    """
    waits = long_waits(known, beyond_ns).items()
    left_ns = math.fsum(count * max(0.0, ns - beyond_ns) for ns, count in waits)
    stood = our_stalls(record)
    ours_ns = math.fsum(each.requests * max(0.0, each.length_ns - beyond_ns) for each in stood)
    return max(0.0, left_ns - ours_ns) / place_ns(record, known)


def belong_together(record: Record, known: Buckets, beyond_ns: float) -> bool:
    """Whether chance does not explain how the waits that are longer are spread."""
    return (
        _at_once(record, known, beyond_ns)
        or _end_together(record, beyond_ns)
        or _are_shared_evenly(record, known)
    )


def all_at_once(known: Buckets, beyond_ns: float, slots: int) -> float:
    """Return the share of the window in which all slots are within longer waits by chance.

    It holds if each slot waits independently of the others.
    """
    twice, _ = known.moments
    return (known.twice_above(beyond_ns) / max(1, twice)) ** slots


def _at_once(record: Record, known: Buckets, beyond_ns: float) -> bool:
    """Whether nobody was answered for as long, and not by chance."""
    flow, slots = record.flow, record.slots
    if flow is None or slots is None:
        return False
    if not any(sparse_bounds(index)[0] > beyond_ns for index in flow.gaps):
        return False
    by_chance = all_at_once(known, beyond_ns, slots.asked)
    return by_chance * flow.whole_ns / beyond_ns <= CHANCE


def requests_in_unit(of: Record | Measurement) -> float:
    """Return how many requests chance makes slow together: those of a session, else one."""
    sessions = of.sessions
    if sessions is None:
        return 1.0
    # A session that is under way has sent half of its requests.
    count = sessions.ok + sessions.failed + sessions.unfinished / 2
    return max(1.0, of.counts.ok / max(1.0, count))


def _end_together(record: Record, beyond_ns: float) -> bool:
    """Whether the long waits end in some seconds rather than in others.

    By chance their number in a second is Poisson's. If they end in groups it is spread more widely,
    as by the negative binomial distribution. The likelihood ratio of both is 1 / p or more in at
    most a share p of all cases (Ville 1939).
    """
    unit, found = requests_in_unit(record), []
    for each in record.whole_seconds():
        if each.t_s * NS_PER_S >= beyond_ns:  # before that no wait can have been so long
            settled = merge_sparse([each.latency])
            first = bisect_right(settled.lows, beyond_ns)
            found.append((each.ok / unit, sum(settled.counts[first:]) / unit))
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


def _are_shared_evenly(record: Record, known: Buckets) -> bool:
    """Whether the slots' mean times differ far less than by chance, as if each had its turn.

    If answers fall to n slots by chance, the squared differences of the means, each in its standard
    error, add up to a chi-square of n - 1 degrees of freedom. Its lower tail is bounded by Chernoff
    (1952).
    """
    slots = record.slots
    if slots is None or not slots.means:
        return False
    bounds = [(*sparse_bounds(mean), n, alike) for mean, n, alike in slots.means]
    means = [((low + high) / 2, n, alike) for low, high, n, alike in bounds]
    degrees = sum(alike for _, _, alike in means) - 1
    weight = sum(n * alike for _, n, alike in means)
    twice, squares = known.moments
    mean_ns = twice / 2 / max(1, known.total)
    variance = squares / 4 / max(1, known.total) - mean_ns**2
    if degrees < 1 or not weight or variance <= 0:
        return False
    middle = math.fsum(ns * n * alike for ns, n, alike in means) / weight
    apart = math.fsum((ns - middle) ** 2 * n * alike for ns, n, alike in means)
    apart += math.fsum((high - low) ** 2 / 12 * n * alike for low, high, n, alike in bounds)
    part = apart * known.total / weight / variance / degrees
    if part > ALIKE_MOST:
        return False
    part = max(part, ALIKE_LEAST)
    return degrees / 2 * (math.log(part) + 1 - part) <= math.log(CHANCE)
