"""A subject that under load no longer reads what it is asked, on real sockets."""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from harness import ROOT
from trueload.protocol.plan import Duration
from trueload.runner.probes import Prober, probing
from trueload.subjects.contracts import load_contract
from trueload.trial.spec import Load
from waiting import wait_until

HELLO = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, World!"
MISSING = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
LOAD = Load(stop=Duration(ns=150_000_000), warmup=None)


@contextlib.contextmanager
def served(reads: Callable[[int], bool]) -> Iterator[tuple[str, int]]:
    """Run a server that reads the nth request of a connection only if `reads(n)`.

    Yields its address. To the other requests it sends the greeting, whatever they ask for.
    """

    def serve(connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as request, contextlib.suppress(OSError):
            for number in itertools.count():
                line = request.readline()
                while request.readline() not in (b"\r\n", b""):
                    pass
                if not line:
                    return
                found = not reads(number) or line.startswith(b"GET / ")
                connection.sendall(HELLO if found else MISSING)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield listener.getsockname()
        finally:
            listener.shutdown(socket.SHUT_RDWR)


def probed(address: tuple[str, int], enough: Callable[[Prober], bool]) -> Prober:
    contract = load_contract(ROOT / "contracts", "http-plaintext")
    with probing(contract, "platform", address, LOAD, seed=7) as prober:  # type: ignore[arg-type]
        wait_until(lambda: enough(prober), "enough answers")
    return prober


@pytest.mark.parametrize("reads", [lambda _: False, lambda number: number < 3])
def test_a_subject_that_stops_reading_is_found(reads: Callable[[int], bool]) -> None:
    with served(reads) as address:
        prober = probed(address, lambda prober: prober.wrong >= 3)
    assert prober.fault is not None
    assert "an unknown path (/no/such/path): status 200" in prober.fault


def test_an_honest_subject_answers_everything_rightly() -> None:
    with served(lambda _: True) as address:
        prober = probed(address, lambda prober: prober.asked >= 10)
    assert (prober.wrong, prober.fault) == (0, None)


def test_nothing_is_asked_where_each_request_has_its_own_connection() -> None:
    contract = load_contract(ROOT / "contracts", "http-plaintext")
    load = Load(close=True)
    with probing(contract, "platform", ("127.0.0.1", 1), load, seed=7) as prober:  # type: ignore[arg-type]
        pass
    assert prober.found() is None
