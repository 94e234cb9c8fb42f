"""Contracts: the judgement of an answer as a table, and answers over real sockets."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from trueload.errors import UserError
from trueload.runner import verify as verifying
from trueload.runner.verify import ask, verify
from trueload.subjects.contracts import (
    Contract,
    Exchange,
    Reply,
    asked_of,
    judge,
    load_contract,
    load_http_contract,
)

ROOT = Path(__file__).resolve().parents[2]
GREETING = Exchange(
    what="the greeting", path="/", status=200, type="text/plain", body="Hello, World!"
)
TEXT = (("Content-Type", "text/plain; charset=utf-8"),)


def reply(
    status: int = 200,
    headers: tuple[tuple[str, str], ...] = TEXT,
    body: bytes = b"Hello, World!",
    wait_ms: float = 1.0,
) -> Reply:
    return Reply(status, headers, body, 100, wait_ms)


def exchange(**fields: object) -> Exchange:
    return Exchange.model_validate({"what": "it", "path": "/", "status": 200, **fields})


JUDGED = [
    (GREETING, reply(), None),
    (GREETING, reply(status=503), "status 503 instead of 200"),
    (GREETING, reply(headers=()), "Content-Type absent instead of text/plain"),
    (GREETING, reply(headers=(("content-type", "TEXT/PLAIN"),)), None),
    (GREETING, reply(headers=(("Content-Type", "text/html"),)), "text/html instead of"),
    (GREETING, reply(body=b"hello"), "body 'hello' instead of 'Hello, World!'"),
    (GREETING, reply(body=b"\x1b[31m" + b"x" * 99), "'\\x1b[31mxxx"),
    (exchange(body_bytes=84), reply(body=b"x" * 84), None),
    (exchange(body_bytes=84), reply(body=b"x" * 85), "a body of 85 bytes instead of 84"),
    (exchange(json=True), reply(body=b'{"a": 1}'), None),
    (exchange(json=True), reply(body=b"{"), "is not JSON"),
    (exchange(json_value='{"a":1}'), reply(body=b'{ "a": 1 }\n'), None),
    (exchange(json_value='{"a":1}'), reply(body=b'{"a":2}'), 'does not mean {"a":1}'),
    (exchange(json_value='{"a":1}'), reply(body=b"{"), 'does not mean {"a":1}'),
    (exchange(json=True), reply(body=b"[" * 100_000), "is not JSON"),
    (exchange(earliest_ms=50), reply(wait_ms=50.0), None),
    (exchange(earliest_ms=50), reply(wait_ms=49.0), "answered after 49.0 ms, before 50 ms"),
]


@pytest.mark.parametrize(("asked", "got", "word"), JUDGED)
def test_an_answer_is_right_or_its_fault_is_named(
    asked: Exchange, got: Reply, word: str | None
) -> None:
    fault = judge(asked, got)
    if word is None:
        assert fault is None
    else:
        assert fault is not None
        assert word in fault
        assert fault.isprintable()


def test_micro_programs_need_no_router_and_pipelining_is_asked_for_loads_that_pipeline() -> None:
    contract = load_http_contract(ROOT / "contracts", "http-plaintext")

    def asked(category: str, pipelined: bool) -> set[str]:
        return {each.form + each.path for each in asked_of(contract, category, pipelined)}

    assert "plain/no/such/path" in asked("platform", False)
    assert "plain/no/such/path" in asked("fullstack", False)
    assert "plain/no/such/path" not in asked("micro", False)
    assert "pipelined/" in asked("micro", True)
    assert "pipelined/" not in asked("micro", False)


def test_every_contract_of_the_checkout_can_be_read() -> None:
    names = [path.stem for path in (ROOT / "contracts").glob("*.toml")]
    assert set(names) >= {"http-plaintext", "http-perf", "http-wait", "tcp-echo", "ws-shootout"}
    for name in names:
        assert load_contract(ROOT / "contracts", name).about
    with pytest.raises(UserError, match="no contract is called 'http-plain'"):
        load_contract(ROOT / "contracts", "http-plain")


@contextmanager
def peer(answer: Callable[[socket.socket], None]) -> Iterator[tuple[str, int]]:
    """A server that treats each connection as ``answer`` says."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    try:
                        answer(connection)
                    except OSError:
                        continue

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()
        listener.shutdown(socket.SHUT_RDWR)


def respond(body: bytes, *, status: bytes = b"200 OK") -> bytes:
    head = b"HTTP/1.1 " + status + b"\r\nContent-Type: text/plain\r\n"
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


HELLO = respond(b"Hello, World!")


def read_requests(connection: socket.socket) -> Iterator[bytes]:
    pending = b""
    while data := connection.recv(65536):
        pending += data
        while b"\r\n\r\n" in pending:
            head, _, pending = pending.partition(b"\r\n\r\n")
            yield head.split()[1]


def good(connection: socket.socket) -> None:
    for path in read_requests(connection):
        connection.sendall(HELLO if path == b"/" else respond(b"no", status=b"404 Not Found"))


def backwards(connection: socket.socket) -> None:
    """Answer three pipelined requests in the wrong order."""
    paths: list[bytes] = []
    for path in read_requests(connection):
        paths.append(path)
        if len(paths) == 3:
            for number in (1, 0, 2):
                ok = paths[number] == b"/"
                connection.sendall(HELLO if ok else respond(b"no", status=b"404 Not Found"))


def close_after_one(connection: socket.socket) -> None:
    next(read_requests(connection))
    connection.sendall(HELLO)
    # Close in order: closing with an unread request would reset the connection.
    connection.shutdown(socket.SHUT_WR)
    while connection.recv(65536):
        pass


def whole_requests_only(connection: socket.socket) -> None:
    data = connection.recv(65536)
    connection.sendall(HELLO if data.endswith(b"\r\n\r\n") else respond(b"", status=b"400 Bad"))


def test_a_good_server_keeps_the_contract() -> None:
    contract = load_http_contract(ROOT / "contracts", "http-plaintext")
    with peer(good) as address:
        assert verify(contract, "platform", address, pipelined=True) is None


def form(name: str) -> Exchange:
    return GREETING.model_copy(update={"form": name})


def send(data: bytes) -> Callable[[socket.socket], None]:
    def answer(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(data)

    return answer


FAULTY_PEERS = [
    ("closes after one answer", close_after_one, "twice", "without an answer"),
    ("takes a part for the whole", whole_requests_only, "split", "status 400"),
    ("answers backwards", backwards, "pipelined", "answer 1 of 3: status 404"),
    ("never answers", lambda connection: connection.recv(1), "plain", ""),
    ("is not HTTP", send(b"SSH-2.0-none\r\n"), "plain", "no HTTP answer: b'SSH-2.0-none"),
    ("sends control codes", send(b"\x1b]0;x\x07\r\n"), "plain", "no HTTP answer"),
    (
        "has no status",
        send(b"HTTP/1.1 OK\r\n\r\n"),
        "plain",
        "illegal status line",
    ),
    (
        "has two lengths",
        send(HELLO.replace(b"\r\n", b"\r\nContent-Length: 2\r\n", 1)),
        "plain",
        "conflic",
    ),
    ("breaks off", send(HELLO[:-5]), "plain", "received 8 bytes, expected 13"),
    ("never ends a header", send(b"HTTP/1.1 200 OK\r\nA: " + b"x" * 70_000), "plain", "no HTTP"),
    ("promises too much", send(respond(b"x" * (2 << 20))), "plain", "longer than"),
]


@pytest.mark.parametrize(
    ("what", "answer", "how", "word"), FAULTY_PEERS, ids=[each[0] for each in FAULTY_PEERS]
)
def test_a_faulty_server_is_told_what_is_wrong(
    what: str, answer: Callable[[socket.socket], None], how: str, word: str
) -> None:
    middle = exchange(status=404, path="/no/such/path")
    with peer(answer) as address:
        fault = ask(form(how), [form(how), middle], address).fault
    assert fault is not None, what
    assert word in fault, fault
    assert fault.isprintable()


GOOD_ANSWERS = {
    "HTTP/1.0, until the end": b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nHello, World!",
    "in chunks": HELLO.partition(b"Content-Length")[0]
    + b"Transfer-Encoding: chunked\r\n\r\n7;a=b\r\nHello, \r\n6\r\nWorld!\r\n0\r\nA: b\r\n\r\n",
    "after an interim answer": b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + HELLO,
    "without a reason": HELLO.replace(b"200 OK", b"200"),
}


@pytest.mark.parametrize("wire", GOOD_ANSWERS.values(), ids=GOOD_ANSWERS)
def test_whatever_form_an_answer_has_it_is_read_whole(wire: bytes) -> None:
    def answer(connection: socket.socket) -> None:
        connection.recv(65536)
        for each in wire:
            connection.sendall(bytes([each]))

    with peer(answer) as address:
        got = ask(GREETING, (), address)
    assert got.fault is None
    assert got.reply is not None
    assert got.reply.body == b"Hello, World!"
    assert got.reply.wire_bytes == len(wire)


def test_a_drip_costs_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifying, "EXCHANGE_TIMEOUT_S", 0.3)
    stop = threading.Event()

    def drip(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nA: ")
        while not stop.wait(0.05):
            connection.sendall(b"x")

    with peer(drip) as address:
        fault = ask(GREETING, (), address).fault
        stop.set()
    assert fault is not None
    assert "no whole answer within 0.3 s" in fault


def test_nobody_there_is_a_fault_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
    fault = ask(GREETING, (), address).fault
    assert fault is not None
    assert fault.startswith("no connection")


def test_the_size_of_a_reply_is_its_size_on_the_wire() -> None:
    with peer(good) as address:
        got = ask(GREETING, (), address).reply
    assert got is not None
    assert got.wire_bytes == len(HELLO)


def test_a_contract_must_have_an_exchange() -> None:
    with pytest.raises(ValueError, match="exchanges"):
        Contract.model_validate({"about": "", "role": "server", "load": {"path": "/"}})
