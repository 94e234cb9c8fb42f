"""Checks of how the work was spread over connections: were all there, and all served?

Pure functions of a record.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from trueload.protocol.connections import Slots
from trueload.protocol.plan import Closed, Open
from trueload.record import figures
from trueload.record.schema import Record, Status
from trueload.stats import Quantile, log_binomial_tail, log_evidence, sparse_bounds
from trueload.units import NS_PER_S, format_count, format_duration, format_share
from trueload.verdict.common import (
    HIDDEN_WAITS,
    Definition,
    Finding,
    in_one_line,
    is_closed,
    is_staged,
    not_applicable,
    times,
)
from trueload.verdict.weighed import long_waits, place_ns, requests_in_unit

STARVED_NS_MIN, STARVED_P50S = NS_PER_S, 100  # a wait that no queue of fair turns explains
STARVED_SHARE_FAIL = 0.01
# Of the places in flight: half of the share of slots that fails, as an edge of the window may cut
# half of the waits. A single wait may be an accident of the network.
PLACES_WARN, PLACES_WAITS_MIN = STARVED_SHARE_FAIL / 2, 2
WAIT_LEVELS = 6  # the number of lengths from which on the engine counts long waits
LISTED_MOST = 10_000  # slots with long waits that an engine lists
CHANCE = 0.001  # how often slow answers on random slots may be taken for the slots' own
UNANSWERED_CHANCE = 0.05  # the same for requests without an answer, which have failed in any case
SLOW_MEDIANS = 10  # neither load nor distance explains a larger multiple of the median
FAIR_WARN, FAIR_FAIL = 0.9, 0.5  # Jain, Chiu and Hawe 1984; 0.5 is as if half got nothing
STANDARD_ERRORS = 3.0
FAIR_REPLIES_MIN = 20  # below this, chance alone spreads the replies by more than 22 %
CONNECTIONS_FAIL = 0.01
# Shares of the connections opened. One in a hundred may be an accident of the network. A server
# that drops more carries another, smaller load on the others.
LOST_WARN, LOST_FAIL = 0.01, 0.02
# RFC 9112 9.6: a server ends a connection after `Connection: close`, or after its client's end. One
# that does neither keeps sockets that nobody uses.
UNENDED_WARN = 0.01
# The failures of an attempt to reconnect, in words.
NO_NEW_ONE = {
    "connect.refused": "were refused a new one",
    "connect.timeout": "got no answer to their attempt at a new one in time",
    "connect.unreachable": "found no way to the server for a new one",
    "timeout.tls": "got no answer to the handshake of a new one in time",
    "local.ports": "found no local port for a new one",
    "local.fds": "had no open file for a new one",
}
LOST_CLASSES = ("empty", "reset", "truncated", "ws.closed")


def starvation_ns(p50: Quantile) -> int:
    """The wait from which on a slot is starved: max(1 s, 100 x p50), 1 s without a p50."""
    return max(STARVED_NS_MIN, STARVED_P50S * (p50.known or 0))


def long_waits_ns(slots: Slots, threshold_ns: int) -> list[int]:
    """The longest wait of each slot that waited at least this long while others were served."""
    return [wait_ns for wait_ns in slots.long_waits_ns if wait_ns >= threshold_ns]


class LongWaits(NamedTuple):
    """What a slot with long waits has counted, from 1 s on by length: see ``_level``."""

    ended: int  # its requests that ended, however long they took
    at_least: tuple[int, ...]  # its waits of at least the length
    unanswered: tuple[int, ...]  # of these, connections lost without any answer


def _long_waits(slots: Slots) -> list[LongWaits]:
    return [
        LongWaits(counts[0], counts[1 : 1 + WAIT_LEVELS], counts[1 + WAIT_LEVELS :])
        for counts in slots.long_waits
    ]


def falls_by_chance(
    slots: Slots, threshold_ns: int, chance: float = CHANCE, unit: float = 1.0
) -> bool:
    """Whether the long waits are spread over the slots as chance spreads slow answers.

    Then the answers are slow, and not the slots. ``unit`` requests are slow together, as those of a
    session are. False for older records, where it is unknown.
    """
    if len(slots.long_waits) != len(slots.long_waits_ns):
        return False
    level = _level(threshold_ns)
    slow = [(waits.ended, waits.at_least[level]) for waits in _long_waits(slots)]
    slow_sum = sum(count for _, count in slow)
    if len(slow) >= LISTED_MOST:
        slow_sum = slow_sum * slots.asked // len(slow)  # as if unlisted slots waited as often
    # ``answers_sum`` misses waits that ended without an answer, and may be below their number.
    pool = ((0.0, max(0, slots.answers_sum - slow_sum)), (1.0, slow_sum))
    suspects = [
        (in_units(ended, unit), count / unit, 1)
        for (ended, count), wait_ns in zip(slow, slots.long_waits_ns, strict=True)
        if wait_ns >= threshold_ns
    ]
    return log_evidence(pool, slots.asked, suspects) < -math.log(chance)


def in_units(requests: int, unit: float) -> int:
    """Return of how many units so many requests are, the last of them perhaps cut short."""
    return math.ceil(requests / unit)


def hung_ns(record: Record) -> list[int]:
    """Return the waits that lasted to the window's end without an answer, for most of the window.

    Such a wait is longer than any answer took, and than waiting for a turn explains.
    """
    service, window_ns = record.service_ns, record.window.window_ns
    longest_ns = max(window_ns // 2, service.max or 0, SLOW_MEDIANS * (service.known("p50") or 0))
    waits = record.slots.long_waits_ns if record.slots is not None else ()
    return [wait_ns for wait_ns in waits if wait_ns > longest_ns]


def unanswered(slots: Slots, reconnects: int, threshold_ns: int) -> int:
    """Return how many connections were lost without any answer after a wait this long.

    Their slots may be served on the next connection. 0 if chance explains them, as slow requests
    that happened to be the first on their connections.
    """
    connections, long_waits = slots.asked + reconnects, _long_waits(slots)
    for level in range(_level(threshold_ns), WAIT_LEVELS):
        slow = sum(waits.at_least[level] for waits in long_waits)
        found = sum(waits.unanswered[level] for waits in long_waits)
        # ``answers_sum`` misses waits that ended without an answer, and may be below their number.
        first = min(1.0, connections / max(1, slots.answers_sum, slow))
        if log_binomial_tail(found, slow, first) < math.log(UNANSWERED_CHANCE):
            return found
    return 0


def _level(threshold_ns: int) -> int:
    """The place of the longest counted length (1, 2, 4... s) that is not above the threshold."""
    return min((threshold_ns // NS_PER_S).bit_length(), WAIT_LEVELS) - 1


def starved(slots: Slots, reconnects: int, threshold_ns: int, unit: float = 1.0) -> int:
    """Return how many slots were starved: by a long wait that is not chance, or for ever.

    The groups may overlap, and it is not known by how much. So the largest of them is returned, as
    a lower limit.
    """
    waits = long_waits_ns(slots, threshold_ns)
    by_chance = bool(waits) and falls_by_chance(slots, threshold_ns, unit=unit)
    in_vain = min(slots.asked, unanswered(slots, reconnects, threshold_ns))
    return max(0 if by_chance else len(waits), in_vain, slots.never_answered)


def check_starvation(record: Record) -> Finding:
    """Check for slots that waited far longer than others, were never answered, or no longer."""
    slots = record.slots
    if slots is None or slots.asked == 0:
        return not_applicable("no slot asked")
    found, hung = _of_waits(record, slots), hung_ns(record)
    if found.status != "pass" or not hung:
        return _of_places(record) or found if found.status == "pass" else found
    served = f"for {format_duration(max(hung))} while others were served"
    why = f"{len(hung)} of {times(slots.asked, 'slot')} stopped getting answers, {served}"
    unit = requests_in_unit(record)
    by_chance = falls_by_chance(slots, min(hung), UNANSWERED_CHANCE, unit)
    return Finding("warn" if by_chance else "fail", why, len(hung) / slots.asked, 0)


def _of_waits(record: Record, slots: Slots) -> Finding:
    """Check for slots that waited beyond the threshold, or were never answered."""
    threshold_ns = starvation_ns(record.latency_ns.at("p50"))
    waits = long_waits_ns(slots, threshold_ns)
    share = len(waits) / slots.asked
    if slots.never_answered:
        why = f"{slots.never_answered} of {times(slots.asked, 'slot')} asked and got no answer"
        return Finding("fail", why, slots.never_answered / slots.asked, 0)
    if not waits:
        why = f"no slot waited {format_duration(threshold_ns)} while others were served"
        return Finding("pass", why, 0, 0)
    served = f"{format_duration(max(waits))} while others were served"
    reconnects = record.connections.reconnects
    if in_vain := unanswered(slots, reconnects, threshold_ns):
        opened = slots.asked + reconnects
        why = f"{in_vain} of {times(opened, 'connection')} got no answer in up to {served}"
        return Finding("fail", why, in_vain / opened, 0)
    why = f"{len(waits)} of {times(slots.asked, 'slot')} waited up to {served}"
    if falls_by_chance(slots, threshold_ns, unit=requests_in_unit(record)):
        return Finding("pass", f"{why}; chance alone spreads slow answers as unevenly", 0, 0)
    if share >= STARVED_SHARE_FAIL:
        return Finding("fail", why, share, STARVED_SHARE_FAIL)
    return Finding("warn", why, share, 0)


def _of_places(record: Record) -> Finding | None:
    """Judge the places in flight over HTTP/2, where no stream outlives its request.

    So it cannot be told whether chance chose those that wait. But if percentiles show no such wait,
    places that get nothing are hidden. None if there are too few of them.
    """
    service = figures.service(record)
    p999, threshold_ns = service.percentile(0.999), starvation_ns(record.latency_ns.at("p50"))
    if record.http2 is None or p999.known is None or p999.too_few or p999.known >= threshold_ns:
        return None
    waits = long_waits(service.known, threshold_ns)
    share = sum(ns * count for ns, count in waits.items()) / place_ns(record, service.known)
    if share < PLACES_WARN or sum(waits.values()) < PLACES_WAITS_MIN:
        return None
    why = (
        f"{format_share(share)} of the requests in flight waited for up to"
        f" {format_duration(max(waits))}, while p99.9 is {format_duration(p999.known)}"
    )
    return Finding("warn", why, share, PLACES_WARN)


STARVATION = Definition(
    name="starvation",
    order=90,
    compute=check_starvation,
    of_client="which request waited for a connection only the client knows",
    fault="subject",
    moves=HIDDEN_WAITS,
    meaning=(
        "A server that serves a few connections quickly and the others not at all still"
        " shows a high throughput."
    ),
    remedy="Look at how the server accepts and polls connections; compare fewer --connections.",
    per_host=True,
)


def check_slow_connections(record: Record) -> Finding:
    """Check for slots with a mean service time far above the median slot's, and not by chance."""
    slots, load = record.slots, record.plan.window.load
    if not isinstance(load, Open | Closed):
        return not_applicable("the connections take turns")
    if is_closed(record) and is_staged(record):
        return not_applicable("connections take part for different times (--stages)")
    found = figures.connection_service(record).known
    if slots is None or not found.total:
        return not_applicable("no connection was answered, as far as is known")
    if found.total == 1:
        return not_applicable("one connection has no other to be slower than")
    # With two halves this is the quicker one's.
    median_ns = found.at_rank((found.total + 1) // 2)
    slow = [
        (answers, answers * low_ns, count)
        for mean, answers, count in slots.means
        if (low_ns := sparse_bounds(mean)[0]) > SLOW_MEDIANS * median_ns
    ]
    usual = f"the median {format_duration(median_ns)}"
    if not slow:
        why = f"the slowest connection took {format_duration(found.greatest)} on average, {usual}"
        return Finding("pass", why, 0, 0)
    count = sum(alike for _, _, alike in slow)
    mean_ns = sum(total_ns / answers * alike for answers, total_ns, alike in slow) / count
    connections = f"{format_count(count)} of {times(found.total, 'connection')}"
    why = f"{connections} took {format_duration(mean_ns)} on average, {usual}"
    pool, unit = figures.service(record).known, requests_in_unit(record)
    values = [
        ((low + high) / 2 * unit, n)
        for low, high, n in zip(pool.lows, pool.highs, pool.counts, strict=True)
    ]
    share = count / found.total
    in_sum = [(in_units(answers, unit), total_ns, alike) for answers, total_ns, alike in slow]
    if log_evidence(values, found.total, in_sum) < -math.log(CHANCE):
        return Finding("pass", f"{why}; chance alone spreads slow answers like this", share, 0)
    return Finding("warn", why, share, 0)


SLOW_CONNECTIONS = Definition(
    name="slow-connections",
    order=95,
    compute=check_slow_connections,
    of_client="how long a connection takes to answer only the client knows",
    fault="subject",
    moves=HIDDEN_WAITS,
    meaning=(
        "Percentiles over all requests hide slow connections, because these contribute few"
        " requests."
    ),
    remedy=(
        "Look at which worker or backend of the server has the slow connections;"
        " connection_service_ns in the record has their times."
    ),
    per_host=True,
)


def jain_index(asked: int, total: int, squares: int, spread: float = 1.0) -> float | None:
    """Jain's index of replies per slot, without the spread that chance alone explains.

    It is 1 / (1 + max(0, CV^2 - spread / mean)); None without replies. The spread of independent
    requests is 1.
    """
    if asked == 0 or total == 0:
        return None
    mean = total / asked
    squared_cv = max(0.0, squares / asked - mean**2) / mean**2
    return 1 / (1 + max(0.0, squared_cv - spread / mean))


def chance_spread(record: Record) -> float:
    """Return the variance / mean of the replies of a slot by chance.

    In a scenario a slow session delays all of its requests. By renewal theory the sessions of a
    slot then vary as the square of the coefficient of variation of their times. A few slots differ
    by more: three standard errors of their variance are allowed.
    """
    unit, took, slots = requests_in_unit(record), record.service_ns, record.slots
    if unit == 1.0 or not took.mean or slots is None:
        return 1.0
    errors = STANDARD_ERRORS * math.sqrt(2 / max(1, slots.asked))
    return (1 + errors) * unit * max(1.0, ((took.stdev or 0.0) / took.mean) ** 2)


def check_fairness(record: Record) -> Finding:
    """Grade how evenly the replies were spread over the slots."""
    slots = record.slots
    if not is_closed(record):
        return not_applicable("the load is not a closed loop")
    if is_staged(record):
        return not_applicable("connections take part for different times (--stages)")
    if any(host.joined_s is not None for host in record.hosts):
        return not_applicable("hosts joined later, so connections were open for different times")
    if slots is None or slots.asked == 0:
        return not_applicable("no slot asked")
    if slots.asked == 1:
        return not_applicable("one slot has nobody to share with")
    mean = slots.answers_sum / slots.asked
    if mean < FAIR_REPLIES_MIN:
        few = f"{mean:.1f} replies a slot are too few to compare; it takes {FAIR_REPLIES_MIN}"
        return not_applicable(few)
    spread = chance_spread(record)
    sums = (slots.answers_sum, slots.answers_sum_squares)
    index = jain_index(slots.asked, *sums, spread) or 0.0
    status: Status = "pass" if index >= FAIR_WARN else "warn" if index >= FAIR_FAIL else "fail"
    limit = FAIR_FAIL if status == "fail" else FAIR_WARN
    why = (
        f"{format_count(slots.answers_min)} to {format_count(slots.answers_max)} replies a slot,"
        f" fairness {index:.2f}"
    )
    return Finding(status, why, index, limit)


FAIRNESS = Definition(
    name="fairness",
    order=100,
    compute=check_fairness,
    of_client="how requests are spread over connections is the client's business",
    fault="subject",
    moves=HIDDEN_WAITS,
    meaning="Percentiles over all requests hide that some connections get most of the replies.",
    remedy="Look at how the server spreads connections over its threads; use a longer --duration.",
    per_host=True,
)


def lost_share(record: Record) -> float:
    """Return the share of opened connections that broke with a request on them, or at once.

    The latter were closed as soon as they were accepted. It includes the warm-up, where a server
    that drops connections soon shows it. Pipelined requests fail together.
    """
    counts = (record.counts, record.warmup.counts)
    requests = sum(each.failed.get(name, 0) for each in counts for name in LOST_CLASSES)
    reconnects = record.connections.reconnects + record.warmup.reconnects
    opened = record.connections.requested + reconnects
    dropped = record.connections.dropped + record.warmup.dropped
    broken = requests / record.plan.generate.pipeline + dropped
    # A connection whose handshake is reset is broken, but was not opened.
    return broken / max(opened, broken) if opened else 0.0


def _unended_share(record: Record) -> float:
    """The share of the window's connections that the server never ended."""
    found = record.connections
    return found.unended / max(1, found.requested + found.reconnects)


def _unended(record: Record) -> str:
    if _unended_share(record) < UNENDED_WARN:
        return ""
    count = times(record.connections.unended, "connection")
    return (
        f"the server left {count} open after its answer and after the generator had closed"
        " its side: they were reset"
    )


def _idle_closed(record: Record) -> str:
    """A text about idle connections that were closed.

    The server need not keep them, but then the measured load is not the one that was asked for.
    """
    idle = record.idle
    if idle is None or idle.held is None or idle.held >= idle.connections:
        return ""
    gone = idle.connections - idle.held
    return f"{format_count(gone)} of {times(idle.connections, 'idle one')} were closed"


def idle_closed_text(record: Record) -> str:
    """A text about what the server does with idle connections; empty if it ended none.

    It may end them (RFC 9112 9.5); ``stale`` judges what that costs.
    """
    after_ns = record.connections.idle_closed_after_ns
    if after_ns is None:
        return ""
    count = times(record.connections.idle_closed, "time")
    return f"the server ends connections that are idle for {after_ns / NS_PER_S:.1f} s ({count})"


def _out_of_files(record: Record) -> str:
    files = record.connections.server_files
    if files is None:
        return ""
    return f"the server had reached its limit of {format_count(files)} open files"


def _origins_unreached(record: Record) -> str:
    """A text about origins that were not reached.

    This matters however few their connections are: what was asked of such an origin was not
    measured.
    """
    urls = [origin.url for origin in record.origins or () if origin.is_unreached]
    if not urls:
        return ""
    more = f" and {len(urls) - 1} more" if len(urls) > 1 else ""
    return f"none to {urls[0]}{more} was established"


def _outage(record: Record, slots: int) -> str:
    """A text about slots that lost their connection, with the failures of their attempts.

    It counts the failures that requests were charged with.
    """
    counts = (record.counts, record.warmup.counts)
    met = {
        name: sum(each.failed.get(name, 0) for each in counts)
        for name in NO_NEW_ONE
        if any(each.failed.get(name) for each in counts)
    }
    how = NO_NEW_ONE[next(iter(met))] if len(met) == 1 else "got no new one"
    each = ", ".join(f"{name} {format_count(count)}" for name, count in met.items())
    how += f" ({each})" if len(met) > 1 else ""
    if met and all(name.startswith("local.") for name in met):
        return f"{slots} lost their connection and {how}"
    lasted_ns = record.connections.outage_ns
    away = f"away for {format_duration(lasted_ns)}" if lasted_ns else "gone at the end"
    return f"the server was {away}: {slots} of the connections {how}"


def check_connections(record: Record) -> Finding:
    """Check for missing connections and unreached origins.

    Slots count that were never established, were down for long, or lost a server that went away; so
    do connections that the server dropped.
    """
    found = record.connections
    if found.requested == 0:
        return not_applicable("no connection was asked for")
    if found.down is None or found.outages is None:
        return not_applicable("the engine ended before it could say")
    missing = found.requested - found.established
    share = (missing + found.down) / found.requested
    outage_share = found.outages / found.requested
    parts = [
        f"{missing} of {found.requested} were never established" if missing else "",
        f"{found.down} of {found.requested} were down for more than 1 s" if found.down else "",
        (unreached := _origins_unreached(record)),
        _idle_closed(record),
        _out_of_files(record),
        _unended(record),
    ]
    if unreached:
        return Finding("fail", in_one_line(parts), share, 0)
    if outage_share >= CONNECTIONS_FAIL:
        parts.append(_outage(record, found.outages))
        why = in_one_line(parts)
        return Finding("fail", why, max(share, outage_share), CONNECTIONS_FAIL)
    lost = lost_share(record)
    if lost >= LOST_WARN:
        parts.append(f"the server dropped {format_share(lost)} of those that were opened")
    if lost >= LOST_FAIL and share < CONNECTIONS_FAIL:
        why = in_one_line(parts)
        return Finding("fail", why, lost, LOST_FAIL)
    if not any(parts):
        parts = [f"all {found.requested} were there", idle_closed_text(record)]
        return Finding("pass", in_one_line(parts), 0, 0)
    why = in_one_line(parts)
    status: Status = "fail" if share >= CONNECTIONS_FAIL else "warn"
    return Finding(status, why, share, CONNECTIONS_FAIL if status == "fail" else 0)


CONNECTIONS = Definition(
    name="connections",
    order=110,
    compute=check_connections,
    of_client="how many connections a client has is in over-pool",
    fault="subject",
    meaning="The load that was asked for needs all its connections, for the whole window.",
    remedy=(
        "Look at the server's log, backlog and file limit (`ulimit -n`), and whether it"
        " restarted. A server that leaves connections open ignores `Connection: close`"
        " and the end of what its client sends."
    ),
    per_host=True,
)
