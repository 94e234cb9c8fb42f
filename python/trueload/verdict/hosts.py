"""Several hosts in a verdict: each host's own checks, and `clocks`: do their clocks agree?

Pure functions of a record. A host's own checks were made with its record. A check that is worse on
one host than on the whole enters the verdict with the host's name. One that fails on the whole
names the hosts it fails on, if they are a minority.
"""

from __future__ import annotations

from collections.abc import Sequence

from trueload.protocol.exchange import WsBroadcastPlan
from trueload.record.schema import Check, Host, Record, Status
from trueload.units import NS_PER_S, format_duration
from trueload.verdict.common import Definition, Finding, graded_beyond, not_applicable

CLOCK_WARN_NS, CLOCK_FAIL_NS = NS_PER_S // 1_000, NS_PER_S // 100
"""By judgement: deliveries over a network take some milliseconds.

They are wrong by as much as the clocks are.
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
    status, limit_ns = graded_beyond(bound_ns, CLOCK_WARN_NS, CLOCK_FAIL_NS)
    return Finding(status, known, bound_ns, limit_ns)


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


def with_hosts(checks: Sequence[Check], hosts: Sequence[Host]) -> tuple[Check, ...]:
    """Return each check with its worst outcome, on the whole or on one host; a host is named."""
    return tuple(_worst(check, hosts) for check in checks)


def _worst(check: Check, hosts: Sequence[Host]) -> Check:
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
