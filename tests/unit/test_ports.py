"""The local addresses from which connections to this machine come."""

from __future__ import annotations

import ipaddress

import pytest
from trueload.machine.ports import PER_ADDRESS, SETS, sources

HERE = ("127.0.0.1:80",)
CASES = [
    ("few connections", HERE, PER_ADDRESS, 0),
    ("one more than an address takes", HERE, PER_ADDRESS + 1, 2),
    ("10,000", HERE, 10_000, 5),
    ("a hundred thousand", HERE, 100_000, 50),
    ("two addresses of this machine", ("127.0.0.1:80", "127.0.0.2:80"), 10_000, 5),
    ("another machine", ("192.0.2.1:80",), 10_000, 0),
    ("this machine and another", ("127.0.0.1:80", "192.0.2.1:80"), 10_000, 0),
    ("IPv6, where there is only one", ("[::1]:80",), 10_000, 0),
    ("a socket file", ("unix:/tmp/socket",), 10_000, 0),
    ("a name that was not found", (), 10_000, 0),
]


@pytest.mark.parametrize(("what", "to", "connections", "count"), CASES, ids=lambda v: str(v)[:30])
def test_many_connections_to_this_machine_come_from_several_addresses(
    what: str, to: tuple[str, ...], connections: int, count: int
) -> None:
    found = sources(to, connections, 28_232, 7)
    assert len(set(found)) == len(found) == count, what
    assert all(ipaddress.ip_address(address).is_loopback for address in found), what


def test_another_chance_gives_other_addresses() -> None:
    everything = [sources(HERE, 10_000, None, chance) for chance in (0, 1, 2, SETS - 1)]
    addresses = [address for found in everything for address in found]
    assert len(set(addresses)) == len(addresses)
    assert all(ipaddress.ip_address(address).is_loopback for address in addresses)


def test_where_an_address_has_few_ports_more_addresses_are_taken() -> None:
    for ports, count in ((28_232, 5), (8_000, 10), (80, 1000), (4, 10_000), (None, 5)):
        assert len(sources(HERE, 10_000, ports, 0)) == count, ports
