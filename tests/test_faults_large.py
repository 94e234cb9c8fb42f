"""Requests larger than what the kernel takes at once, against peers that answer early.

A server may answer before it has the whole request, and an echo takes no more until its answer is
read: the generator must read both. An answer that comes before any byte of its request was sent
does not count.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from faults.counters import FrameCounter
from faults.laws import RSS_BYTES_MOST, assert_exit_agrees, of_record
from harness import Trueload

pytestmark = pytest.mark.engine

MUCH = 24 * 1024 * 1024
"""More than loopback's socket buffers take at once."""
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
TOO_LARGE = b"HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
DRIVERS = pytest.mark.parametrize("driver", ["epoll", "io_uring"])


class Listening:
    """A server that calls one function per connection, each in its own thread."""

    def __init__(self, serve: Callable[[socket.socket, threading.Event], None]) -> None:
        self._serve = serve
        self._over = threading.Event()
        self._listening = socket.socket()
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        self._listening.bind(("127.0.0.1", 0))
        self._listening.listen(64)
        self.accepted = 0
        host, port = self._listening.getsockname()
        self.at = f"{host}:{port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._over.set()
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listening.accept()
                self.accepted += 1
                threading.Thread(target=self._one, args=(sock,), daemon=True).start()

    def _one(self, sock: socket.socket) -> None:
        with sock, contextlib.suppress(OSError):
            self._serve(sock, self._over)


@contextlib.contextmanager
def listening(serve: Callable[[socket.socket, threading.Event], None]) -> Iterator[Listening]:
    server = Listening(serve)
    try:
        yield server
    finally:
        server.close()


def receive(sock: socket.socket) -> bytes:
    """Receive the next bytes; raises an error at the end, so that no caller loops for ever."""
    if data := sock.recv(65536):
        return data
    raise ConnectionError("the other side has ended")


def send_back(sock: socket.socket, _: threading.Event) -> None:
    """Echo, taking nothing more until the client has taken the answer."""
    while data := sock.recv(65536):
        sock.sendall(data)


def refuse_early(sock: socket.socket, over: threading.Event) -> None:
    """Answer the first bytes of a request, and read nothing more."""
    sock.recv(4096)
    sock.sendall(TOO_LARGE)
    over.wait()


def refuse_and_reset(sock: socket.socket, _: threading.Event) -> None:
    """Answer in the middle of a body, then reset the connection."""
    taken = 0
    while taken < MUCH // 2:
        taken += len(receive(sock))
    sock.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def answer_unread(sock: socket.socket, over: threading.Event) -> None:
    """Answer over and over, and read nothing."""
    sock.recv(1)
    while not over.wait(0.005):
        sock.sendall(OK)


def post(trueload: Trueload, server: Listening, tmp_path: Path, *words: str) -> Any:
    """Run with bodies that the kernel does not take at once; check the laws, return the record."""
    body = tmp_path / "body"
    body.write_bytes(b"x" * MUCH)
    words = (*words, "-c", "2", "--timeout", "10s", "--json", "-", "--no-save")
    url = f"http://{server.at}/"
    done = trueload.run("http", url, "-X", "POST", "--body-file", body, *words)
    record = done.json()
    seen = of_record(record, done.code)
    assert seen.issued == seen.ok + sum(seen.failed.values()) + seen.cancelled, seen
    assert seen.timed == seen.ok_timed, seen
    assert_exit_agrees(seen)
    return record


@DRIVERS
def test_a_pipeline_of_large_messages_comes_back_from_an_echo_that_has_to_be_heard(
    trueload: Trueload, driver: str
) -> None:
    with listening(send_back) as echo:
        load = ("--size", "1MiB", "--pipeline", "16", "-c", "2", "--requests", "64")
        words = (*load, "--timeout", "20s", "--driver", driver, "--json", "-", "--no-save")
        counts = trueload.run("tcp", echo.at, *words).json()["counts"]
    assert (counts["ok"], counts["failed"]) == (64, {})


@DRIVERS
def test_an_answer_that_comes_before_the_request_is_taken_is_heard(
    trueload: Trueload, tmp_path: Path, driver: str
) -> None:
    with listening(refuse_early) as server:
        record = post(trueload, server, tmp_path, "--requests", "4", "--driver", driver)
    assert record["counts"]["failed"] == {"status": 4}
    assert record["counts"]["statuses"] == {"413": 4}


@DRIVERS
def test_a_reset_behind_an_early_answer_is_a_reset_for_the_others(
    trueload: Trueload, tmp_path: Path, driver: str
) -> None:
    with listening(refuse_and_reset) as server:
        words = ("--requests", "8", "--pipeline", "4", "--driver", driver)
        record = post(trueload, server, tmp_path, *words)
    assert record["counts"]["failed"] == {"status": 2, "reset": 6}


@DRIVERS
@pytest.mark.parametrize("filled", [(), ("-H", "X-Number: {counter}")], ids=["alike", "differing"])
def test_an_answer_to_a_request_that_has_not_begun_to_leave_is_unsolicited(
    trueload: Trueload, tmp_path: Path, driver: str, filled: tuple[str, ...]
) -> None:
    with listening(answer_unread) as server:
        words = ("--requests", "12", "--driver", driver, *filled)
        record = post(trueload, server, tmp_path, *words)
        # The first request of a connection may be answered early, because part of it was sent.
        assert record["counts"]["ok"] <= server.accepted
    assert record["counts"]["failed"].keys() == {"unsolicited"}
    assert record["verdict"] == "invalid"


def ping_unread(sock: socket.socket, over: threading.Event) -> None:
    """Upgrade the connection, then ping over and over and read no pong."""
    head = FrameCounter()
    while head.accept is None:
        head.feed(receive(sock))
    sock.sendall(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + head.accept + b"\r\n\r\n"
    )
    while not over.is_set():
        sock.sendall((b"\x89\x7d" + b"p" * 125) * 512)


@DRIVERS
def test_a_server_that_pings_without_end_and_takes_no_pong_is_closed_for_its_limit(
    trueload: Trueload, driver: str
) -> None:
    with listening(ping_unread) as server:
        words = ("-c", "2", "--requests", "4", "--timeout", "20s", "--driver", driver)
        done = trueload.run("ws", f"ws://{server.at}/", *words, "--json", "-", "--no-save")
    record = done.json()
    assert record["counts"]["failed"] == {"limit": 4}, done
    assert record["generator"]["peak_rss_bytes"] < RSS_BYTES_MOST
