"""Source addresses for connections to a server on this machine, when one address has too few ports.

How: all of 127.0.0.0/8 is this machine, so a load of many connections can take its ports from
several of those addresses. Each run uses different addresses, because ports of the run before may
stay reserved for a minute (TIME_WAIT). Once half of an address's ports are taken, the kernel
searches all of that half for every new connection, which takes about a millisecond each. Pure: the
random choice is an argument.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

PER_ADDRESS, SHARE = 2_000, 8
"""The most connections from one address. They also take at most 1 / ``SHARE`` of its ports (28,232
as Linux is usually set), far below the half from which on finding another one is slow."""
SETS = 60_000
"""Number of address ranges to choose from at random."""
_FIRST = int(ipaddress.IPv4Address("127.1.0.1"))
_EACH = 256


def sources(
    addresses: Sequence[str], connections: int, ports: int | None, chance: int
) -> tuple[str, ...]:
    """Addresses to connect from; empty if the kernel's choice will do, which is so for few
    connections and for a target elsewhere. ``ports`` is the number of ports of one address, None if
    unknown. ``chance`` is from 0 to ``SETS`` - 1."""
    each = PER_ADDRESS if ports is None else max(1, min(PER_ADDRESS, ports // SHARE))
    count = -(-connections // each)
    if count < 2 or not addresses or not all(map(_is_loopback, addresses)):
        return ()
    first = _FIRST + chance * _EACH
    return tuple(str(ipaddress.IPv4Address(first + number)) for number in range(count))


def _is_loopback(address: str) -> bool:
    """Whether ``IP:PORT`` is IPv4 loopback. ``[::1]:80`` has no neighbouring addresses."""
    try:
        return ipaddress.IPv4Address(address.rpartition(":")[0]).is_loopback
    except ValueError:
        return False
