"""Where connections to a server on this machine come from, when one address has too few ports.

How: all of 127.0.0.0/8 is this machine, so that a load of many connections can take its ports from
several of those addresses. Each run takes other ones: ports of the run before it may still be kept
(TIME_WAIT, a minute), and where half of an address's are, the kernel looks through all of those
for every new connection, which takes it a millisecond each. Pure: chance is an argument.

Must not know how a trial is run.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

PER_ADDRESS, SHARE = 2_000, 8
"""Connections from one address, at most, and of its ports (28,232, as Linux is usually set) at most
one in so many: far from the half from which on each further one is slow to find."""
SETS = 60_000
"""How many beginnings there are to choose from by chance."""
_FIRST = int(ipaddress.IPv4Address("127.1.0.1"))
_EACH = 256


def sources(
    addresses: Sequence[str], connections: int, ports: int | None, chance: int
) -> tuple[str, ...]:
    """Addresses to connect from, none where the kernel's choice will do: for few connections, or a
    target elsewhere. ``ports`` are those of one address, None where nobody says; ``chance`` is from
    0 to ``SETS`` - 1."""
    each = PER_ADDRESS if ports is None else max(1, min(PER_ADDRESS, ports // SHARE))
    count = -(-connections // each)
    if count < 2 or not addresses or not all(map(_is_loopback, addresses)):
        return ()
    first = _FIRST + chance * _EACH
    return tuple(str(ipaddress.IPv4Address(first + number)) for number in range(count))


def _is_loopback(address: str) -> bool:
    """Of ``127.0.0.1:80``; ``[::1]:80`` has no neighbours."""
    try:
        return ipaddress.IPv4Address(address.rpartition(":")[0]).is_loopback
    except ValueError:
        return False
