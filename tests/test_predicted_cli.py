"""A server that answers without having read its requests, on real sockets.

How: its receive buffer is so small that a few requests fill it, and it never reads. From then on
its kernel acknowledges nothing, as if the requests were still on a long path. It continues to send
an answer every few milliseconds.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from harness import Trueload
from waiting import be_late

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
BODY = "x" * 1_000
BUFFER_BYTES = 2_304


@contextlib.contextmanager
def served(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """Run a server that calls ``serve`` per connection; yields its port."""

    def guarded(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            serve(connection)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=guarded, args=(connection,), daemon=True).start()

    with socket.socket() as listener:
        # Accepted connections inherit it.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)


def predict(connection: socket.socket) -> None:
    """Answer every 7 ms from the first request on, and read none."""
    while connection.recv(1, socket.MSG_PEEK):
        connection.sendall(OK)
        be_late(0.007)


def read_late(connection: socket.socket) -> None:
    """Answer each request once it is read, some ms after it came."""
    unread = b""
    while data := connection.recv(65_536):
        *heads, unread = (unread + data).split(b"\r\n\r\nx")
        be_late(0.002)
        connection.sendall(OK * len(heads))


def refuse_early(connection: socket.socket) -> None:
    """Answer each request once its head is read, and read the rest afterwards."""
    unread = b""
    while data := connection.recv(500):
        *heads, unread = (unread + data).split(b"\r\n\r\n")
        connection.sendall(OK * len(heads))


def measured(trueload: Trueload, serve: Callable[[socket.socket], None], *flags: str) -> Any:
    with served(serve) as port:
        url = f"http://127.0.0.1:{port}/"
        load = ("-c", "2", "--requests", "60", "--body", BODY, *flags)
        return trueload.run("http", url, *load, "--json", "-", "--no-save").json()


@pytest.mark.parametrize("driver", ["epoll", "io_uring"])
def test_answers_that_were_sent_before_their_requests_arrived_fail(
    trueload: Trueload, driver: str
) -> None:
    record = measured(trueload, predict, "--driver", driver)
    check = next(check for check in record["checks"] if check["name"] == "predicted")
    assert check["status"] == "fail", record["checks"]
    assert record["early"]["unacknowledged"] >= 3


@pytest.mark.parametrize("serve", [read_late, refuse_early])
@pytest.mark.parametrize("flags", [(), ("--pipeline", "3")])
def test_an_answer_to_a_request_that_was_read_is_never_too_early(
    trueload: Trueload, serve: Callable[[socket.socket], None], flags: tuple[str, ...]
) -> None:
    record = measured(trueload, serve, *flags)
    assert record["counts"]["ok"] > 0
    assert record["early"]["asked"] > 0
    assert (record["early"]["unacknowledged"], record["early"]["too_soon"]) == (0, 0)
