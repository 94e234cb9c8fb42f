"""Opens the chosen places. Each has answered and has the engine before it is handed on.

How: the module for a kind of place is imported only if one of that kind is wanted. Hosts are
prepared in parallel, and the first that cannot be used ends it for all, before anything is started.
Must not know what will run there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol, runtime_checkable

from trueload.places import EngineHost, Place
from trueload.places.local import LocalPlace
from trueload.places.named import (
    CommandHost,
    GeneratorHost,
    Here,
    Named,
    RayCluster,
    SshHost,
    Where,
)

AT_ONCE_MAX = 32  # hosts that are prepared at the same time


@contextlib.contextmanager
def open_places(where: Where, program: Path) -> Iterator[tuple[EngineHost, ...]]:
    """Open the generators' places, in their order; ``program`` is what will be started there.
    Raises ``UserError`` for a place that cannot be used; nothing has been started then."""
    with contextlib.ExitStack() as stack:
        made = [_make(each, where.ray_hosts, stack) for each in where.generators]
        prepare([place for places in made for place in places], program)
        yield tuple(
            EngineHost(place, each.cpus, each.local_addresses, each.group)
            for each, places in zip(where.generators, made, strict=True)
            for place in places
        )


@contextlib.contextmanager
def open_place(named: Named, program: Path) -> Iterator[Place]:
    """Open one place as ``open_places`` does."""
    with open_places(Where(generators=(GeneratorHost(place=named),)), program) as opened:
        yield opened[0].place


def prepare(places: Sequence[Place], program: Path) -> None:
    """Prepare every host for the program. Raises the ``UserError`` of the first in order."""
    slow = [place for place in places if isinstance(place, Preparable)]
    if not slow:
        return
    with ThreadPoolExecutor(min(AT_ONCE_MAX, len(slow)), "prepare") as pool:
        for done in [pool.submit(place.prepare, program) for place in slow]:
            done.result()


@runtime_checkable
class Preparable(Protocol):
    """A place that must be reached, and given its program, before it can start it."""

    def prepare(self, program: Path) -> None:
        """Connect, and make sure that the program is there. Raises ``UserError``."""
        ...


def _make(host: GeneratorHost, ray_hosts: int, stack: contextlib.ExitStack) -> Sequence[Place]:
    match host.place:
        case Here():
            return [LocalPlace()]
        case SshHost(destination):
            from trueload.places.ssh import SshPlace  # imported late: most commands need none

            return [stack.enter_context(SshPlace(destination))]
        case CommandHost(argv):
            from trueload.places.command import CommandPlace

            return [CommandPlace(host.place.name, argv)]
        case RayCluster(address):
            from trueload.places.ray import reserve

            reserved = reserve(address, ray_hosts, labels=dict(host.labels))
            return stack.enter_context(reserved).places
