"""The groups of a run's hosts, such as regions: what the hosts of each did together. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from trueload.grouping import grouped
from trueload.record import figures
from trueload.record.schema import Host, HostGroup


def make_groups(hosts: Sequence[Host]) -> tuple[HostGroup, ...]:
    """Return the groups in the order of their first hosts; empty if no host is in a group.

    Hosts without a group are together. A host that was lost is counted, and adds nothing else.
    """
    if all(host.group is None for host in hosts):
        return ()
    return tuple(
        _group(name, members) for name, members in grouped(hosts, attrgetter("group")).items()
    )


def _group(name: str | None, members: Sequence[Host]) -> HostGroup:
    stayed = [host for host in members if host.lost is None]
    rates = [host.ok_per_s for host in stayed if host.ok_per_s is not None]
    return HostGroup(
        name=name,
        hosts=len(members),
        lost=len(members) - len(stayed),
        connections=sum(host.connections or 0 for host in stayed),
        ok=sum(host.ok or 0 for host in stayed),
        failed=sum(figures.failed(host.counts) for host in stayed if host.counts),
        unsent=sum(host.counts.unsent for host in stayed if host.counts),
        ok_per_s=sum(rates) if stayed and len(rates) == len(stayed) else None,
        latency_ns=figures.of_hosts(stayed).figures,
    )
