"""Starts the engines of a run: one on this machine, or a fleet. Refuses a load that cannot be
shared by so many hosts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trueload.engines.engine import Engine
from trueload.engines.pauses import Pauses
from trueload.errors import UserError
from trueload.places import EngineHost
from trueload.places.late_hosts import LateHosts
from trueload.places.local import LocalPlace
from trueload.protocol.plan import LoadPlan, Turns
from trueload.units import counted

if TYPE_CHECKING:
    from trueload.engines.fleet import Fleet


def check_shares(hosts: int, connections: int, load: LoadPlan) -> None:
    """Raise ``UserError`` for a load of which some host would have no share."""
    if connections < hosts:
        raise UserError(
            f"{counted(connections, 'connection is', 'connections are')} too few for {hosts} hosts",
            "name at least one for each host, or fewer hosts",
        )
    if isinstance(load, Turns) and load.concurrent < hosts:
        raise UserError(
            f"{counted(load.concurrent, 'message')} in flight cannot be shared by {hosts} hosts",
            "give --concurrent at least as many as there are hosts",
        )


def start_engines(
    hosts: Sequence[EngineHost],
    connections: int,
    load: LoadPlan,
    pauses: Pauses,
    allow_lost: int = 0,
    late: LateHosts | None = None,
) -> Engine | Fleet:
    """Start an engine on every host; a single one on this machine is spoken to directly. ``late``
    hosts may join. Raises ``UserError``, ``EngineError``."""
    check_shares(len(hosts), connections, load)
    if late is None and len(hosts) == 1 and isinstance(hosts[0].place, LocalPlace):
        return Engine.start(hosts[0].place)
    from trueload.engines.elastic_fleet import ElasticFleet
    from trueload.engines.fleet import Fleet

    if late is not None:
        fleet = ElasticFleet.start(hosts, pauses, allow_lost)
        fleet.await_hosts(late)
        return fleet
    return Fleet.start(hosts, pauses, allow_lost)
