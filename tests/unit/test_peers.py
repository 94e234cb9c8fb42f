"""The backends of a process are found by its connections: real processes, real sockets."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from trueload.machine.peers import backends

ME = os.getpid()

LISTENER = """
import os, socket, sys
family, where, port, behind, fork = sys.argv[1:6]
family = getattr(socket, family)
address = where if family == socket.AF_UNIX else (where, int(port))
kept = []
with socket.socket(family) as listening:
    listening.bind(address)
    listening.listen()
    if behind:
        kept.append(socket.create_connection(("127.0.0.1", int(behind))))
    if fork:
        child = os.fork()
        if child == 0:  # takes what its parent has listened for
            kept.append(listening.accept()[0])
            sys.stdin.read()
            os._exit(0)
    port = "" if family == socket.AF_UNIX else listening.getsockname()[1]
    print(port, child if fork else "", sep=",", flush=True)
    if not fork:
        kept.append(listening.accept()[0])
    sys.stdin.read()
"""


@contextmanager
def served(
    family: str, where: str, behind: object = "", fork: str = "", port: int = 0
) -> Iterator[tuple[int, str, str]]:
    """Run a listening process; yields its pid, its port, and its accepting child's pid, if any."""
    command = [sys.executable, "-c", LISTENER, family, where, str(port), str(behind), fork]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            listening, child = process.stdout.readline().strip().split(",")
            yield process.pid, listening, child
        finally:
            process.kill()  # it may still wait for a connection


@pytest.mark.parametrize(
    ("family", "where", "by"),
    [
        ("AF_INET", "127.0.0.1", "127.0.0.1"),
        ("AF_INET", "0.0.0.0", "127.0.0.1"),
        ("AF_INET6", "::1", "::1"),
        ("AF_INET6", "::", "127.0.0.1"),  # IPv4 on an IPv6 socket
    ],
)
def test_who_listens_at_the_far_end_is_a_backend(family: str, where: str, by: str) -> None:
    with served(family, where) as (pid, port, _):
        assert backends({ME}) == set(), "nothing is connected yet"
        with socket.create_connection((by, int(port))):
            assert backends({ME}) == {pid}
            assert backends({ME}, without={pid}) == set()
            assert backends({pid}) == set(), "who has connected to a server does not serve it"
        assert backends({ME}) == set(), "nothing is connected any more"


def test_who_takes_ipv4_alone_is_no_backend_of_a_connection_by_ipv6() -> None:
    with (
        socket.create_server(("0.0.0.0", 0)) as other,
        served("AF_INET6", "::1", port=other.getsockname()[1]) as (pid, port, _),
    ):
        asking = "import socket, sys; s = socket.create_connection(('::1', int(sys.argv[1])));"
        command = [sys.executable, "-c", f"{asking} print(flush=True); sys.stdin.read()", port]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
            assert client.stdout is not None
            client.stdout.readline()
            assert backends({client.pid}) == {pid}


def test_a_backend_on_a_unix_socket_is_found(tmp_path: Path) -> None:
    with (
        served("AF_UNIX", str(tmp_path / "s")) as (pid, _, _),
        socket.socket(socket.AF_UNIX) as mine,
    ):
        mine.connect(str(tmp_path / "s"))
        assert backends({ME}) == {pid}
        assert backends({pid}) == set()


def test_a_backend_that_has_not_accepted_yet_is_found(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    asking = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
    command = [sys.executable, "-c", f"{asking} print(flush=True); sys.stdin.read()", path]
    with (
        served("AF_UNIX", path) as (pid, _, _),
        socket.socket(socket.AF_UNIX) as only,
    ):
        only.connect(path)  # the server accepts only this one
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
            assert client.stdout is not None
            client.stdout.readline()
            assert backends({client.pid}) == {pid}


def test_a_pair_of_sockets_makes_nobody_a_backend() -> None:
    ours, theirs = socket.socketpair()
    with (
        ours,
        subprocess.Popen(
            [sys.executable, "-c", "import sys; sys.stdin.read()"],
            stdin=subprocess.PIPE,
            pass_fds=[theirs.fileno()],
        ),
    ):
        theirs.close()
        assert backends({ME}) == set()


def test_a_backend_s_backends_and_children_are_backends() -> None:
    with ExitStack() as stack:
        last, port, child = stack.enter_context(served("AF_INET", "127.0.0.1", fork="fork"))
        middle, port, _ = stack.enter_context(served("AF_INET", "127.0.0.1", behind=port))
        stack.enter_context(socket.create_connection(("127.0.0.1", int(port))))
        assert backends({ME}) == {middle, last, int(child)}
        assert backends({middle}) == {last, int(child)}
        assert backends({ME}, without={middle}) == set(), "what is left out leads to nobody"
