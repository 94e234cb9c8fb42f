"""Hosts that join later (``--hosts 2..3``): what they exclude. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from trueload.errors import UserError
from trueload.places.names import Placement
from trueload.protocol.option import refuse_beside
from trueload.protocol.plan import Closed, Duration
from trueload.request.plans import has_place, places_of
from trueload.request.traffic import Traffic
from trueload.trial.spec import Load
from trueload.units import counted


def check_joining(
    placement: Placement, traffic: Traffic, load: Load, more: Mapping[str, object]
) -> None:
    """Refuse what cannot be divided again while it runs; ``more`` are further flags, and whether
    they were given. Raises ``UserError``."""
    if placement.hosts_least is None:
        return
    excluded = {
        **more,
        "--scenario": bool(traffic.scenario),
        "--targets": bool(traffic.targets),
        "{counter}": traffic.request is not None
        and has_place(traffic.request, places_of(("counter",))),
        "--data": traffic.data is not None,
        "--replay": traffic.replay is not None,
        "--connect-open": load.connect_open,
        "--idle": bool(load.idle),
        "--requests": not isinstance(load.stop, Duration),
        "--stages-of connections": isinstance(load.pacing, Closed) and bool(load.pacing.active),
    }
    refuse_beside(
        f"--hosts {placement.hosts_least}..{placement.host_count}",
        excluded,
        "leave one of them out, or wait for all hosts with --hosts-wait",
        "the load must be one that can be divided again while it runs",
    )
    if load.connections < placement.host_count:
        raise UserError(
            f"{counted(load.connections, 'connection is', 'connections are')} too few for"
            f" {placement.host_count} hosts",
            "name at least one for each host that may join",
        )
