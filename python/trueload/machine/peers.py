"""Finds the processes of this host that a server has connected to: the backends of a proxy.

How: for each socket of the given processes, the kernel's tables name the remote end. If that end is
on this host and a process listens there, its listeners and their children are backends, and so are
their own backends. Processes that connected *to* the given ones, such as a load generator, are
never included. A process in another network namespace (a container) is found in that namespace's
own tables. Unix sockets are queried by netlink, since /proc does not name their peers.

Linux only. What has gone, or cannot be seen, is left out.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from trueload.machine.listeners import LISTEN_STATE, held_sockets, socket_owners
from trueload.machine.processes import PROC, all_pids, family, read_parents, table_lines
from trueload.machine.sock_diag import dump

End = tuple[str, str]
"""Address and port of a socket, in hexadecimal as the kernel prints them."""
_MAPPED = ("0000000000000000FFFF0000", "00000000000000000000FFFF")
"""Prefix of an IPv4 address in the tables of IPv6, for either byte order of the machine."""

_NAME, _PEER, _WAITING = 0, 2, 3  # linux/unix_diag.h, UNIX_DIAG_NAME, _PEER, _ICONS
_SHOW = 1 | 4 | 8  # linux/unix_diag.h, UDIAG_SHOW_NAME, _PEER, _ICONS
_UNIX_LISTENS = 10  # net/tcp_states.h, TCP_LISTEN


@dataclass
class _Table:
    """The TCP sockets of one network namespace."""

    connected: dict[int, tuple[End, End]] = field(default_factory=dict)
    """Local and remote end of each connected socket, by inode."""
    ends: set[tuple[End, End]] = field(default_factory=set)
    listening: list[tuple[End, int]] = field(default_factory=list)

    def listeners_of(self, near: End, far: End) -> set[int]:
        """Inodes of the sockets that accepted the connection, if its other end is in this table."""
        if (far, near) not in self.ends:
            return set()
        address, port = far
        return {
            inode
            for (bound, there), inode in self.listening
            if there == port and (bound == address or _takes_any(bound, address))
        }


def backends(pids: Iterable[int], without: Iterable[int] = ()) -> set[int]:
    """Pids of the processes that serve what ``pids`` have connected to, directly or through one
    another. It never includes ``pids`` or ``without``, and follows no connection of the latter."""
    fresh = set(pids)
    known = fresh | set(without) | {1}  # init may hold a server's socket, but does not serve
    found: set[int] = set()
    while fresh:
        serving = socket_owners(_listeners_behind(fresh))
        fresh = family(read_parents(), serving - known) - known
        known |= fresh
        found |= fresh
    return found


def _listeners_behind(pids: set[int]) -> set[int]:
    """Inodes of the sockets that listen at the remote ends of the processes' connections."""
    held_in: dict[str, set[int]] = {}
    first: dict[str, int] = {}
    for pid in pids:
        if space := _namespace(pid):
            held_in.setdefault(space, set()).update(held_sockets(pid))
            first.setdefault(space, pid)
    found = _unix_listeners_behind(set().union(*held_in.values()))
    distant: list[tuple[End, End]] = []
    for space, held in held_in.items():
        table = _read_table(first[space])
        for ends in (table.connected[inode] for inode in held & table.connected.keys()):
            here = table.listeners_of(*ends)
            found |= here
            # A remote end in this table without a listener belongs to a client of ours, so it is
            # not sought.
            if not here and (ends[1], ends[0]) not in table.ends:
                distant.append(ends)
    if distant:
        tables = [_read_table(pid) for pid in _other_namespaces(set(held_in))]
        found = found.union(*(table.listeners_of(*ends) for table in tables for ends in distant))
    return found


def _other_namespaces(without: set[str]) -> Iterator[int]:
    """Yield the pid of one process in each visible network namespace that is not in ``without``."""
    seen = set(without)
    for pid in all_pids():
        space = _namespace(pid)
        if space and space not in seen:
            seen.add(space)
            yield pid


def _takes_any(bound: str, address: str) -> bool:
    """Whether ``bound`` is the wildcard address of this one's family; ``::`` covers IPv4, too."""
    return not bound.strip("0") and len(bound) >= len(address)


def _namespace(pid: int) -> str:
    try:
        return os.readlink(PROC / str(pid) / "ns" / "net")
    except OSError:
        return ""


def _read_table(pid: int) -> _Table:
    table = _Table()
    for name in ("tcp", "tcp6"):
        for line in table_lines(f"{pid}/net/{name}"):
            _, near, far, state, _, _, _, _, _, inode, *_ = line.split(maxsplit=10)
            if state == LISTEN_STATE:
                table.listening.append((_end(near), int(inode)))
                continue
            ends = (_end(near), _end(far))
            table.ends.add(ends)
            if inode != "0":
                table.connected[int(inode)] = ends
    return table


def _end(spelling: str) -> End:
    address, _, port = spelling.partition(":")
    return (address[24:] if address.startswith(_MAPPED) else address), port


@dataclass(frozen=True)
class _Unix:
    """A Unix socket. ``name`` is empty unless it is bound; ``peer`` is 0 unless it is connected and
    accepted. ``serves``: it takes connections or datagrams. ``waiting``: inodes of sockets that
    have connected to it and are not accepted yet."""

    name: bytes
    peer: int
    serves: bool
    waiting: frozenset[int]


def _unix_listeners_behind(held: set[int]) -> set[int]:
    """Inodes of the Unix sockets that serve the names to which the held ones are connected."""
    try:
        table = dict(_unix_sockets()) if held else {}
    except (OSError, struct.error):  # this kernel does not tell
        return set()
    peers = {table[inode].peer for inode in held & table.keys()} & table.keys()
    # An accepted socket has its listener's name; a connecting socket usually has none.
    names = {table[peer].name for peer in peers} - {b""}
    return {
        inode
        for inode, one in table.items()
        if one.serves and (one.name in names or one.waiting & held)
    }


def _unix_sockets() -> Iterator[tuple[int, _Unix]]:
    """Every Unix socket of our network namespace by inode (man 7 sock_diag). Raises ``OSError``."""
    every_state = 0xFFFFFFFF
    asked = struct.pack("=BBHIIIII", socket.AF_UNIX, 0, 0, every_state, 0, _SHOW, 0, 0)
    return map(_unix_socket, dump(asked))


def _unix_socket(message: bytes) -> tuple[int, _Unix]:
    """Decode one ``unix_diag_msg`` with its attributes."""
    kind_of_socket, state, inode = struct.unpack_from("=xBBxI", message)
    name, peer, waiting, at = b"", 0, frozenset[int](), 16
    while at + 4 <= len(message):
        length, kind = struct.unpack_from("=HH", message, at)
        value = message[at + 4 : at + length]
        if kind == _NAME:
            name = value.rstrip(b"\0") or value
        elif kind == _PEER:
            (peer,) = struct.unpack("=I", value)
        elif kind == _WAITING:
            waiting = frozenset(struct.unpack(f"={len(value) // 4}I", value))
        at += (max(length, 4) + 3) & ~3
    serves = state == _UNIX_LISTENS or kind_of_socket == socket.SOCK_DGRAM
    return inode, _Unix(name, peer, serves, waiting)
