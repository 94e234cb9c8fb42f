"""The server of a trial that nobody started: found by its listening socket on this machine.

Also the CPUs that such a server leaves free.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from functools import partial

from trueload.engines.engine import EngineError
from trueload.errors import ExitCode, UserError
from trueload.machine.accounting import ProcessTree, TreeSample
from trueload.machine.listeners import hold_all, listening_inodes, socket_owners, unix_listeners
from trueload.machine.processes import family, identity, read_parents
from trueload.places.local import LocalPlace
from trueload.record.schema import ServerSource
from trueload.request.route import UNIX, is_loopback
from trueload.trial.spec import Tree, TrialSpec


def found_pids(address: str, *, udp: bool = False, known: Collection[int] = ()) -> set[int]:
    """Return the processes that serve an address of this machine, except ours.

    These are the processes that hold its listening socket, and their children; we and our children
    do not count. ``known`` are processes found before: if they hold all sockets that listen there
    now, nobody else is looked at.
    """
    holders = _holders(address, udp, known)
    if len(holders) > 1:
        holders.discard(1)  # an init that opened the socket for the server is not the server
    # Looked up last, so that what we start meanwhile still counts as ours.
    parents = read_parents()
    me = os.getpid()
    ours = family(parents, {me})
    found = family(parents, holders - {1}) | holders
    # A test or a notebook may have started the server in the way it starts the engine.
    return found - ours | family(parents, holders & ours - {me}) | holders & {me}


def _holders(address: str, udp: bool, known: Collection[int]) -> set[int]:
    if address.startswith(UNIX):
        return unix_listeners(address.removeprefix(UNIX))
    host, _, port = address.rpartition(":")
    inodes = listening_inodes(host.strip("[]").partition("%")[0], int(port), udp=udp)
    if inodes and hold_all(known, inodes):
        return set(known)
    return socket_owners(inodes)


def found_at(
    addresses: Sequence[str], *, udp: bool = False, known: Collection[int] = ()
) -> set[int]:
    """Return the processes that serve any of several addresses, as ``found_pids`` does for one.

    Empty if one address is served by a process that cannot be seen: otherwise the use of the others
    would pass for the total.
    """
    found: set[int] = set()
    for address in addresses:
        pids = found_pids(address, udp=udp, known=known)
        if not pids and len(addresses) > 1 and is_served(address, udp=udp):
            return set()
        found |= pids
    return found


def is_served(address: str, *, udp: bool = False) -> bool:
    """Whether a socket of this machine listens on ``IP:PORT``, even if its owner cannot be seen."""
    host, _, port = address.rpartition(":")
    return bool(listening_inodes(host.strip("[]").partition("%")[0], int(port), udp=udp))


def find_server(spec: TrialSpec) -> tuple[Tree | None, ServerSource | None]:
    """The server's process tree, and whether we started it, it was named, or we found it."""
    if spec.server is not None:
        return spec.server, "started"
    if spec.server_pid is not None:
        return ProcessTree(spec.server_pid), "named"
    here = all(isinstance(host.place, LocalPlace) for host in spec.hosts)
    if not here or not spec.addresses or not all(map(is_loopback, spec.addresses)):
        return None, None  # another host's loopback is not ours
    # One server has the same process behind each address; several origins are several servers.
    addresses = [origin.addresses[0] for origin in spec.traffic.origins] or [spec.addresses[0]]
    udp = spec.traffic.exchange is not None and spec.traffic.exchange.over_udp
    if not found_at(addresses, udp=udp):
        return None, None
    find = partial(found_at, addresses, udp=udp)
    return ProcessTree(Followed(lambda known: find(known=known))), "found"


class Followed:
    """The server's processes that were found, for as long as they live.

    A server that has closed its socket, for good or for a while, still works, and its earlier use
    is known.
    """

    def __init__(self, find: Callable[[Collection[int]], set[int]]) -> None:
        self._find = find
        self._known: set[tuple[int, int]] = set()

    def __call__(self) -> set[int]:
        """Return the ids of the processes that are alive."""
        alive = {each for each in self._known if identity(each[0]) == each}
        found = (identity(pid) for pid in self._find([pid for pid, _ in alive]))
        self._known = alive | {each for each in found if each is not None}
        return {pid for pid, _ in self._known}


def choose_cpus(spec: TrialSpec, server: TreeSample | None) -> tuple[int, ...]:
    """The CPUs asked for; else, if a server on this machine is pinned, those it leaves free.

    Empty if the engine may use all CPUs.
    """
    if spec.engine.cpus is not None:
        return spec.engine.cpus
    taken, mine = server_cpus(spec, server), affinity(0)
    free = mine - taken
    return tuple(sorted(free)) if taken and free and free != mine else ()


def server_cpus(spec: TrialSpec, server: TreeSample | None) -> set[int]:
    """The CPUs that a server on this machine may use; empty for any other server."""
    if server is None or not spec.addresses or not all(map(is_loopback, spec.addresses)):
        return set()
    return {cpu for process in server.processes.values() for cpu in process.cpus}


def first_sample(tree: Tree) -> TreeSample:
    """Sample the server before anything is sent. Raises ``UserError`` if its host is lost."""
    try:
        return tree.sample()
    except EngineError as error:
        raise UserError(str(error), "look at that host", ExitCode.NOTHING_MEASURED) from error


def affinity(pid: int) -> set[int]:
    """The CPUs that a process of this machine may use; empty if it has gone."""
    try:
        return set(os.sched_getaffinity(pid))
    except OSError:
        return set()
