"""The checks of a client under test: both ends' accounts of one order, and whose limit it was.

How: the same names as for a server, in the same order, so that a reader finds each where he is used
to; what only the generator of a server's trial can see says n/a, with the reason. Pure functions of
a record that has a ``client``.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from trueload.protocol.client import miscounted, mistimed
from trueload.record.client import ClientEnd
from trueload.record.schema import Check, Record
from trueload.units import format_count, format_cpu_list, format_duration, format_rate, format_share
from trueload.verdict.answers import check_errors
from trueload.verdict.common import (
    checked,
    graded,
    not_applicable,
    times,
    too_short,
)
from trueload.verdict.flow import LITTLE_FAIL, LITTLE_WARN, check_steady_state
from trueload.verdict.machine import SERVER_IDLE, check_noise

SERVER_BUSY = SERVER_IDLE  # a server with a fifth of its time to spare was not the limit
LATE_SHARE = LITTLE_WARN  # of the wait: by as much the ceiling would be another
NS_PER_MS = 1_000_000

ClientCheck = Callable[[Record, ClientEnd], Check]


def check_both_ends(record: Record, client: ClientEnd) -> Check:
    """What the client claims against what the reference server completed."""
    name, claimed, completed = "both-ends", client.claim.ok, client.seen.ok
    if claimed > completed:
        why = (
            f"the client claims {format_count(claimed)} ok, but the server completed"
            f" {format_count(completed)}"
        )
        return checked(name, "fail", why, claimed - completed, 0)
    if client.retries:
        made = client.seen.requests - client.retries
        why = (
            f"hidden retries: the server saw {format_count(client.seen.requests)} requests, the"
            f" client speaks of {format_count(made)}"
        )
        return checked(name, "warn", why, client.retries, 0)
    why = f"the server completed {format_count(completed)}, the client claims"
    return checked(name, "pass", f"{why} {format_count(claimed)} of them", 0, 0)


def check_littles_law(record: Record, client: ClientEnd) -> Check:
    """Answers per second against the most that the pools can carry: connections / wait."""
    name, rate = "littles-law", client.answered_per_s
    if rate is None:
        return not_applicable(name, "the server saw nothing that took time")
    if short := too_short(record):
        return not_applicable(name, short)
    above = rate / client.ceiling_per_s - 1
    found = (
        f"{format_rate(rate, 'answers')}, where the pools and {client.asked.wait_ms} ms"
        f" allow {format_count(client.ceiling_per_s)}/s"
    )
    if above > LITTLE_WARN:
        status, limit = graded(above, LITTLE_WARN, LITTLE_FAIL)
        why = f"{found}: more was under way at once than was asked for"
        return checked(name, status, why, above, limit)
    return checked(name, "pass", found, above, LITTLE_WARN)


def check_generator_limit(record: Record, client: ClientEnd) -> Check:
    """Whether the reference server had time to spare, and answered when it was to."""
    name = "generator-limit"
    busy = record.server.saturation if record.server is not None else None
    if busy is None:
        return not_applicable(name, "the reference server's saturation is not known")
    if short := too_short(record):
        return not_applicable(name, short)
    found = f"the reference server was busy for {format_share(busy)} of the time"
    if busy >= SERVER_BUSY:
        return checked(name, "fail", f"{found}: it was the limit", busy, SERVER_BUSY)
    late = client.seen.delay_error_ns
    allowed_ns = LATE_SHARE * client.asked.wait_ms * NS_PER_MS
    if late is not None and late.mean > allowed_ns:
        why = f"{found}, but answered {format_duration(late.mean)} late on average"
        return checked(name, "warn", why, late.mean, allowed_ns)
    return checked(name, "pass", found, busy, SERVER_BUSY)


def check_connections(record: Record, client: ClientEnd) -> Check:
    """Connections open at once against those that the pools have room for."""
    # The mean: for a moment one that was just closed and its successor are both there.
    name, mean, room = "connections", client.seen.connections.mean, client.asked.room
    above = mean / room - 1
    found = f"{times(round(mean), 'connection')} open at once on average; the pools have room for"
    found += f" {format_count(room)}"
    if above > LITTLE_WARN:
        status, limit = graded(above, LITTLE_WARN, LITTLE_FAIL)
        return checked(name, status, f"{found}: it is not of these pools", above, limit)
    return checked(name, "pass", found, above, LITTLE_WARN)


def check_same_host(record: Record, client: ClientEnd) -> Check:
    """Whether the client and the reference server had CPUs of their own."""
    name, theirs = "same-host", set(record.generator.allowed_cpus)
    ours = set(record.server.allowed_cpus) if record.server is not None else set()
    if not theirs or not ours:
        return not_applicable(name, "the CPUs of both ends are not known")
    apart = f"client on CPU {format_cpu_list(theirs)}, server on {format_cpu_list(ours)}"
    if theirs & ours:
        return checked(name, "warn", f"they share CPUs: {apart}")
    return checked(name, "pass", f"kept apart: {apart}")


def check_audit(record: Record, client: ClientEnd) -> Check:
    """Whether the claim adds up, in the time that it took, and the server's account, too."""
    name, asked, claim, seen = "audit", client.asked, client.claim, client.seen
    if record.trouble is not None:
        return checked(name, "fail", f"cut short: {record.trouble.what}")
    wall_s = record.window.wall_s
    faults = chain(miscounted(asked.requests, claim), mistimed(asked.wait_ms, claim, wall_s))
    for fault in faults:
        return checked(name, "fail", f"the client {fault}")
    if sum(seen.statuses.values()) != seen.answered or seen.ok > seen.answered:
        return checked(name, "fail", "the server's answers by status are not all its answers")
    return checked(name, "pass", "the client's claim adds up, and so does the server's account")


def _of_the_record(check: Callable[[Record], Check]) -> ClientCheck:
    return lambda record, client: check(record)


def _never(name: str, why: str) -> ClientCheck:
    return lambda record, client: not_applicable(name, why)


# The order of the checks of a server; what is n/a says who could tell instead.
CLIENT_CHECKS: tuple[ClientCheck, ...] = (
    _never("unsolicited", "the answers are the reference server's: one for each request"),
    _of_the_record(check_errors),
    _never("stale", "what a client sends again is in both-ends"),
    check_littles_law,
    check_generator_limit,
    _never("send-lag", "the client sends when it can: nothing is scheduled"),
    _never("client-share", "how long a request waits within the client only the client knows"),
    _never("rate-reached", "the client sends when it can: no rate was asked for"),
    _never("starvation", "which request waited for a connection only the client knows"),
    _never("fairness", "how requests are spread over connections is the client's business"),
    check_connections,
    _never("censored", "an order ends when each of its requests has"),
    _of_the_record(check_steady_state),
    _never("server-idle", "the server is ours, and is to have time to spare (generator-limit)"),
    _never("hiccup", "our generator has no part in it; how late our server was is generator-limit"),
    _of_the_record(check_noise),
    check_same_host,
    _never("quantile-width", "no percentile is claimed: latencies are the client's own word"),
    _never("ledger", "nothing is broadcast"),
    check_both_ends,
    _never("host-bias", "a client runs on one host"),
    _never("clocks", "a client runs on one host"),
    check_audit,
)


def client_checks(record: Record, client: ClientEnd) -> tuple[Check, ...]:
    """All of them."""
    return tuple(check(record, client) for check in CLIENT_CHECKS)
