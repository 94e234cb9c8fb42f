"""The addresses of a trial's origins, asked of the system when the trial is about to begin."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from trueload.machine.facts import count_ports
from trueload.machine.ports import SETS, sources
from trueload.request.route import Route
from trueload.request.target import Target
from trueload.trial.spec import TrialSpec


def with_addresses(
    spec: TrialSpec, route: Route, target: Target, origins: Sequence[Target]
) -> TrialSpec:
    """The specification with the addresses of its origins; asks the system for them, in bounded
    time. With one of them unknown, there is no such load: it has no address then."""
    if not spec.origins:
        return replace(spec, addresses=route.addresses(target))
    found = [route.addresses(origin) for origin in origins]
    every = tuple(dict.fromkeys(address for each in found for address in each))
    reached = zip(spec.origins, found, strict=True)
    return replace(
        spec,
        addresses=every if all(found) else (),
        origins=tuple(replace(origin, addresses=each) for origin, each in reached),
    )


def with_sources(spec: TrialSpec, most: int = 0) -> TrialSpec:
    """Several addresses to connect from, where that helps and nobody has named any. ``most`` are
    the connections that it may come to later."""
    connections = max(most, spec.load.most)
    if spec.local_addresses:
        return spec
    found = sources(spec.addresses, connections, count_ports(), random.randrange(SETS))
    return replace(spec, local_addresses=found)
