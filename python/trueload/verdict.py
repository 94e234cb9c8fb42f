"""The verdict: each check a pure function of a record, all of them in one table.

A check says ``pass``, ``warn``, ``fail`` or, with the reason, ``n/a``; one *fail* makes the verdict
invalid, one *warn* suspect. Every ``why`` is one line with the figures that decided. Thresholds are
constants with their source; ``EXPLANATIONS`` holds, for people, what each check is for and what to
do about it. This module must not know how a trial is run or shown.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from trueload.plan import Counts
from trueload.record import Check, Distribution, Record, Status, Verdict
from trueload.units import format_count, format_cpu_list, format_duration, format_share

NS_PER_S = 1_000_000_000

# Every threshold below is design.md §6's; what stands behind it is said beside it.
ERRORS_WARN, ERRORS_FAIL = 0.001, 0.01  # the usual error budgets of 99.9 % and 99 %
LITTLE_WARN, LITTLE_FAIL = 0.10, 0.25  # Little 1961: L = lambda W holds exactly; 10 % covers gaps
GENERATOR_FULL = 0.95  # beyond this a thread has no slack left: it times its own queue
SERVER_FULL = 0.90  # a server as full as this would not have gone much faster
STARVED_NS_MIN, STARVED_P50S = NS_PER_S, 100  # a wait that no queue of fair turns explains
STARVED_SHARE_FAIL = 0.01
FAIR_WARN, FAIR_FAIL = 0.9, 0.5  # Jain, Chiu and Hawe 1984; 0.5: as if half got nothing
FAIR_REPLIES_MIN = 20  # below, chance alone spreads the replies by more than 22 %
CONNECTIONS_FAIL = 0.01
CENSORED_WARN, CENSORED_FAIL = 0.001, 0.01  # p99.9 and p99 are unknown beyond these
TELLING_WINDOW_NS = 100_000_000  # shares of less than some ten scheduler ticks tell nothing
HOST_IDLE_MIN = 0.10  # with this much idle, generator and server did not wait for each other


@dataclass(frozen=True)
class Explanation:
    """For people: what a check is for, and what to do when it warns or fails."""

    meaning: str
    remedy: str


def judge(record: Record) -> Record:
    """The record with its checks and the verdict that follows from them."""
    checks = tuple(check(record) for check in CHECKS)
    return record.model_copy(update={"checks": checks, "verdict": decide(checks)})


def decide(checks: Sequence[Check]) -> Verdict:
    """invalid if any check fails, suspect if any warns, else valid."""
    statuses = {check.status for check in checks}
    if "fail" in statuses:
        return "invalid"
    return "suspect" if "warn" in statuses else "valid"


_SEVERITY: dict[Status, int] = {"n/a": 0, "pass": 1, "warn": 2, "fail": 3}


def worst_checks(records: Sequence[Record]) -> tuple[Check, ...]:
    """For several trials: each check as it came out worst, in the order of the table."""
    worst: dict[str, Check] = {}
    for record in records:
        for check in record.checks:
            known = worst.get(check.name)
            if known is None or _SEVERITY[check.status] > _SEVERITY[known.status]:
                worst[check.name] = check
    return tuple(worst.values())


def check_unsolicited(record: Record) -> Check:
    """Replies or bytes that settle no outstanding request, warm-up included."""
    count = sum(
        counts.failed.get("unsolicited", 0) for counts in (record.counts, record.warmup.counts)
    )
    if count == 0:
        return _check("unsolicited", "pass", "every reply settled a request", 0, 0)
    why = f"{_times(count, 'request')} met bytes that nobody had asked for: the server answers"
    return _check("unsolicited", "fail", f"{why} twice or unasked", count, 0)


def check_errors(record: Record) -> Check:
    """failed / issued."""
    counts = record.counts
    failed = sum(counts.failed.values())
    if counts.issued == 0:
        return _check("errors", "fail", "no request was issued in the window: nothing was measured")
    share = failed / counts.issued
    status, limit = _graded(share, ERRORS_WARN, ERRORS_FAIL)
    worst = max(counts.failed, key=lambda name: counts.failed[name], default="")
    mostly = f", mostly {worst}" if failed else ""
    why = f"{format_count(failed)} of {format_count(counts.issued)} requests failed{mostly}"
    return _check("errors", status, why, share, limit)


def check_littles_law(record: Record) -> Check:
    """Time spent in service against the time that the load permitted.

    Little's law: throughput x mean service time is the mean number in service; both sides times
    the window give sum(service) against ``slots.permitted_ns``. Requests sent in the window may
    end in the drain; by that overhang the sum may exceed what was permitted within the window. It
    is at most the drain, and at most the length-biased mean service E[s^2] / E[s] (the interval
    that a fixed moment falls into), for each request outstanding at the end.
    """
    name = "littles-law"
    service, slots, window_ns = record.service_ns, record.slots, record.window.window_ns
    if not _is_closed(record):
        return _na(name, "the load is not a closed loop")
    if slots is None or service.mean is None or service.stdev is None or service.mean == 0:
        return _na(name, "no service times were measured")
    if window_ns < TELLING_WINDOW_NS:
        return _na(name, _too_short(record))
    if window_ns < 2 * service.mean or slots.permitted_ns == 0:
        return _na(name, "the window is shorter than two service times")
    spent_ns = service.mean * service.count
    biased_ns = service.mean + service.stdev**2 / service.mean
    in_flight = slots.permitted_ns / window_ns
    overhang_ns = in_flight * min(record.window.drain_ns, biased_ns)
    above = spent_ns / (slots.permitted_ns + overhang_ns) - 1
    below = spent_ns / slots.permitted_ns - 1
    found = f"{spent_ns / window_ns:.1f} requests in service on average, {in_flight:.1f} permitted"
    if above > LITTLE_WARN:
        status, limit = _graded(above, LITTLE_WARN, LITTLE_FAIL)
        return _check(name, status, f"{found}: replies came sooner than they can", above, limit)
    if below < -LITTLE_WARN:
        return _check(name, "warn", f"{found}: slots stood empty", below, -LITTLE_WARN)
    return _check(name, "pass", found, below, LITTLE_WARN)


def check_generator_limit(record: Record) -> Check:
    """Saturation of both ends: whose limit was it?"""
    name = "generator-limit"
    for failures in (record.counts.failed, record.connections.failed):
        for ran_out, of in (("local.fds", "file descriptors"), ("local.ports", "local ports")):
            if failures.get(ran_out):
                why = f"generator limited: it ran out of {of}"
                return _check(name, "fail", why, failures[ran_out], 0)
    generator = record.generator.saturation
    server = record.server.saturation if record.server else None
    if generator is None:
        return _na(name, "the generator's saturation is not known")
    if record.window.window_ns < TELLING_WINDOW_NS:
        return _na(name, _too_short(record))
    busy = f"the generator's busiest thread was busy for {format_share(generator)} of the window"
    if server is None:
        if generator >= GENERATOR_FULL:
            why = f"{busy}, and the server's processes cannot be seen: it may have had more to give"
            return _check(name, "warn", why, generator, GENERATOR_FULL)
        return _na(name, f"the server's processes cannot be seen; {busy}")
    both = f"{busy}, the server's for {format_share(server)}"
    if generator >= GENERATOR_FULL and server < SERVER_FULL:
        return _check(
            name, "fail", f"{both}: the generator was the limit", generator, GENERATOR_FULL
        )
    if generator >= SERVER_FULL and server >= SERVER_FULL:
        return _check(name, "warn", f"{both}: co-limited, a lower bound", generator, SERVER_FULL)
    return _check(name, "pass", both, generator, GENERATOR_FULL)


def starvation_ns(latency: Distribution) -> int:
    """How long a slot must wait to count as starved: max(1 s, 100 x p50)."""
    return max(STARVED_NS_MIN, STARVED_P50S * (latency.p50 or 0))


def check_starvation(record: Record) -> Check:
    """Slots that waited far longer than the others took, or were never answered."""
    name, slots = "starvation", record.slots
    if slots is None or slots.asked == 0:
        return _na(name, "no slot asked")
    threshold_ns = starvation_ns(record.latency_ns)
    waits = [wait_ns for wait_ns in slots.long_waits_ns if wait_ns >= threshold_ns]
    share = len(waits) / slots.asked
    if slots.never_answered:
        why = f"{slots.never_answered} of {_times(slots.asked, 'slot')} asked and got no answer"
        return _check(name, "fail", why, slots.never_answered / slots.asked, 0)
    if not waits:
        why = f"no slot waited {format_duration(threshold_ns)} while others were served"
        return _check(name, "pass", why, 0, 0)
    why = (
        f"{len(waits)} of {_times(slots.asked, 'slot')} waited up to"
        f" {format_duration(max(waits))} while others were served"
    )
    if share >= STARVED_SHARE_FAIL:
        return _check(name, "fail", why, share, STARVED_SHARE_FAIL)
    return _check(name, "warn", why, share, 0)


def jain_index(asked: int, total: int, squares: int) -> float | None:
    """Jain's index of replies per slot, less what chance alone would spread:
    1 / (1 + max(0, CV^2 - 1 / mean)); None without replies."""
    if asked == 0 or total == 0:
        return None
    mean = total / asked
    squared_cv = max(0.0, squares / asked - mean**2) / mean**2
    return 1 / (1 + max(0.0, squared_cv - 1 / mean))


def check_fairness(record: Record) -> Check:
    """How evenly the replies were spread over the slots."""
    name, slots = "fairness", record.slots
    if not _is_closed(record):
        return _na(name, "the load is not a closed loop")
    if slots is None or slots.asked == 0:
        return _na(name, "no slot asked")
    if slots.asked == 1:
        return _na(name, "one slot has nobody to share with")
    mean = slots.answers_sum / slots.asked
    if mean < FAIR_REPLIES_MIN:
        return _na(name, f"{mean:.1f} replies a slot are too few to compare; it takes 20")
    index = jain_index(slots.asked, slots.answers_sum, slots.answers_sum_squares) or 0.0
    status: Status = "pass" if index >= FAIR_WARN else "warn" if index >= FAIR_FAIL else "fail"
    limit = FAIR_FAIL if status == "fail" else FAIR_WARN
    why = (
        f"{format_count(slots.answers_min)} to {format_count(slots.answers_max)} replies a slot,"
        f" fairness {index:.2f}"
    )
    return _check(name, status, why, index, limit)


def check_connections(record: Record) -> Check:
    """Slots that were never established, were down for long, or lost a server that went away."""
    name, found = "connections", record.connections
    if found.requested == 0:
        return _na(name, "no connection was asked for")
    if found.down is None or found.outages is None:
        return _na(name, "the engine ended before it could say")
    missing = found.requested - found.established
    share = (missing + found.down) / found.requested
    outage_share = found.outages / found.requested
    parts = [
        f"{missing} of {found.requested} were never established" if missing else "",
        f"{found.down} of {found.requested} were down for more than 1 s" if found.down else "",
    ]
    if outage_share >= CONNECTIONS_FAIL:
        outage = format_duration(found.outage_ns or 0)
        parts.append(f"the server was away for {outage}: {found.outages} were refused a new one")
        why = "; ".join(part for part in parts if part)
        return _check(name, "fail", why, max(share, outage_share), CONNECTIONS_FAIL)
    if share == 0:
        return _check(name, "pass", f"all {found.requested} were there", 0, 0)
    why = "; ".join(part for part in parts if part)
    status: Status = "fail" if share >= CONNECTIONS_FAIL else "warn"
    return _check(name, status, why, share, CONNECTIONS_FAIL if status == "fail" else 0)


def censored_count(counts: Counts) -> int:
    """Requests that were still open after the drain, or never sent."""
    return counts.cancelled + counts.unsent


def check_censored(record: Record) -> Check:
    """Requests whose latency is only known to be more than their age."""
    name, counts = "censored", record.counts
    if counts.scheduled == 0:
        return _na(name, "no request was scheduled")
    share = censored_count(counts) / counts.scheduled
    status, limit = _graded(share, CENSORED_WARN, CENSORED_FAIL)
    why = (
        f"{format_count(counts.cancelled)} open after the drain and {format_count(counts.unsent)}"
        f" never sent, of {format_count(counts.scheduled)}"
    )
    return _check(name, status, why, share, limit)


def check_same_host(record: Record) -> Check:
    """Whether generator and server on one machine took CPU time from each other."""
    name = "same-host"
    if not all(is_loopback(address) for address in record.plan.generate.addresses):
        return _na(name, "the target is not on a loopback address")
    if not record.plan.generate.addresses:
        return _na(name, "the target has no address")
    engine = set(record.generator.allowed_cpus)
    server = set(record.server.allowed_cpus) if record.server else set()
    if engine and server and not engine & server:
        apart = f"generator on CPU {format_cpu_list(engine)}, server on {format_cpu_list(server)}"
        return _check(name, "pass", f"kept apart: {apart}")
    idle = record.window.host_idle_share
    if idle is None:
        return _na(name, "how busy the machine was is not known")
    if record.window.window_ns < TELLING_WINDOW_NS:
        return _na(name, _too_short(record))
    shared = "share CPUs" if server else "may share CPUs"
    why = f"generator and server {shared}, and the machine was idle for {format_share(idle)}"
    status: Status = "pass" if idle >= HOST_IDLE_MIN else "warn"
    return _check(name, status, why, idle, HOST_IDLE_MIN)


def check_audit(record: Record) -> Check:
    """Whether the record's own figures agree with each other."""
    if record.trouble is not None:
        return _check("audit", "fail", f"cut short: {record.trouble.what}")
    for problem in _disagreements(record):
        return _check("audit", "fail", problem)
    return _check("audit", "pass", "counts add up and percentiles are in order")


def _disagreements(record: Record) -> Iterator[str]:
    window, warmup = record.counts, record.warmup.counts

    def both(count: Callable[[Counts], int]) -> int:
        return count(window) + count(warmup)

    issued = both(lambda counts: counts.issued)
    settled = both(lambda counts: counts.ok + sum(counts.failed.values()) + counts.cancelled)
    if issued != settled:
        yield f"{issued} requests were issued, but {settled} are accounted for"
    scheduled = both(lambda counts: counts.scheduled)
    sent = both(lambda counts: counts.issued + counts.unsent)
    if scheduled != sent:
        yield f"{scheduled} requests were scheduled, but {sent} were issued or left unsent"
    if record.latency_ns.count != window.ok:
        yield f"{window.ok} requests ended well, but {record.latency_ns.count} were timed"
    if sum(window.statuses.values()) < window.ok:
        yield f"{window.ok} requests ended well, but fewer complete answers were seen"
    for name, found in _distributions(record):
        if not _is_ordered(found):
            yield f"the figures of {name} are out of order"


def _distributions(record: Record) -> Iterator[tuple[str, Distribution]]:
    yield "latency_ns", record.latency_ns
    yield "service_ns", record.service_ns
    yield "connect_ns", record.connect_ns
    yield "first_byte_ns", record.first_byte_ns
    yield "total_ns", record.total_ns


def _is_ordered(found: Distribution) -> bool:
    rising = [found.min, found.p25, found.p50, found.p75, found.p90, found.p95, found.p99]
    known = [value for value in (*rising, found.p999, found.max) if value is not None]
    if known != sorted(known):
        return False
    if found.min is None or found.max is None or found.mean is None:
        return found.count == 0
    return found.min <= found.mean <= found.max


def is_loopback(address: str) -> bool:
    """Whether ``IP:PORT`` or ``[IPv6]:PORT`` is of this machine's loopback."""
    host = address.rpartition(":")[0].strip("[]")
    return ipaddress.ip_address(host.partition("%")[0]).is_loopback


def _check(
    name: str, status: Status, why: str, value: float | None = None, limit: float | None = None
) -> Check:
    return Check(name=name, status=status, value=value, limit=limit, why=why)


def _na(name: str, why: str) -> Check:
    return Check(name=name, status="n/a", value=None, limit=None, why=why)


def _graded(value: float, warn: float, fail: float) -> tuple[Status, float]:
    """The status of a value that should be small, and the limit that decided."""
    if value >= fail:
        return "fail", fail
    return ("warn", warn) if value >= warn else ("pass", warn)


def _is_closed(record: Record) -> bool:
    return record.plan.window.load.kind == "closed"


def _too_short(record: Record) -> str:
    window = format_duration(record.window.window_ns)
    return f"a window of {window} is too short to tell; it takes {TELLING_WINDOW_NS // 10**6} ms"


def _times(count: int, what: str) -> str:
    return f"{format_count(count)} {what}{'' if count == 1 else 's'}"


# The order in which checks are listed; the checks of open loops, searches and broadcasts join here.
CHECKS: tuple[Callable[[Record], Check], ...] = (
    check_unsolicited,
    check_errors,
    check_littles_law,
    check_generator_limit,
    check_starvation,
    check_fairness,
    check_connections,
    check_censored,
    check_same_host,
    check_audit,
)

EXPLANATIONS: dict[str, Explanation] = {
    "unsolicited": Explanation(
        "Each reply must settle one request; a server that answers twice or unasked is fast at"
        " nothing.",
        "Mend the server: look at what it sends with `curl -v --http1.1` or tcpdump.",
    ),
    "errors": Explanation(
        "Failures are often quicker than answers: a figure with many is a figure about failing.",
        "Look at the classes of the failures; lower --connections, or raise --timeout.",
    ),
    "littles-law": Explanation(
        "Throughput times service time must give the requests that were allowed in flight.",
        "Above: replies are taken for those of earlier requests; look at the server. Below: slots"
        " stood empty; look at failures and reconnects.",
    ),
    "generator-limit": Explanation(
        "If the generator had no time left, the figure is the generator's, not the server's.",
        "Give the generator more --threads or CPUs of its own (--cpus), or the server fewer.",
    ),
    "starvation": Explanation(
        "A few connections served quickly and the others not at all give a high throughput.",
        "Look at how the server accepts and polls connections; compare fewer --connections.",
    ),
    "fairness": Explanation(
        "Percentiles over all requests hide that some connections get most of the replies.",
        "Look at how the server spreads connections over its threads; use a longer --duration.",
    ),
    "connections": Explanation(
        "The load that was asked for needs all its connections, for the whole window.",
        "Look at the server's backlog and file limits (`ulimit -n`), and whether it restarted.",
    ),
    "censored": Explanation(
        "A request that never ended is slower than any that did; leaving it out hides the worst.",
        "Raise --timeout so that what is open can end, or lower the load.",
    ),
    "same-host": Explanation(
        "On one machine without spare CPU time, generator and server slow each other down.",
        "Pin them apart: `taskset -c 0` for the server and --cpus 1 here, or use two machines.",
    ),
    "audit": Explanation(
        "A record whose own counts and percentiles disagree proves that something is broken.",
        "If the engine was killed, repeat; otherwise report it as a bug with the record.",
    ),
}
