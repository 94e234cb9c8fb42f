"""Which sockets of this machine listen where, and which processes hold them.

Linux only. What has gone, or cannot be seen, is left out.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import sys
from collections.abc import Iterable, Iterator

from trueload.machine.processes import all_pids, table_lines
from trueload.machine.sock_diag import Address, tcp_listeners

UNIX_ACCEPTS = 1 << 16  # include/uapi/linux/net.h, __SO_ACCEPTCON
LISTEN_STATE = "0A"  # include/net/tcp_states.h, TCP_LISTEN
UNCONNECTED_STATE = "07"  # TCP_CLOSE: a UDP socket that receives from any peer


def listening_inodes(host: str, port: int, *, udp: bool = False) -> set[int]:
    """Inodes of the sockets that would accept a TCP connection, or datagrams, sent to host:port.

    ``host`` is an address, not a name. A socket bound to the family's wildcard address counts. One
    bound to `::` counts for IPv4 too, since nobody can see from outside whether it takes IPv4.
    """
    wanted = ipaddress.ip_address(host)
    found = _listening(udp=udp)
    return {inode for bound, there, inode in found if there == port and _accepts(bound, wanted)}


def read_listeners() -> list[tuple[str, int, int]]:
    """Address, port and inode of every listening TCP socket."""
    return [(str(address), port, inode) for address, port, inode in _listening()]


def _listening(*, udp: bool = False) -> Iterable[tuple[Address, int, int]]:
    """(address, port, inode) of every listening socket."""
    if not udp:
        with contextlib.suppress(OSError):  # a kernel without inet_diag
            return list(tcp_listeners())
    return _listening_by_tables("udp" if udp else "tcp", UNCONNECTED_STATE if udp else LISTEN_STATE)


def _listening_by_tables(protocol: str, state: str) -> Iterator[tuple[Address, int, int]]:
    for table in (protocol, f"{protocol}6"):
        for line in table_lines(f"net/{table}"):
            fields = line.split()
            if fields[3] == state:
                address, _, hex_port = fields[1].partition(":")
                yield address_of(address), int(hex_port, 16), int(fields[9])


def address_of(spelling: str) -> Address:
    """Parse an address as the kernel prints it: 32-bit words, each in the machine's byte order."""
    words = (spelling[i : i + 8] for i in range(0, len(spelling), 8))
    return ipaddress.ip_address(b"".join(int(w, 16).to_bytes(4, sys.byteorder) for w in words))


def _accepts(bound: Address, wanted: Address) -> bool:
    """Whether a socket bound to ``bound`` receives what is sent to ``wanted``."""
    if bound.is_unspecified:
        return bound.version >= wanted.version
    return wanted in (bound, getattr(bound, "ipv4_mapped", None))


def socket_owners(inodes: set[int], pids: Iterable[int] | None = None) -> set[int]:
    """Pids of the processes (among `pids`, else all) that hold one of the sockets."""
    if not inodes:
        return set()
    among = all_pids() if pids is None else pids
    return {pid for pid in among if any(inode in inodes for inode in held_sockets(pid))}


def hold_all(pids: Iterable[int], inodes: set[int]) -> bool:
    """Whether these processes hold each of the sockets, among them."""
    missing = set(inodes)
    for pid in pids:
        for inode in held_sockets(pid):
            missing.discard(inode)
            if not missing:
                return True
    return not missing


def held_sockets(pid: int) -> Iterator[int]:
    """Inodes of the sockets that a process holds; none if it has gone or cannot be inspected."""
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        try:
            held = os.readlink(f"{folder}/{name}")
        except OSError:
            continue
        if held.startswith("socket:["):
            yield int(held[8:-1])


def listeners(host: str, port: int, *, udp: bool = False) -> set[int]:
    """Pids of the processes that listen on host:port; empty if none is visible."""
    return socket_owners(listening_inodes(host, port, udp=udp))


def unix_listeners(path: str) -> set[int]:
    """Pids of the processes that listen on a Unix socket file; empty as for `listeners`.

    The kernel reports the name as it was bound. A relative name is resolved against the current
    folder of the socket's owner.
    """
    wanted = os.path.realpath(path)
    owners: set[int] = set()
    for bound, inode in _unix_listening():
        if os.path.basename(bound) != os.path.basename(wanted):
            continue
        found = socket_owners({inode})
        if os.path.isabs(bound):
            owners |= found if os.path.realpath(bound) == wanted else set()
        else:
            owners |= {pid for pid in found if os.path.realpath(_seen_from(pid, bound)) == wanted}
    return owners


def _unix_listening() -> Iterator[tuple[str, int]]:
    """(name as bound, inode) of every listening Unix socket that has a name."""
    for line in table_lines("net/unix", "surrogateescape"):
        fields = line.split(maxsplit=7)
        if len(fields) == 8 and int(fields[3], 16) & UNIX_ACCEPTS:
            yield fields[7], int(fields[6])


def _seen_from(pid: int, path: str) -> str:
    try:
        return os.path.join(os.readlink(f"/proc/{pid}/cwd"), path)
    except OSError:
        return path
