"""Checks of the flow of requests: was the load as asked for, and did it flow evenly?

Pure functions of a record.
"""

from __future__ import annotations

import math

from trueload.machine.wakeups import LAG_FAIL_NS, LAG_WARN_NS
from trueload.protocol.plan import Duration, Open
from trueload.record import figures
from trueload.record.client import ClientEnd
from trueload.record.schema import Record
from trueload.stats import is_too_few
from trueload.units import NS_PER_S, format_count, format_duration, format_rate, format_share
from trueload.verdict.common import (
    DELAYS,
    Definition,
    Finding,
    graded,
    graded_beyond,
    is_closed,
    is_open,
    is_staged,
    not_applicable,
    too_short,
)

LITTLE_WARN, LITTLE_FAIL = 0.10, 0.25  # Little 1961: L = lambda W holds exactly; 10 % covers gaps
# No pool carries more than its ceiling, because the server answers no sooner than it was told to. A
# thousandth allows for the rounding of its clock.
CEILING_FAIL = 0.001
# A slot waits for its turn at the start, and is empty at the end of a run by requests. With fewer
# turns than these, that is more than a tenth of its time.
LITTLE_TURNS_MIN = 10
# A lag that is small against p50 does not show in it.
LAG_WARN_SHARE, LAG_FAIL_SHARE = 0.05, 0.10
# A recording may end in a burst, whose last requests wait for a connection.
BURST_NS = 100_000_000
RATE_WARN, RATE_FAIL = 0.01, 0.05  # a rate that is 5 % off is another rate
STANDARD_ERRORS = 3.0


def check_littles_law(record: Record) -> Finding:
    """Compare the time that requests were in flight with the time that the load permitted.

    By Little's law, throughput x mean time in flight is the mean number in flight. Both sides times
    the window compare sum(time) with ``slots.permitted_ns``. A request takes its slot from when it
    could be sent, so its time is the send lag plus the service time. Of requests of the warm-up,
    the part within the window counts; of those that end in the drain, the part after it does not.
    """
    service, slots, window_ns = record.service_ns, record.slots, record.window.window_ns
    if not is_closed(record):
        return not_applicable("the load is not a closed loop")
    if is_staged(record):
        return not_applicable("the load itself changes (--stages)")
    if slots is None or service.mean is None or service.stdev is None or service.mean == 0:
        return not_applicable("no service times were measured")
    if short := too_short(record):
        return not_applicable(short)
    if window_ns < 2 * service.mean or slots.permitted_ns == 0:
        return not_applicable("the window is shorter than two service times")
    mean_ns = service.mean + (figures.complete(record.histograms.send_lag).figures.mean or 0)
    in_flight = slots.permitted_ns / window_ns
    edges_ns = _at_edges_ns(record)
    spent_ns = mean_ns * service.count + (edges_ns or 0)
    # Older records do not have it. A request outstanding at the end took at most the drain, and on
    # average as long as the interval that a fixed moment falls into, E[s^2] / E[s].
    longest_ns = min(record.window.drain_ns, mean_ns + service.stdev**2 / mean_ns)
    doubt_ns = in_flight * longest_ns if edges_ns is None else 0.0
    above = spent_ns / (slots.permitted_ns + doubt_ns) - 1
    below = spent_ns / slots.permitted_ns - 1
    found = f"{spent_ns / window_ns:.1f} requests in flight on average, {in_flight:.1f} permitted"
    found += _emptied(record)
    if above > LITTLE_WARN:
        status, limit = graded(above, LITTLE_WARN, LITTLE_FAIL)
        return Finding(
            status,
            (
                f"{found}: more than the load permits, so replies were probably matched to the"
                " wrong requests"
            ),
            above,
            limit,
        )
    if below < -LITTLE_WARN and service.count < LITTLE_TURNS_MIN * slots.asked:
        few = f"{service.count / slots.asked:.1f} requests a slot"
        return not_applicable(f"{few} are mostly its first and its last")
    if below < -LITTLE_WARN:
        return Finding(
            "warn",
            (f"{found}: connections had too few requests in flight for part of the window"),
            below,
            -LITTLE_WARN,
        )
    return Finding("pass", found, below, LITTLE_WARN)


def _at_edges_ns(record: Record) -> int | None:
    """Return the time in the window of the warm-up's requests, less that of its own after it.

    None if it is not known, or the load ended before the window.
    """
    flow = record.flow
    if flow is None or flow.work.before_ns is None or flow.work.after_ns is None:
        return None
    if flow.whole_ns < record.window.window_ns:
        return None
    return flow.work.before_ns - flow.work.after_ns


def check_client_littles_law(record: Record, client: ClientEnd) -> Finding:
    """Compare answers per second with the most that the pools can carry: connections / wait."""
    rate = client.answered_per_s
    if rate is None:
        return not_applicable("the server saw nothing that took time")
    above = rate / client.ceiling_per_s - 1
    found = (
        f"{format_rate(rate, 'answers')}; the pools and a wait of {client.asked.wait_ms}"
        f" ms allow at most {format_count(client.ceiling_per_s)}/s"
    )
    if above > CEILING_FAIL:
        why = f"{found}: the client had more requests in flight at once than it was told to"
        return Finding("fail", why, above, CEILING_FAIL)
    return Finding("pass", found, above, CEILING_FAIL)


LITTLES_LAW = Definition(
    name="littles-law",
    order=40,
    compute=check_littles_law,
    of_client=check_client_littles_law,
    fault="either",
    meaning=(
        "Throughput times service time is the number of requests in flight (Little's law),"
        " and it must be the number that the load permits."
    ),
    remedy=(
        "Above: replies are matched to earlier requests, or a client has more in flight"
        " than it was told to; look at both. Below: slots stood empty; look at failures"
        " and reconnects. Opening and closing connections is not counted; where that"
        " takes much of the time, requests get this time without --close."
    ),
    per_host=True,
)


def _emptied(record: Record) -> str:
    """Say what else took the slots' time if each request has a connection of its own.

    No request is permitted on a slot without a connection. That is no fault, but it is mentioned if
    it took much time.
    """
    plan, slots, window_ns = record.plan, record.slots, record.window.window_ns
    if slots is None or not plan.generate.close or not isinstance(plan.window.stop, Duration):
        return ""
    whole_ns = slots.asked * window_ns
    empty_ns = max(0, whole_ns - slots.permitted_ns)
    if empty_ns < LITTLE_WARN * whole_ns:
        return ""
    set_ups = (record.connect_ns, record.handshake_ns)
    spent_ns = sum((times.mean or 0) * times.count for times in set_ups)
    connecting_ns = min(empty_ns, spent_ns)
    return (
        f"; besides, {connecting_ns / window_ns:.1f} of {slots.asked} slots were"
        f" connecting, and {(empty_ns - connecting_ns) / window_ns:.1f} were closing their"
        " connection or had none"
    )


def check_send_lag(record: Record) -> Finding:
    """Grade how late requests went out: the p99 of send - max(scheduled, free)."""
    lag_ns = record.generator.send_lag_p99_ns
    if not is_open(record):
        return not_applicable("the load is not an open loop")
    if lag_ns is None:
        return not_applicable("no request was sent")
    p50_ns = record.latency_ns.p50 or 0
    warn_ns = max(LAG_WARN_SHARE * p50_ns, LAG_WARN_NS)
    fail_ns = max(LAG_FAIL_SHARE * p50_ns, LAG_FAIL_NS)
    status, limit_ns = graded_beyond(lag_ns, warn_ns, fail_ns)
    sent = figures.complete(record.histograms.send_lag).count
    if sent and is_too_few("p99", sent):
        # One request decides, and its lag says little of the others.
        why = f"the latest request of {sent} was sent {format_duration(lag_ns)} late"
        return Finding("warn" if status == "fail" else status, why, lag_ns, limit_ns)
    why = (
        f"1 % of the requests were sent {format_duration(lag_ns)} or more later than they"
        " could have been"
    )
    return Finding(status, why, lag_ns, limit_ns)


SEND_LAG = Definition(
    name="send-lag",
    order=60,
    compute=check_send_lag,
    of_client="the client sends when it can: nothing is scheduled",
    fault="generator",
    moves=DELAYS,
    meaning="When the generator sends late, its own delay counts as latency of the server.",
    remedy="Give the generator CPUs of its own (--cpus) or more --threads, or lower the --rate.",
    spoiled="the generator sent late",
    per_host=True,
)


def check_rate_reached(record: Record) -> Finding:
    """Grade the part of the schedule that was not sent in the time it was scheduled for."""
    load, counts, window_ns = record.plan.window.load, record.counts, record.window.window_ns
    if not isinstance(load, Open):
        return not_applicable("the load is not an open loop")
    if counts.scheduled == 0 or window_ns <= 0:
        return not_applicable("no request was scheduled")
    short = counts.unsent / counts.scheduled
    if not isinstance(record.plan.window.stop, Duration):
        # By count everything is sent in the end; a shortfall shows in the time that it took.
        least_ns = _scheduled_ns(load, counts.scheduled)
        least_ns += BURST_NS if recorded_ns(load) else 0
        short = max(short, 1 - least_ns / sending_ns(record))
    status, limit = graded(short, RATE_WARN, RATE_FAIL)
    why = (
        f"{format_rate(offered_per_s(record), 'requests')} offered,"
        f" {format_count(sent_per_s(record))}/s sent"
    )
    why += f": {format_share(short)} short" if status != "pass" else ""
    return Finding(status, why, max(0.0, short), limit)


RATE_REACHED = Definition(
    name="rate-reached",
    order=80,
    compute=check_rate_reached,
    of_client="the client sends when it can: no rate was asked for",
    fault="load",
    meaning=(
        "If fewer requests were sent than scheduled, the figures are those of a lower rate"
        " than the one asked for."
    ),
    remedy=(
        "Use more --connections, so that slow answers hold up fewer requests, or lower the --rate."
    ),
    spoiled="the generator was the limit",
    per_host=True,
)


def offered_per_s(record: Record) -> float:
    """The rate of an open loop's schedule: over the window, or as asked for if it ends by count.

    A count of sessions says nothing about their requests, which are scheduled when they are sent.
    """
    load, window_ns = record.plan.window.load, record.window.window_ns
    by_count = not isinstance(record.plan.window.stop, Duration) and record.sessions is None
    if isinstance(load, Open) and by_count:
        if span_ns := recorded_ns(load):
            return record.counts.scheduled * NS_PER_S / span_ns
        return load.stages[0].from_
    return record.counts.scheduled * NS_PER_S / window_ns if window_ns > 0 else 0.0


def recorded_ns(load: Open) -> int:
    """Return how long recorded traffic takes as it is sent, in ns; 0 for another schedule."""
    return sum(stage.ns for stage in load.stages) if load.arrivals == "recorded" else 0


def sent_per_s(record: Record) -> float:
    """The rate at which an open loop sent, over the time in which it did."""
    return record.counts.issued * NS_PER_S / sending_ns(record)


def sending_ns(record: Record) -> float:
    """Return how long an open loop sent, in ns.

    A window by count lasts until the last answer. The time of that answer, as long as the longest
    one or a timeout, is no sending time. It is subtracted as far as that does not cut the schedule.
    """
    load, window_ns = record.plan.window.load, record.window.window_ns
    by_time = isinstance(record.plan.window.stop, Duration)
    by_time |= record.sessions is not None
    if not isinstance(load, Open) or by_time or not record.counts.scheduled:
        return window_ns
    last_ns = record.service_ns.max or 0
    if any(name.startswith("timeout.") for name in record.counts.failed):
        last_ns = max(last_ns, record.plan.generate.timeout_ns)
    return max(window_ns - last_ns, min(window_ns, _scheduled_ns(load, record.counts.scheduled)))


def _scheduled_ns(load: Open, requests: int) -> float:
    """Return how long a schedule of so many requests takes at one rate, or as recorded, in ns.

    With random arrivals it is an upper limit: the sum of n exponential gaps has a standard
    deviation of its mean / sqrt(n).
    """
    if span_ns := recorded_ns(load):
        return span_ns
    spread = 0.0 if load.arrivals == "constant" else STANDARD_ERRORS / math.sqrt(requests)
    return requests / load.stages[0].from_ * (1 + spread) * NS_PER_S
