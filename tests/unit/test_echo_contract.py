"""The contract of TCP echo: the judgement as a table, and servers that keep or break it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from trueload.errors import UserError
from trueload.runner import verify_echo as verifying
from trueload.runner.verify import sample, verify
from trueload.runner.verify_echo import ask_echo
from trueload.subjects.contracts import (
    Echo,
    EchoContract,
    judge_echo,
    load_contract,
    load_http_contract,
)

CONTRACTS = Path(__file__).resolve().parents[2] / "contracts"

JUDGED = [
    (b"abc", b"abc", None),
    (b"abc", b"", "only 0 of 3 bytes came back"),
    (b"abc", b"ab", "only 2 of 3 bytes"),
    (b"abc", b"abd", "byte 2 of 3 came back as 0x64, not 0x63"),
    (b"abc", b"acb", "byte 1 of 3"),
    (b"abc", b"abcab", "2 bytes came back that nobody had sent"),
    (b"abc", b"x", "byte 0 of 3"),
]


@pytest.mark.parametrize(("sent", "back", "fault"), JUDGED)
def test_what_came_back_is_right_or_its_fault_is_named(
    sent: bytes, back: bytes, fault: str | None
) -> None:
    found = judge_echo(sent, back)
    assert found is None if fault is None else found is not None and fault in found


def echo_contract() -> EchoContract:
    contract = load_contract(CONTRACTS, "tcp-echo")
    assert isinstance(contract, EchoContract)
    return contract


@contextmanager
def peer(behave: Callable[[socket.socket], None]) -> Iterator[tuple[str, int]]:
    """A server that calls ``behave`` for each connection, in a thread of its own."""

    def one(connection: socket.socket) -> None:
        with connection:
            try:
                behave(connection)
            except OSError:
                return

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=one, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()
        listener.shutdown(socket.SHUT_RDWR)


def good(connection: socket.socket) -> None:
    while data := connection.recv(65536):
        connection.sendall(data)


def loses_what_is_not_taken(connection: socket.socket) -> None:
    while data := connection.recv(65536):
        connection.setblocking(False)
        with suppress(BlockingIOError):
            connection.send(data)
        connection.setblocking(True)


def never_ends(connection: socket.socket) -> None:
    good(connection)
    verifying_is_over.wait(10)


def send_more(connection: socket.socket) -> None:
    good(connection)
    connection.sendall(b"bye")


def alters_the_last(connection: socket.socket) -> None:
    data = connection.recv(65536)
    connection.sendall(data[:-1] + bytes([data[-1] ^ 1]))
    connection.recv(1)


def answers_once(connection: socket.socket) -> None:
    connection.sendall(connection.recv(65536))
    connection.shutdown(socket.SHUT_WR)
    connection.recv(1)


def forgets_the_first_part(connection: socket.socket) -> None:
    connection.recv(1)  # not more: the parts may have come together
    good(connection)


verifying_is_over = threading.Event()
SMALL = Echo(what="a message", size_bytes=64)
FAULTY = [
    (
        "it closes at once",
        lambda connection: connection.recv(65536),
        "plain",
        "only 0 of 64 bytes came back",
    ),
    (
        "it never answers",
        lambda c: verifying_is_over.wait(10),
        "plain",
        "0 of 64 bytes came back within",
    ),
    ("it alters a byte", alters_the_last, "plain", "byte 63 of 64 came back as"),
    ("it loses a part", forgets_the_first_part, "split", "byte 0 of 64"),
    ("it answers once", answers_once, "twice", "only 0 of 64"),
    ("it says more", send_more, "half-close", "3 bytes came back that nobody had sent"),
    ("it never ends", never_ends, "half-close", "did not end its side within"),
]


@pytest.mark.parametrize(("what", "behave", "form", "word"), FAULTY, ids=[f[0] for f in FAULTY])
def test_a_faulty_server_is_told_what_is_wrong(
    what: str,
    behave: Callable[[socket.socket], None],
    form: str,
    word: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Shorten the timeout only for cases that wait in vain.
    if "within" in word or form == "split":
        monkeypatch.setattr(verifying, "ECHO_TIMEOUT_S", 1.0 if "within" in word else 3.0)
    with peer(behave) as address:
        fault = ask_echo(SMALL.model_copy(update={"form": form}), address)
    assert fault is not None, what
    assert word in fault


def test_a_server_that_loses_what_its_client_is_slow_to_take_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(verifying, "ECHO_TIMEOUT_S", 2.0)
    late = next(echo for echo in echo_contract().echoes if echo.form == "late")
    with peer(loses_what_is_not_taken) as address:
        assert ask_echo(late, address) is not None


def test_a_good_server_keeps_the_contract_and_its_first_echo_is_the_sample() -> None:
    contract = echo_contract()
    with peer(good) as address:
        assert verify(contract, "micro", address, pipelined=True) is None
        assert sample(contract, address).wire_bytes == contract.echoes[0].size_bytes


def test_nobody_there_is_a_fault_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
    fault = ask_echo(SMALL, address)
    assert fault is not None
    assert "refused" in fault


def test_a_load_of_http_refuses_the_contract_of_echoes() -> None:
    with pytest.raises(UserError, match="'tcp-echo' is not one of HTTP servers"):
        load_http_contract(CONTRACTS, "tcp-echo")
