"""Opens the chosen places. Each has answered and has the engine before it is handed on.

How: the module for a kind of place is imported only if one of that kind is wanted. Hosts are
prepared in parallel, and the first that cannot be used ends it for all, before anything is started.
If hosts may come later, those that are not there yet are tried again.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from trueload.errors import HostError
from trueload.places import EngineHost, Place
from trueload.places.copying import Copying, Preparable
from trueload.places.host_wait import HostWait
from trueload.places.late_hosts import FuturePlace, LateHosts
from trueload.places.local import LocalPlace
from trueload.places.names import (
    CommandHost,
    GeneratorHost,
    K8sPods,
    Named,
    Placement,
    RayCluster,
    SshHost,
    ThisMachine,
)

HOSTS_TESTED = 256  # bench/many_hosts.py holds a front over so many to its targets
AT_ONCE_MAX = 32  # hosts that are prepared at the same time
POLL_S = 0.1
TELL_EVERY_S = 1.0


@contextlib.contextmanager
def open_places(
    placement: Placement,
    program: Path,
    *,
    announce: Callable[[str], object] = lambda line: None,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[EngineHost, ...]]:
    """Open the generators' places, in their order; ``program`` is what will be started there.
    Raises ``UserError`` for a place that cannot be used; nothing has been started then. Raises
    ``KeyboardInterrupt`` once it is ``stopped``. Long copies are announced."""
    with open_first(placement, program, announce=announce, stopped=stopped) as (hosts, late):
        assert late is None, "the caller has refused hosts that come later"
        yield hosts


@contextlib.contextmanager
def open_first(
    placement: Placement,
    program: Path,
    *,
    announce: Callable[[str], object] = lambda line: None,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[tuple[EngineHost, ...], LateHosts | None]]:
    """Open the places that are there, as ``open_places`` does, if they are enough to begin with.
    Those that are missing may come later."""
    wait_ns = placement.hosts_wait_ns
    wait = None if wait_ns is None else HostWait(wait_ns, announce, stopped)
    if placement.host_count > HOSTS_TESTED:
        announce(f"warning: {placement.host_count} hosts: up to {HOSTS_TESTED} have been tested")
    with contextlib.ExitStack() as stack:
        opening = _Opening(placement, stack, wait, announce, stopped)
        made = [_make(each, opening) for each in placement.generators]
        opened = [place for places in made for place in places]
        missing = prepare(opened, program, announce, stopped, wait, placement.hosts_least)
        hosts = [
            EngineHost(place, each.cpus, each.local_addresses, each.group, each.weight)
            for each, places in zip(placement.generators, made, strict=True)
            for place in places
        ]
        absent = {id(place) for place in missing}
        late = [host for host in hosts if id(host.place) in absent]
        there = [host for host in hosts if id(host.place) not in absent]
        if placement.hosts_least is None:
            yield tuple(there), None
            return
        yield tuple(there), stack.enter_context(LateHosts(late, program, announce))


@contextlib.contextmanager
def open_place(named: Named, program: Path, *, keep: bool = True) -> Iterator[Place]:
    """Open one place as ``open_places`` does."""
    placement = Placement(generators=(GeneratorHost(place=named),), keep=keep)
    with open_places(placement, program) as opened:
        yield opened[0].place


def prepare(
    places: Sequence[Place],
    program: Path,
    announce: Callable[[str], object] = lambda line: None,
    stopped: Callable[[], bool] = lambda: False,
    wait: HostWait | None = None,
    least: int | None = None,
) -> Sequence[Preparable]:
    """Prepare every host for the program. Raises the ``UserError`` of one that fails, which calls
    off the others, and ``KeyboardInterrupt`` once it is ``stopped``. With ``wait``, hosts that
    are not there yet are tried again. If so many as ``least`` are enough, return the missing ones.
    """
    expected = len(places) if least is None else least
    missing: list[Preparable] = [place for place in places if isinstance(place, Preparable)]
    while missing:
        is_patient = wait is not None or least is not None
        tried = _prepare_once(missing, program, Copying(announce), stopped, is_patient)
        missing = [place for place, error in tried if error is not None]
        error = next((error for _, error in tried if error is not None), None)
        here = len(places) - len(missing)
        if error is None or here >= expected:
            break
        if wait is None:
            raise error
        if not wait.again(here, expected, error.message):
            raise wait.too_late(here, expected, error)
    return missing


def _prepare_once(
    places: Sequence[Preparable],
    program: Path,
    copying: Copying,
    stopped: Callable[[], bool],
    is_patient: bool,
) -> list[tuple[Preparable, HostError | None]]:
    """Prepare places in parallel. Return the error of each that is not there yet, if the caller is
    patient; every other error is raised, as in ``prepare``."""

    def attempt(place: Preparable) -> HostError | None:
        try:
            place.prepare(program, copying)
        except HostError as error:
            if not is_patient:
                raise
            return error
        return None

    pool = ThreadPoolExecutor(min(AT_ONCE_MAX, len(places)), "prepare")
    try:
        todo = [pool.submit(attempt, place) for place in places]
        _watch(todo, copying, stopped)
        failed = next((each for each in todo if each.done() and each.exception()), None)
        if failed is not None:
            failed.result()
        return [(place, each.result()) for place, each in zip(places, todo, strict=True)]
    finally:
        # What is under way ends soon then; nothing else may begin.
        copying.call_off()
        pool.shutdown(wait=True, cancel_futures=True)


def _watch(
    todo: Sequence[Future[HostError | None]], copying: Copying, stopped: Callable[[], bool]
) -> None:
    """Wait until all have ended or one has failed, and announce now and then what is copied."""
    told_s = time.monotonic()
    while not wait(todo, POLL_S, return_when=FIRST_EXCEPTION).done.issuperset(todo):
        if stopped():
            raise KeyboardInterrupt
        if any(each.done() and each.exception() is not None for each in todo):
            return
        if time.monotonic() - told_s >= TELL_EVERY_S:
            told_s = time.monotonic()
            if (line := copying.line()) is not None:
                copying.announce(line)


@dataclass(frozen=True)
class _Opening:
    """What opens a place: the stack closes it, and the user is told and listened to."""

    placement: Placement
    stack: contextlib.ExitStack
    wait: HostWait | None
    announce: Callable[[str], object]
    stopped: Callable[[], bool]


def _make(host: GeneratorHost, opening: _Opening) -> Sequence[Place]:
    placement, stack = opening.placement, opening.stack
    match host.place:
        case ThisMachine():
            return [LocalPlace()]
        case SshHost(destination):
            from trueload.places.ssh import SshPlace  # imported late: most commands need none

            return [stack.enter_context(SshPlace(destination, keep=placement.keep))]
        case CommandHost(argv):
            from trueload.places.command import CommandPlace

            place = CommandPlace(host.place.name, argv, keep=placement.keep)
            return [stack.enter_context(place)]
        case RayCluster(address):
            from trueload.places.ray import reserve

            most, labels = placement.hosts or 1, dict(host.labels)
            first = placement.hosts_least or most
            reserved = reserve(
                address, first, labels=labels, wait=opening.wait, stopped=opening.stopped
            )
            places = list[Place](stack.enter_context(reserved).places)
            return places + _later("a host of the Ray cluster", reserved.one_more, most - first)
        case K8sPods():
            return _pods(host.place, opening)


def _pods(named: K8sPods, opening: _Opening) -> Sequence[Place]:
    from trueload.places.k8s import reserve

    placement, announce, stopped = opening.placement, opening.announce, opening.stopped
    new, least = placement.new_pods, placement.hosts_least
    most = (placement.hosts or 1) if named.are_made else placement.hosts
    wait = opening.wait
    if wait is None and named.are_made:
        wait = HostWait(new.wait_ns, announce, stopped)
    reserved, places = reserve(
        named,
        (least, most),
        new,
        opening.stack,
        keep=placement.keep,
        wait=wait,
        announce=announce,
    )
    # A Pod that is lost may be replaced by one that joins: any of them may come later.
    return list[Place](places) + _later("a Pod", reserved.one_more, (most or 0) if least else 0)


def _later(kind: str, one_more: Callable[[], Place], count: int) -> list[Place]:
    return [FuturePlace(kind, one_more) for _ in range(count)]
