"""The hosts of a record: where the load came from, and what each of several hosts did.

How: with several hosts, each gets a record of its own first, made like that of the whole. Its
checks and its latency are kept. Must not know: processes, stores, terminals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from trueload import __version__
from trueload.engines.member import HostReport
from trueload.record.schema import Environment, Generator, Host, Record
from trueload.verdict import CHECKS

if TYPE_CHECKING:
    from trueload.assemble.observation import Observation


def make_hosts(
    seen: Observation, generator: Generator, make_record: Callable[[Observation], Record]
) -> tuple[Host, ...]:
    """Return the hosts of a trial: one without figures of its own, or each with its part."""
    if not seen.hosts:
        return (
            Host(
                place=seen.place,
                generator=generator,
                environment=seen.environment,
                clock_offset_ns=None,
                clock_bound_ns=None,
            ),
        )
    first_ns = min(report.start_ns for report in seen.hosts)
    return tuple(_host(seen, report, first_ns, make_record) for report in seen.hosts)


def _host(
    seen: Observation,
    report: HostReport,
    first_ns: int,
    make_record: Callable[[Observation], Record],
) -> Host:
    own = make_record(_alone(seen, report))
    several = len(seen.hosts) > 1
    return Host(
        place=report.name,
        generator=own.generator,
        environment=own.environment,
        clock_offset_ns=report.offset.ns,
        clock_bound_ns=report.offset.bound_ns,
        connections=own.connections.established if several else None,
        ok=own.counts.ok if several else None,
        counts=own.counts if several else None,
        latency_ns=own.latency_ns if several else None,
        latency=own.histograms.latency if several else None,
        start_ns=report.start_ns - first_ns if several else None,
        checks=tuple(each for each in own.checks if CHECKS[each.name].per_host) if several else (),
    )


def _alone(seen: Observation, report: HostReport) -> Observation:
    """Return the observation as if this host had been the only one."""
    found = report.measurement
    # A host's record needs no figures from these, and there may be very many hosts.
    unused = {"connect": None, "first_byte": None, "total": None, "handshake": None}
    histograms = found.histograms.model_copy(update=unused)
    found = found.model_copy(update={"histograms": histograms})
    window = type(seen.phase(seen.window.id))(
        started_ns=found.started_ns,
        stopped_ns=found.started_ns + found.window_ns,
        measurement=found,
    )
    connections = found.connections.requested
    return replace(
        seen,
        generate=seen.generate.model_copy(update={"connections": connections}),
        environment=environment_of(report),
        place=report.name,
        is_here=report.is_here,
        several_hosts=False,
        hosts=(),
        joined=None,
        phases={seen.window.id: window},
    )


def environment_of(report: HostReport) -> Environment:
    """The environment of a host, as its engine reported it."""
    versions = {"trueload": __version__, "engine": report.version}
    return Environment(**report.machine.model_dump(), versions=versions)
