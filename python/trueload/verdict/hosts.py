"""Checks of a run over several hosts: whether one of them is off, and whether their clocks agree.

Pure functions of a record. A host's own checks were made when its record was; what is worse on one
host than on the whole stands in the verdict with the host's name.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from trueload.plan import WsBroadcastPlan
from trueload.record import Check, Host, Record, Status
from trueload.units import format_duration, format_share
from trueload.verdict.common import NS_PER_S, checked, graded, not_applicable

HOST_CHECKS = (
    "unsolicited",
    "errors",
    "stale",
    "littles-law",
    "generator-limit",
    "send-lag",
    "rate-reached",
    "starvation",
    "fairness",
    "connections",
    "censored",
    "hiccup",
    "noise",
)
"""Those that a single host can fail while the sum of all looks well."""

BIAS_WARN, BIAS_FAIL = 0.25, 1.0
"""Hosts under the same load see the same server: what is left is a host's own path and CPU. Our
choice, by judgement and not from measurements: a quarter is more than hosts alike should differ by,
and a host whose percentile is twice that of the rest tells more of itself than of the server."""
BIAS_LEAST_NS = 100_000  # by judgement: so much a longer way may add, whatever its share
BIAS_REPLIES_MIN = 1_000  # ten beyond the p99: fewer say nothing about a host
CLOCK_WARN_NS, CLOCK_FAIL_NS = NS_PER_S // 1_000, NS_PER_S // 100
"""By judgement too: deliveries over a network take some milliseconds, and are off by as much as the
clocks are."""

SEVERITY: dict[Status, int] = {"n/a": 0, "pass": 1, "warn": 2, "fail": 3}


def check_host_bias(record: Record) -> Check:
    """Each host's percentiles against those of the rest."""
    name = "host-bias"
    if len(record.hosts) < 2:
        return not_applicable(name, "the load came from one host")
    telling = [host for host in record.hosts if _count(host) >= BIAS_REPLIES_MIN]
    if len(telling) < 2:
        few = f"fewer than two hosts had {BIAS_REPLIES_MIN} replies each"
        return not_applicable(name, few)
    bias, host, percentile = max(
        ((_bias(host, telling, each), host, each) for host in telling for each in ("p50", "p99")),
        key=lambda found: found[0],
    )
    status, limit = graded(bias, BIAS_WARN, BIAS_FAIL)
    own, rest = _percentile(host, percentile), _rest(host, telling, percentile)
    why = (
        f"{host.place}: {percentile} {format_duration(own)}, the other hosts'"
        f" {format_duration(rest)}: off by {format_share(bias)}"
    )
    return checked(name, status, why, bias, limit)


def check_clocks(record: Record) -> Check:
    """How well the clocks of the hosts are known, where times are compared across them."""
    name = "clocks"
    bounds = [(host.clock_bound_ns, host) for host in record.hosts if host.clock_bound_ns]
    if len(record.hosts) < 2 or not bounds:
        return not_applicable(name, "the load came from one host")
    bound_ns, host = max(bounds, key=lambda found: found[0])
    known = f"{host.place}'s clock is known to within {format_duration(bound_ns)}"
    if not isinstance(record.plan.generate.exchange, WsBroadcastPlan):
        why = f"nothing here compares times of one host with another's; {known}"
        return not_applicable(name, why)
    status: Status = "pass"
    if bound_ns > CLOCK_WARN_NS:
        status = "fail" if bound_ns > CLOCK_FAIL_NS else "warn"
    limit_ns = CLOCK_FAIL_NS if status == "fail" else CLOCK_WARN_NS
    return checked(name, status, known, bound_ns, limit_ns)


def with_hosts(checks: Sequence[Check], hosts: Sequence[Host]) -> tuple[Check, ...]:
    """Each check as it came out worst, on the whole or on one host; a host's is named."""
    return tuple(_worst(check, hosts) for check in checks)


def _worst(check: Check, hosts: Sequence[Host]) -> Check:
    for host in hosts:
        for own in host.checks:
            if own.name == check.name and SEVERITY[own.status] > max(1, SEVERITY[check.status]):
                check = own.model_copy(update={"why": f"{host.place}: {own.why}"})
    return check


def _bias(host: Host, hosts: Sequence[Host], percentile: str) -> float:
    own, rest = _percentile(host, percentile), _rest(host, hosts, percentile)
    if abs(own - rest) <= BIAS_LEAST_NS or rest <= 0:
        return 0.0
    return abs(own - rest) / rest


def _rest(host: Host, hosts: Sequence[Host], percentile: str) -> float:
    return median(_percentile(each, percentile) for each in hosts if each is not host)


def _percentile(host: Host, percentile: str) -> float:
    return float(getattr(host.latency_ns, percentile) or 0)


def _count(host: Host) -> int:
    return host.latency_ns.count if host.latency_ns else 0
