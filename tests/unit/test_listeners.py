"""Which sockets listen where, and who holds them."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest
from trueload.machine import listeners
from trueload.machine.listeners import (
    hold_all,
    listening_inodes,
    read_listeners,
    socket_owners,
)
from trueload.machine.sock_diag import Address, dump
from trueload.trial import server_discovery
from trueload.trial.server_discovery import Followed, found_pids

ADDRESSES = [
    (socket.AF_INET, "127.0.0.1"),
    (socket.AF_INET, "0.0.0.0"),
    (socket.AF_INET6, "::1"),
    (socket.AF_INET6, "::"),
]


def forbidden() -> Iterator[tuple[Address, int, int]]:
    """What a kernel does that has no inet_diag, or a sandbox that forbids netlink."""
    raise PermissionError


@pytest.mark.parametrize("by_netlink", [True, False])
@pytest.mark.parametrize(("family", "host"), ADDRESSES)
def test_a_listening_socket_is_told_by_netlink_and_by_the_tables(
    family: socket.AddressFamily, host: str, by_netlink: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not by_netlink:
        monkeypatch.setattr(listeners, "tcp_listeners", forbidden)
    with socket.create_server((host, 0), family=family) as server:
        here = (host, server.getsockname()[1], os.fstat(server.fileno()).st_ino)
        assert here in read_listeners()
        assert listening_inodes(host, here[1]) == {here[2]}
    assert here not in read_listeners()


def test_what_the_kernel_refuses_is_an_error() -> None:
    with pytest.raises(OSError, match="Invalid argument"):
        list(dump(b"\0"))


def test_processes_hold_sockets_together_or_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("::1", 0), family=10):
        inode = os.fstat(one.fileno()).st_ino
        here = [os.getppid(), os.getpid()]
        assert hold_all(here, {inode})
        assert not hold_all(here, {inode, 1})
        assert not hold_all([], {inode})
        assert socket_owners({inode}, here) == {os.getpid()}


def test_a_server_that_is_known_is_looked_for_only_where_a_new_socket_listens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def look(inodes: set[int]) -> set[int]:
        looks.append(inodes)
        return socket_owners(inodes)

    looks: list[set[int]] = []
    monkeypatch.setattr(server_discovery, "socket_owners", look)
    with socket.create_server(("127.0.0.1", 0), reuse_port=True) as server:
        port = server.getsockname()[1]
        follow = Followed(lambda known: found_pids(f"127.0.0.1:{port}", known=known))
        assert [follow(), follow(), follow()] == [{os.getpid()}] * 3
        assert len(looks) == 1
        monkeypatch.setattr(server_discovery, "hold_all", lambda pids, inodes: len(inodes) == 1)
        with socket.create_server(("127.0.0.1", port), reuse_port=True):
            assert follow() == {os.getpid()}
        assert len(looks) == 2, "somebody else may hold the second"
