"""Checks of a run over several hosts: does one of them differ, and do their clocks agree?

Pure functions of a record. A host's own checks were made with its record. A check that is worse on
one host than on the whole enters the verdict with the host's name.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from trueload.protocol.exchange import WsBroadcastPlan
from trueload.record.schema import Check, Host, Record, Status
from trueload.units import NS_PER_S, format_duration, format_share
from trueload.verdict.common import Definition, Finding, graded, graded_beyond, not_applicable

BIAS_WARN, BIAS_FAIL = 0.25, 1.0
"""Hosts under the same load see the same server; what differs is a host's own path and CPU.

The limits are our judgement and do not come from measurements. Equal hosts should differ by less
than a quarter. A host with twice the percentile of the rest tells more about itself than about the
server.
"""
BIAS_LEAST_NS = 100_000  # by judgement: a longer way may add this much, whatever its share
BIAS_REPLIES_MIN = 1_000  # ten beyond the p99: fewer say nothing about a host
CLOCK_WARN_NS, CLOCK_FAIL_NS = NS_PER_S // 1_000, NS_PER_S // 100
"""By judgement, too: deliveries over a network take some milliseconds.

They are wrong by as much as the clocks are.
"""

SEVERITY: dict[Status, int] = {"n/a": 0, "pass": 1, "bound": 2, "warn": 3, "fail": 4}


def check_host_bias(record: Record) -> Finding:
    """Compare each host's percentiles with those of the rest."""
    if len(record.hosts) < 2:
        return not_applicable("the load came from one host")
    meaningful = [host for host in record.hosts if _count(host) >= BIAS_REPLIES_MIN]
    if len(meaningful) < 2:
        few = f"fewer than two hosts had {BIAS_REPLIES_MIN} replies each"
        return not_applicable(few)
    found = [bias for percentile in ("p50", "p99") for bias in _biases(meaningful, percentile)]
    worst = max(found, key=lambda each: each.share)
    status, limit = graded(worst.share, BIAS_WARN, BIAS_FAIL)
    why = (
        f"{worst.place}: {worst.percentile} {format_duration(worst.own_ns)}, the other hosts'"
        f" {format_duration(worst.rest_ns)}: off by {format_share(worst.share)}"
    )
    return Finding(status, why, worst.share, limit)


HOST_BIAS = Definition(
    name="host-bias",
    order=210,
    compute=check_host_bias,
    of_client="a client runs on one host",
    fault="hosts",
    meaning=(
        "Hosts that send the same load to the same server must measure about the same latency."
    ),
    remedy=(
        "Look at what else that host does, at its CPUs and at its way to the server; leave it out"
        " and compare."
    ),
)


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
    for host in hosts:
        for own in host.checks:
            if own.name == check.name and SEVERITY[own.status] > max(1, SEVERITY[check.status]):
                check = own.model_copy(update={"why": f"{host.place}: {own.why}"})
    return check


@dataclass(frozen=True, slots=True)
class _Bias:
    """A percentile of one host, and the median of the others' values for it."""

    place: str
    percentile: str
    own_ns: float
    rest_ns: float

    @property
    def share(self) -> float:
        """The difference as a share of the others' value; 0 for up to ``BIAS_LEAST_NS``."""
        off_ns = abs(self.own_ns - self.rest_ns)
        return off_ns / self.rest_ns if off_ns > BIAS_LEAST_NS and self.rest_ns > 0 else 0.0


def _biases(hosts: Sequence[Host], percentile: str) -> list[_Bias]:
    own = [_percentile(host, percentile) for host in hosts]
    ordered = sorted(own)  # sorted once: there may be thousands
    return [
        _Bias(host.place, percentile, value, median_without(ordered, value))
        for host, value in zip(hosts, own, strict=True)
    ]


def median_without(ordered: Sequence[float], value: float) -> float:
    """Return the median of the values without one of them, ``value``.

    The values are in rising order, and there are two or more.
    """
    at, left = bisect_left(ordered, value), len(ordered) - 1
    lower, upper = (
        ordered[rank + 1 if rank >= at else rank] for rank in ((left - 1) // 2, left // 2)
    )
    return (lower + upper) / 2


def _percentile(host: Host, percentile: str) -> float:
    return float(getattr(host.latency_ns, percentile) or 0)


def _count(host: Host) -> int:
    return host.latency_ns.count if host.latency_ns else 0
