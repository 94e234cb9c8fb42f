"""The listeners and free ports of this host, which the start of a server needs.

Uses only the standard library and ``accounting``: the agent takes it to other hosts.
"""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path

from trueload.machine.listeners import listening_inodes, read_listeners, socket_owners
from trueload.machine.processes import all_pids

# Below the ports that the kernel gives to outgoing connections. One of those could take a subject's
# port between its choice and its start.
PORT_MIN = 15_000


def count_sockets(host: str, port: int) -> int:
    """Return how many sockets would accept a connection there."""
    return len(listening_inodes(host, port))


def taken_by(host: str, port: int, tree: set[int]) -> str | None:
    """Return who listens there beside the tree, as a text; None if nobody does."""
    inodes = listening_inodes(host, port)
    for inode in inodes:
        if tree and socket_owners({inode}, tree):
            continue
        owners = sorted(socket_owners({inode}, set(all_pids()) - tree))
        if owners:
            return f"process {owners[0]} ({_command_name(owners[0])})"
        # The subject's own socket may have been closed, or handed on, between the two calls.
        if inode in listening_inodes(host, port) and not socket_owners({inode}):
            return "a process that cannot be seen"
    return None


def listens_on(pids: set[int]) -> list[str]:
    """Return all addresses that the processes listen on, as ADDRESS:PORT."""
    return sorted(
        {
            f"{address}:{port}"
            for address, port, inode in read_listeners()
            if socket_owners({inode}, pids)
        }
    )


def free_port(host: str) -> int:
    """Return a port that nobody listens on and that no outgoing connection will get. Raises
    ``OSError``."""
    top = _first_ephemeral_port() - 1
    if top < PORT_MIN + 1000:
        top = 65_535
    for _ in range(1000):
        port = random.randint(PORT_MIN, top)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind((host, port))
                return port
    raise OSError(f"no port of {host} is free")


def _command_name(pid: int) -> str:
    try:
        name = Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return "gone"
    return "".join(c if c.isprintable() else "?" for c in name)


def _first_ephemeral_port() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 32_768
