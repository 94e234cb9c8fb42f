"""Whether the server of an address may be on this machine, and whether every process here can be
inspected.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from pathlib import Path

from trueload.machine.listeners import address_of
from trueload.machine.processes import PROC
from trueload.machine.sock_diag import Address

MACHINES_OWN = "pid:[4026531836]"  # linux/nsfs.h, PID_NS_INIT_INO: the outermost process namespace


def sees_all_processes() -> bool:
    """Whether other users' processes can be inspected: only by root, outside of containers."""
    try:
        return os.geteuid() == 0 and os.readlink(PROC / "self/ns/pid") == MACHINES_OWN
    except OSError:
        return False


def may_be_here(address: str) -> bool:
    """Whether the server of ``IP:PORT`` may be on this machine. True if the address is one of this
    machine's, or if it is reached through an interface without hardware, as containers are. False
    if this cannot be determined. A Unix socket is always here."""
    if address.startswith("unix:"):
        return True
    host = address.rpartition(":")[0].strip("[]")
    try:
        wanted = ipaddress.ip_address(host.partition("%")[0])
        if wanted.is_loopback or _source_of(str(wanted)) == wanted:
            return True
        interface = _interface_of(wanted)
    except (OSError, ValueError):
        return False
    return interface is not None and not Path(f"/sys/class/net/{interface}/device").exists()


def _source_of(address: str) -> Address:
    """The source address that the kernel would use to reach ``address``; nothing is sent."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((address, 9))
        return ipaddress.ip_address(probe.getsockname()[0].partition("%")[0])


def _interface_of(wanted: Address) -> str | None:
    """The interface of the most specific IPv4 route; None if there is none, and for IPv6."""
    best: tuple[int, str] | None = None
    for line in (PROC / "net/route").read_text().splitlines()[1:]:
        name, to, *_, mask = line.split()[:8]
        if wanted.version == 4 and int(wanted) & _number(mask) == _number(to):
            best = max(best or (-1, ""), (_number(mask), name))
    return best[1] if best else None


def _number(spelling: str) -> int:
    return int(address_of(spelling))
