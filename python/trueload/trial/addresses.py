"""Resolve the addresses of a trial's origins, just before the trial begins."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from trueload.machine.facts import count_ports
from trueload.machine.ports import SETS, sources
from trueload.request.route import Route
from trueload.request.url import Url
from trueload.trial.spec import TrialSpec


def with_addresses(
    spec: TrialSpec, route: Route, endpoint: Url, origins: Sequence[Url]
) -> TrialSpec:
    """Return the specification with the addresses of its origins.

    Asks the system's resolver, in bounded time. If one origin cannot be resolved the load as asked
    for does not exist, and the specification gets no address at all.
    """
    if not spec.traffic.origins:
        return replace(spec, addresses=route.addresses(endpoint))
    found = [route.addresses(origin) for origin in origins]
    every = tuple(dict.fromkeys(address for each in found for address in each))
    reached = zip(spec.traffic.origins, found, strict=True)
    origins_reached = tuple(replace(origin, addresses=each) for origin, each in reached)
    return replace(
        spec,
        addresses=every if all(found) else (),
        traffic=replace(spec.traffic, origins=origins_reached),
    )


def with_sources(spec: TrialSpec, most: int = 0) -> TrialSpec:
    """Return the specification with several local addresses to connect from, where that helps.

    Addresses that the user named are kept. ``most`` is the number of connections that the trial may
    come to later.
    """
    connections = max(most, spec.load.most)
    if spec.traffic.local_addresses:
        return spec
    found = sources(spec.addresses, connections, count_ports(), random.randrange(SETS))
    return replace(spec, traffic=replace(spec.traffic, local_addresses=found))
