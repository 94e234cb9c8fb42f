"""The contract of WebSocket echo and broadcast: its dialects, and servers that keep or break it.

The dialects are tables; the servers run over real sockets.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast, get_args

import pytest
from harness import server_contract
from trueload.errors import UserError
from trueload.protocol.shootout import (
    CHANNEL,
    TOPIC,
    Dialect,
    Message,
    decode,
    encode,
    join,
    make_payload,
)
from trueload.runner import verify_shootout as verifying
from trueload.runner.verify import sample, verify
from trueload.runner.verify_shootout import ask_message
from trueload.subjects.contracts import (
    ShootoutContract,
    as_spoken,
    judge_message,
    load_http_contract,
)
from ws_room import Room, cable, peer, text

CONTRACTS = Path(__file__).resolve().parents[2] / "contracts"
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
PATHS: dict[Dialect, str] = {"actioncable": "/cable", "phoenix": "/socket/websocket"}


def shootout_contract(dialect: Dialect = "json") -> ShootoutContract:
    contract = as_spoken(server_contract("ws-shootout"), PATHS.get(dialect), dialect)
    assert isinstance(contract, ShootoutContract)
    return contract


# --- dialects -------------------------------------------------------------------------------------


HELLO = {"sendTime": "7", "padding": "é"}
DECODED: list[tuple[Dialect, str | bytes, Message | None]] = [
    ("json", text(type="echo", payload=HELLO), Message("echo", HELLO)),
    ("json", text(type="broadcast", payload=None), Message("broadcast", None)),
    (
        "json",
        text(type="broadcastResult", payload=HELLO, listenerCount=3),
        Message("broadcastResult", HELLO, 3),
    ),
    ("binary", b"e\0\0\0\2ab", Message("echo", b"ab")),
    ("binary", b"r\0\0\0\0", Message("broadcastResult", b"")),
    ("actioncable", cable(action="echo", payload=HELLO), Message("echo", HELLO)),
    (
        "actioncable",
        cable(action="broadcastResult", payload=HELLO, listenerCount=2, more=1),
        Message("broadcastResult", HELLO, 2),
    ),
    ("actioncable", text(type="ping", message=1), None),
    (
        "phoenix",
        text(topic=TOPIC, event="broadcast", payload={"type": "broadcast", "body": HELLO}),
        Message("broadcast", HELLO),
    ),
    (
        "phoenix",
        text(
            topic=TOPIC,
            event="phx_reply",
            payload={"status": "ok", "response": {"type": "echo", "body": HELLO}},
        ),
        Message("echo", HELLO),
    ),
]

UNDECODED: list[tuple[Dialect, str | bytes, str]] = [
    ("json", "{", "'{' is not JSON"),
    ("json", "[" * 100_000, "is not JSON"),
    ("json", "[1]", "is not a JSON object"),
    ("json", b"{}", "a binary message instead of a text"),
    ("json", text(type="hello", payload=1), "is not a message of the contract"),
    ("json", text(type="echo"), "is not a message of the contract"),
    ("json", text(type="echo", payload=1, more=2), "an echo with the keys 'more, payload, type'"),
    ("json", text(type="broadcastResult", payload=1), "a broadcastResult with the keys"),
    ("json", text(type="broadcastResult", payload=1, listenerCount="3"), "'\"3\"', not a number"),
    ("json", '{"type":"\x1b[31m"}', "\\x1b[31m"),
    ("binary", "e", "a text message instead of a binary one"),
    ("binary", b"e\0\0\0", "only 4 bytes"),
    ("binary", b"x\0\0\0\0", "of type b'x'"),
    ("binary", b"e\0\0\0\3ab", "a payload of 2 bytes that says it has 3"),
    ("actioncable", text(identifier="other", message={}), "is not a message of the channel"),
    ("actioncable", text(type="disconnect"), "is not a message of the channel"),
    ("actioncable", cable(action="echo"), "is not a message of the contract"),
    ("phoenix", text(topic="room:hall", payload={}), "is not a message of room:lobby"),
    ("phoenix", text(topic=TOPIC, payload={"response": 1}), "has no response"),
]


@pytest.mark.parametrize(("dialect", "wire", "meant"), DECODED)
def test_what_a_client_gets_is_understood(
    dialect: Dialect, wire: str | bytes, meant: Message | None
) -> None:
    assert decode(dialect, wire) == meant


@pytest.mark.parametrize(("dialect", "wire", "word"), UNDECODED)
def test_what_is_no_message_of_the_contract_is_named(
    dialect: Dialect, wire: str | bytes, word: str
) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        decode(dialect, wire)
    assert word in str(caught.value)
    assert str(caught.value).isprintable()


def test_a_payload_is_what_the_published_benchmark_sends() -> None:
    assert encode("json", "echo", make_payload("json", 7, "é")) == (
        '{"type":"echo","payload":{"sendTime":"7","padding":"é"}}'
    )
    assert encode("binary", "broadcast", make_payload("binary", 7, "ab")) == (
        b"b" + struct.pack(">IQ", 10, 7) + b"ab"
    )
    assert json.loads(cast(str, encode("phoenix", "echo", 1))) == {
        "topic": TOPIC,
        "event": "echo",
        "payload": {"body": 1},
        "ref": "2",
    }


def test_joining_takes_the_steps_of_the_dialect() -> None:
    subscribe = text(command="subscribe", identifier=CHANNEL)
    assert json.loads(cast(str, join("actioncable", text(type="welcome")))) == json.loads(subscribe)
    assert join("actioncable", text(type="ping", message=1)) is False
    assert join("actioncable", text(type="confirm_subscription", identifier=CHANNEL)) is True
    with pytest.raises(ValueError, match="instead of the confirmation"):
        join("actioncable", text(type="reject_subscription"))
    assert join("phoenix", text(event="phx_reply", payload={"status": "ok"})) is True
    with pytest.raises(ValueError, match="refused"):
        join("phoenix", text(event="phx_reply", payload={"status": "error"}))


JUDGED: list[tuple[list[Message], Message, str | None]] = [
    ([Message("echo", 1)], Message("echo", 1), None),
    ([Message("echo", 1), Message("echo", 2)], Message("echo", 2), None),
    ([Message("broadcastResult", 1)], Message("broadcastResult", 1, 3), None),
    ([Message("broadcastResult", 1)], Message("broadcastResult", 1, 2), "2 instead of 3"),
    ([Message("echo", 1)], Message("echo", 2), "an echo with a payload that was not due"),
    ([], Message("broadcast", 1), "a broadcast that was not due"),
    ([Message("echo", 1)], Message("broadcast", 1), "a broadcast that was not due"),
]


@pytest.mark.parametrize(("due", "got", "fault"), JUDGED)
def test_a_message_is_due_or_its_fault_is_named(
    due: list[Message], got: Message, fault: str | None
) -> None:
    before = len(due)
    fault_text = judge_message(due, got, range(3, 4))
    if fault is None:
        assert fault_text is None
        assert len(due) == before - 1
    else:
        assert fault_text is not None
        assert fault in fault_text


# --- servers --------------------------------------------------------------------------------------


@contextmanager
def raw_peer(behave: Callable[[socket.socket], None]) -> Iterator[tuple[str, int]]:
    """A server that does not speak WebSocket."""

    def serve_raw() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                behave(connection)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve_raw, daemon=True).start()
        yield listener.getsockname()
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_good_server_keeps_the_contract_in_every_dialect(dialect: Dialect) -> None:
    contract = shootout_contract(dialect)
    with peer(Room(dialect)) as address:
        assert sample(contract, address).fault is None
        assert verify(contract, "platform", address, pipelined=True) is None


def test_a_server_may_send_a_slow_client_away() -> None:
    contract = shootout_contract()
    late = next(message for message in contract.messages if message.form == "late")
    with peer(Room("json", "sends the slow away")) as address:
        assert ask_message(contract, late, address, contract.clients) is None


FAULTY: list[tuple[str, Dialect, str]] = [
    ("closes at once", "json", "with the code 1011"),
    ("rejects", "actioncable", "instead of the confirmation of the subscription"),
    ("never echoes", "json", "client 1 of 1 did not get an echo within"),
    ("alters the payload", "json", "an echo of 60,000 bytes: client 1 of 3 got an echo with a"),
    ("echoes as binary", "json", "client 1 of 1 got a binary message instead of a text"),
    ("forgets one", "json", "client 3 of 3 did not get a broadcast within"),
    ("says all twice", "json", "got a broadcast that was not due"),
    ("counts the others", "json", "listenerCount 2 instead of at least 3"),
    ("gives no receipt", "json", "client 1 of 3 did not get a broadcastResult"),
    ("gives no receipt", "binary", "client 1 of 3 did not get a broadcastResult"),
    ("drops a client", "json", "client 3 of 3 was disconnected"),
    ("falls over nonsense", "json", "no message: client 1 of 4 was disconnected"),
    ("never forgets", "json", "listenerCount has not come down to 3 within"),
]


@pytest.mark.parametrize(
    ("flaw", "dialect", "word"), FAULTY, ids=[f"{f[0]}-{f[1]}" for f in FAULTY]
)
def test_a_faulty_server_is_told_what_is_wrong(
    flaw: str, dialect: Dialect, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifying, "MESSAGE_TIMEOUT_S", 3.0)
    with peer(Room(dialect, flaw)) as address:
        fault = verify(shootout_contract(dialect), "platform", address, pipelined=False)
    assert fault is not None
    assert word in fault
    assert fault.isprintable()


def send(data: bytes) -> Callable[[socket.socket], None]:
    def behave(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(data)

    return behave


NOT_EVEN_UPGRADED = [
    (send(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"), "the upgrade is refused"),
    (send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), "the upgrade is refused"),
    (send(b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n\r\n"), "the upgrade is refused"),
    (send(b"SSH-2.0-\x1b[31m\r\n"), "upgrade"),
    (send(b""), ""),
    (lambda connection: connection.recv(65536) and connection.recv(1), "has not been answered"),
]


@pytest.mark.parametrize(("behave", "word"), NOT_EVEN_UPGRADED)
def test_a_server_that_does_not_upgrade_is_told_so(
    behave: Callable[[socket.socket], None], word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifying, "MESSAGE_TIMEOUT_S", 0.5)
    with raw_peer(behave) as address:
        fault = sample(shootout_contract(), address).fault
    assert fault is not None
    assert word in fault
    assert fault.isprintable()


def test_nobody_there_is_a_fault_too() -> None:
    contract = shootout_contract()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
    fault = ask_message(contract, contract.messages[0], address, 1)
    assert fault is not None
    assert fault.startswith("no connection")


def test_a_load_of_http_refuses_the_contract_of_broadcasts() -> None:
    with pytest.raises(UserError, match="'ws-shootout' is not one of HTTP servers"):
        load_http_contract(CONTRACTS, "ws-shootout")


def test_a_contract_of_broadcasts_begins_with_an_echo() -> None:
    fields = shootout_contract().model_dump()
    with pytest.raises(ValueError, match="the first message is a plain echo"):
        ShootoutContract.model_validate({**fields, "messages": fields["messages"][1:]})
