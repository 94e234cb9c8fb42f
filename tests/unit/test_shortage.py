"""Connections that came too slowly: whether a slow search for free ports explains it."""

from __future__ import annotations

import pytest
from samples import good_record
from trueload.record.shortage import crowded_ports

OLD, NEW = "Linux 6.1.0-18-amd64", "Linux 6.8.12"


@pytest.mark.parametrize(
    ("what", "connections", "addresses", "kernel", "ports", "expected"),
    [
        ("more than half of each", 100_000, 4, OLD, 28_232, "25,000 connections from one address"),
        ("of the one that the kernel chooses", 20_000, 0, OLD, 28_232, "20,000 connections"),
        ("half of each", 100_000, 8, OLD, 28_232, ""),
        ("a kernel that tries all ports alike", 100_000, 4, NEW, 28_232, ""),
        ("a kernel that nobody knows", 100_000, 4, "?", 28_232, ""),
        ("a range that nobody knows", 100_000, 4, OLD, None, ""),
    ],
)
def test_ports_are_named_where_they_are_slow_to_find(
    what: str, connections: int, addresses: int, kernel: str, ports: int | None, expected: str
) -> None:
    limits = {} if ports is None else {"local_ports": ports}
    changes = {"kernel": kernel, "limits": limits}
    environment = good_record().environment.model_copy(update=changes)
    found = crowded_ports(connections, addresses, environment)
    assert (expected in found) if expected else not found, what
    assert not found or "--local-address" in found, what
