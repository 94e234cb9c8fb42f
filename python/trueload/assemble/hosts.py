"""The hosts of a record: where the load came from, and what each of several hosts did.

How: with several hosts, each gets a record of its own first, made like that of the whole. Its
latency is kept, and the checks that a single host can fail. The record of a host that was lost is
made from what it had told.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from itertools import repeat
from typing import TYPE_CHECKING

from trueload import __version__
from trueload.assemble.observation import Observation, PhaseLog
from trueload.engines.clock import bounds_across
from trueload.places.local import LocalPlace
from trueload.protocol.plan import Measurement
from trueload.record.schema import Environment, Generator, Host, Record
from trueload.verdict import CHECKS
from trueload.verdict.slots import FAIRNESS

if TYPE_CHECKING:
    from trueload.engines.member import HostReport


def make_hosts(
    seen: Observation, generator: Generator, make_unjudged: Callable[[Observation], Record]
) -> tuple[Host, ...]:
    """Return the hosts of a trial: one without figures of its own, or each with its part."""
    if not seen.hosts:
        return (Host(place=seen.place, generator=generator, environment=seen.environment),)
    began_ns = (report.start_ns for report in seen.hosts)
    first_ns = min((each for each in began_ns if each is not None), default=0)
    bounds_ns = clock_bounds_ns(seen.hosts) or repeat(None)
    # When a host joins, the others close connections: each had its own time for replies.
    is_uneven = any(each.joined_s is not None for each in seen.hosts)
    unjudged = {FAIRNESS.name} if is_uneven else set()
    return tuple(
        _host(replace(seen, clock_bound_ns=bound_ns), report, first_ns, unjudged, make_unjudged)
        for report, bound_ns in zip(seen.hosts, bounds_ns, strict=False)
    )


def clock_bounds_ns(hosts: Sequence[HostReport]) -> tuple[int, ...]:
    """For each host, by how much times from the others to it are wrong at most; none if there are
    no such times."""
    found = [report.agreed_bound_ns for report in hosts if report.agreed_bound_ns is not None]
    return bounds_across(found) if len(found) == len(hosts) else ()


def _host(
    seen: Observation,
    report: HostReport,
    first_ns: int,
    unjudged: Collection[str],
    make_unjudged: Callable[[Observation], Record],
) -> Host:
    own = make_unjudged(_alone(seen, report))
    agreed_ns = report.agreed_bound_ns  # of a clock whose times went to other hosts
    host = Host(
        place=report.host.place.name,
        generator=own.generator,
        environment=own.environment,
        clock_offset_ns=report.offset.ns,
        clock_bound_ns=report.offset.bound_ns if agreed_ns is None else agreed_ns,
        lost=report.lost,
        way_lost=report.way_lost,
        machine=report.machine_number,
        network=report.network_number,
        group=report.host.group,
        weight=report.host.weight,
        joined_s=report.joined_s,
    )
    if len(seen.hosts) < 2:
        return host
    return host.model_copy(update=_part(report, own, first_ns, unjudged))


def _part(
    report: HostReport, own: Record, first_ns: int, unjudged: Collection[str]
) -> dict[str, object]:
    """The fields of one of several hosts: its part of the whole, without ``unjudged`` checks."""
    series = report.told.bins.seconds()
    return {
        "requested": own.connections.requested,
        "connections": own.connections.established,
        "connect_failed": own.connections.failed,
        "ok": own.counts.ok,
        "counts": own.counts,
        "ok_per_s": own.throughput.ok_per_s,
        "latency_ns": own.latency_ns,
        "latency": own.histograms.latency,
        "service": own.histograms.service,
        "client_ns": own.client_ns,
        "deliveries": own.deliveries,
        "series": series if report.measurement is None else report.measurement.series,
        "start_ns": None if report.start_ns is None else report.start_ns - first_ns,
        # A host that was lost is not judged: it has no part in the figures of the whole.
        "checks": tuple(
            each.check(own)
            for each in CHECKS.values()
            if report.lost is None and each.per_host and each.name not in unjudged
        ),
    }


def _alone(seen: Observation, report: HostReport) -> Observation:
    """Return the observation as if this host had been the only one."""
    found = report.measurement
    return replace(
        seen,
        generate=seen.generate.model_copy(update={"connections": _requested(seen, report)}),
        environment=environment_of(report),
        place=report.host.place.name,
        is_here=isinstance(report.host.place, LocalPlace),
        several_hosts=False,
        hosts=(),
        joined=None,
        ready=report.ready,
        trouble=None,
        phases={seen.window.id: _told_of(report) if found is None else _measured_of(found)},
    )


def _requested(seen: Observation, report: HostReport) -> int:
    """The connections of a host's part."""
    if report.measurement is not None:
        return report.measurement.connections.requested
    return report.ready.requested if report.ready is not None else 0


def _measured_of(found: Measurement) -> PhaseLog:
    """The log of a window that a host has ended."""
    # A host's record needs no figures from these, and there may be very many hosts.
    unused = {"connect": None, "first_byte": None, "total": None, "handshake": None}
    histograms = found.histograms.model_copy(update=unused)
    return PhaseLog(
        started_ns=found.started_ns,
        stopped_ns=found.started_ns + found.window_ns,
        measurement=found.model_copy(update={"histograms": histograms, "series": ()}),
    )


def _told_of(report: HostReport) -> PhaseLog:
    """The log of a window in which a host was lost."""
    told = report.told
    return PhaseLog(
        started_ns=report.start_ns,
        first=told.first,
        last=told.last,
        bins=told.bins,
        latency=told.latency.as_dict(),
    )


def environment_of(report: HostReport) -> Environment:
    """The environment of a host, as its engine reported it."""
    versions = {"trueload": __version__, "engine": report.hello.version}
    machine = report.hello.machine.model_dump(exclude={"boot_id", "network"})
    return Environment(**machine, versions=versions)
