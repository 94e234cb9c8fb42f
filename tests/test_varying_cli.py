"""A server that answers differently under load, as the command reports it."""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from harness import Trueload, statuses
from trap_runs import Talk

HELLO = b"Hello, World!"


def answer(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


def chunked(body: bytes) -> bytes:
    head, cut = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", len(body) // 2
    parts = [part for part in (body[:cut], body[cut:], b"") if part or not body[cut:]]
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts if part)
    return head + chunks + b"0\r\n\r\n"


@contextlib.contextmanager
def served(answers: Callable[[int], bytes]) -> Iterator[int]:
    """Run a server that answers the nth request of all with ``answers(n)``; yields its port."""
    numbers = itertools.count()

    def serve(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            for _ in Talk(connection, 0, threading.Event()).requests():
                connection.sendall(answers(next(numbers)))

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)


def gives_up(number: int) -> bytes:
    return answer(HELLO if number < 1_000 else b"")


def gives_up_in_chunks(number: int) -> bytes:
    return chunked(HELLO if number < 1_000 else b"")


def is_replaced(number: int) -> bytes:
    return answer(HELLO if number < 1_000 else b"             ")


def is_honest(_: int) -> bytes:
    return answer(HELLO)


def counts(number: int) -> bytes:
    return answer(b"%d" % number)


def takes_turns(number: int) -> bytes:
    return answer(HELLO if number % 2 else b"x" * 300)


@pytest.mark.parametrize(
    ("answers", "flags", "status"),
    [
        (is_honest, ("--requests", "3000"), "pass"),
        (gives_up, ("--requests", "3000"), "warn"),
        (gives_up, ("--requests", "3000", "--pipeline", "4"), "warn"),
        (gives_up, ("--requests", "3000", "--threads", "2"), "warn"),
        (gives_up, ("-d", "0.3s", "--warmup", "2s"), "warn"),
        (gives_up_in_chunks, ("--requests", "3000"), "warn"),
        (is_replaced, ("--requests", "3000"), "warn"),
        (counts, ("--requests", "3000"), "pass"),
        (takes_turns, ("--requests", "3000"), "pass"),
        (is_honest, ("--requests", "3000", "--expect-same"), "pass"),
        (takes_turns, ("--requests", "3000", "--expect-same"), "fail"),
        (gives_up, ("--requests", "900", "--expect-same"), "pass"),
        (gives_up, ("--requests", "900", "--expect-body", HELLO.decode()), "n/a"),
    ],
)
def test_answers_that_change_are_told(
    trueload: Trueload, answers: Callable[[int], bytes], flags: tuple[str, ...], status: str
) -> None:
    with served(answers) as port:
        url = f"http://127.0.0.1:{port}/"
        finished = trueload.run("http", url, "-c", "8", *flags, "--json", "-", "--no-save")
    record = finished.json()
    assert statuses(record)["varying"] == status, record["checks"]
    if status == "fail":
        assert finished.code == 4


def test_the_kinds_are_told_with_their_counts(trueload: Trueload) -> None:
    with served(gives_up) as port:
        url = f"http://127.0.0.1:{port}/"
        finished = trueload.run("http", url, "-c", "8", "--requests", "3000", "--no-save")
    assert "2 kinds of answer: 13 bytes 1,000, 0 bytes 2,000" in finished.out, finished
