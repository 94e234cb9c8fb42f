"""Several hosts in a verdict: each host's own checks, and `clocks`: do their clocks agree?

Pure functions of a record. A host's own checks were made with its record. A check that is worse on
one host than on the whole enters the verdict with the host's name. One that fails on the whole
names the hosts it fails on, if they are a minority.
"""

from __future__ import annotations

from collections.abc import Sequence

from trueload.protocol.exchange import WsBroadcastPlan
from trueload.record.accounts.deliveries import Deliveries, across_text
from trueload.record.schema import Check, Host, Record, Status
from trueload.units import NS_PER_S, format_duration
from trueload.verdict.common import Definition, Finding, graded_beyond, not_applicable

CLOCK_WARN_NS, CLOCK_FAIL_NS = NS_PER_S // 1_000, NS_PER_S // 100
CLOCK_WARN_SHARE, CLOCK_FAIL_SHARE = 0.1, 0.5
"""Shares of the median delivery. All by judgement: deliveries over a network take some
milliseconds, and an error below 1 ms, or below a tenth of the time itself, seldom misleads.
"""

NAMED = 3  # hosts in one line

SEVERITY: dict[Status, int] = {"n/a": 0, "pass": 1, "bound": 2, "warn": 3, "fail": 4}


def check_clocks(record: Record) -> Finding:
    """Grade how well the hosts' clocks are known, if times are compared across them."""
    bounds = [(host.clock_bound_ns, host) for host in record.hosts if host.clock_bound_ns]
    if len(record.hosts) < 2 or not bounds:
        return not_applicable("the load came from one host")
    bound_ns, host = max(bounds, key=lambda found: found[0])
    known = f"{host.place}'s clock is known to within {format_duration(bound_ns)}"
    if not isinstance(record.plan.generate.exchange, WsBroadcastPlan):
        why = f"nothing here compares times of one host with another's; {known}"
        return not_applicable(why)
    found = record.deliveries
    if found is None or found.clock_bound_ns is None:
        status, limit_ns = graded_beyond(bound_ns, CLOCK_WARN_NS, CLOCK_FAIL_NS)
        return Finding(status, known, bound_ns, limit_ns)
    return _of_times(record, found, found.clock_bound_ns, known)


def _of_times(record: Record, found: Deliveries, bound_ns: int, known: str) -> Finding:
    """Grade the times of deliveries from one host to another, which are known to ``bound_ns``."""
    for host in record.hosts:
        own = host.deliveries
        if own is not None and own.negative_max_ns > (own.clock_bound_ns or 0):
            why = (
                f"a delivery to {host.place} seems to have come"
                f" {format_duration(own.negative_max_ns)} before it was sent, which is more than"
                f" the clocks can be wrong by ({format_duration(own.clock_bound_ns or 0)})"
            )
            return Finding("fail", why, own.negative_max_ns, own.clock_bound_ns)
    share = bound_ns / found.delivery_ns.p50 if found.delivery_ns.p50 else 0.0
    status: Status = "pass"
    limit = CLOCK_WARN_SHARE
    if bound_ns > CLOCK_FAIL_NS and share > CLOCK_FAIL_SHARE:
        status, limit = "fail", CLOCK_FAIL_SHARE
    elif bound_ns > CLOCK_WARN_NS and share > CLOCK_WARN_SHARE:
        status = "warn"
    return Finding(status, f"{across_text(found)}; {known}", share, limit)


CLOCKS = Definition(
    name="clocks",
    order=220,
    compute=check_clocks,
    of_client="a client runs on one host",
    fault="hosts",
    meaning="A time between two hosts is only as good as the comparison of their clocks.",
    remedy=(
        "Look for a shorter network path from the machine that runs trueload to its"
        " hosts (start it inside the lab), or use one host."
    ),
)


def with_hosts(check: Check, hosts: Sequence[Host]) -> Check:
    """Return the check with its worst outcome, on the whole or on one host; a host is named."""
    whole = check
    for host in hosts:
        for own in host.checks:
            if own.name == check.name and SEVERITY[own.status] > max(1, SEVERITY[check.status]):
                check = own.model_copy(update={"why": f"{host.place}: {own.why}"})
    if check is whole and SEVERITY[check.status] >= SEVERITY["warn"]:
        return _naming(check, hosts)
    return check


def _naming(check: Check, hosts: Sequence[Host]) -> Check:
    """Return the check with the hosts that are as bad by themselves, if these are a minority."""
    bad = [
        host.place
        for host in hosts
        for own in host.checks
        if own.name == check.name and SEVERITY[own.status] >= SEVERITY[check.status]
    ]
    if not 0 < len(bad) <= len(hosts) // 2:
        return check
    more = f" and {len(bad) - NAMED}" if len(bad) > NAMED else ""
    return check.model_copy(update={"why": f"{check.why} (on {', '.join(bad[:NAMED])}{more})"})
