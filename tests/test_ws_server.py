"""The WebSocket reference server over real sockets.

It is tested with an independent client, and with clients that send forbidden frames. Autobahn's
cases run in ``make conformance``. What the server does between its connections is tested in virtual
time, in ``crates/engine/tests/websocket_server.rs``.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from harness import Trueload
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

pytestmark = pytest.mark.engine

DRIVERS = ["epoll", "io_uring"]
WAIT_S = 30.0


@dataclass
class Serving:
    """A running server; `served` ends it and returns its counts."""

    trueload: Trueload
    process: Any
    url: str
    port: int
    tls: ssl.SSLContext | None
    counts: Path
    stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def open(self, path: str) -> ClientConnection:
        client = connect(self.url + path, ssl=self.tls, compression=None, max_size=None)
        self.stack.enter_context(client)
        return client

    def raw(self, *, receive_buffer: int | None = None) -> socket.socket:
        """Open a plain TCP connection."""
        plain = self.stack.enter_context(socket.socket())
        if receive_buffer is not None:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        plain.settimeout(WAIT_S)
        plain.connect(("127.0.0.1", self.port))
        return plain

    def served(self) -> dict[str, Any]:
        self.process.terminate()
        _, err = self.process.communicate(timeout=WAIT_S)
        assert self.process.returncode == 0, err
        counts: dict[str, Any] = json.loads(self.counts.read_text(encoding="utf-8"))
        return counts


Serve = Callable[..., Serving]


@pytest.fixture
def serve(trueload: Trueload) -> Iterator[Serve]:
    """Return a function that starts ``trueload serve ws`` with flags."""
    with contextlib.ExitStack() as stack:

        def start(*flags: str) -> Serving:
            trueload.folder.mkdir(parents=True, exist_ok=True)
            counts = trueload.folder / "served.json"
            words = ("serve", "ws", "--listen", "127.0.0.1:0", "--json", str(counts), *flags)
            process = trueload.start(*words, env={"TMPDIR": str(trueload.folder)})
            output = read_lines(process.stderr, 2 if "--tls" in flags else 1)
            found = re.search(r"listening on (wss?)://127\.0\.0\.1:(\d+)/ws\n", output)
            assert found, output
            tls = None
            if cacert := re.search(r"--cacert (\S+)\n", output):
                tls = ssl.create_default_context(cafile=cacert[1])
                # A client that reads and writes in two threads is not safe with TLS 1.3: OpenSSL
                # handles tickets while it reads, and interferes with a write at that moment.
                tls.maximum_version = ssl.TLSVersion.TLSv1_2
            url = f"{found[1]}://127.0.0.1:{found[2]}"
            serving = Serving(trueload, process, url, int(found[2]), tls, counts)
            stack.enter_context(serving.stack)
            return serving

        yield start


def read_lines(stream: Any, count: int) -> str:
    readable, _, _ = select.select([stream], [], [], WAIT_S)
    assert readable, "the server does not say where it listens"
    return "".join(stream.readline() for _ in range(count))


# --- echo


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("tls", [(), ("--tls",)], ids=["plain", "tls"])
def test_every_message_comes_back_as_it_came(
    serve: Serve, driver: str, tls: tuple[str, ...]
) -> None:
    server = serve("--driver", driver, *tls)
    client = server.open("/echo")
    messages: list[str | bytes] = ["", "hello", "\N{SNOWMAN}" * 1000, b"", os.urandom(125)]
    messages += [os.urandom(size) for size in (126, 65_535, 65_536, 1 << 20)]
    for message in messages:
        client.send(message)
        assert client.recv(timeout=WAIT_S) == message
    client.send(["in ", "", "parts"])
    assert client.recv(timeout=WAIT_S) == "in parts"
    assert client.ping().wait(WAIT_S)
    client.close()
    assert client.close_code == 1000
    served = server.served()
    assert (served["requests"], served["responses"]) == (len(messages) + 1, len(messages) + 1)
    assert (served["malformed"], served["tls_failed"]) == (0, 0)
    assert served["handshakes_full"] == len(tls)


def test_over_tls_1_3_and_in_tiny_pieces_it_is_the_same(serve: Serve) -> None:
    server = serve("--tls")
    assert server.tls is not None
    server.tls.maximum_version = ssl.TLSVersion.TLSv1_3
    client = server.tls.wrap_socket(server.raw(), server_hostname="127.0.0.1")
    assert client.version() == "TLSv1.3"
    upgrade(client, "/echo")
    for byte in frame(0x81, b"hello") + frame(0x89, b"p") + frame(0x88, b"\x03\xe8"):
        client.sendall(bytes([byte]))
    assert to_the_end(client) == b"\x81\x05hello\x8a\x01p\x88\x02\x03\xe8"


def test_many_messages_in_flight_come_back_in_order(serve: Serve) -> None:
    client = serve().open("/echo")
    for number in range(2000):
        client.send(f"{number}:" + "x" * (number % 300))
    received = [str(client.recv(timeout=WAIT_S)) for _ in range(2000)]
    assert [int(text.split(":")[0]) for text in received] == list(range(2000))


# --- broadcast


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("tls", [(), ("--tls",)], ids=["plain", "tls"])
@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_broadcast_reaches_every_client_once_and_its_sender_gets_a_receipt(
    serve: Serve, driver: str, tls: tuple[str, ...], threads: str
) -> None:
    server = serve("--driver", driver, "--threads", threads, *tls)
    clients = [server.open("/ws") for _ in range(8)]
    for number, client in enumerate(clients):  # Its echo shows that it has joined.
        assert exchange(client, "echo", number) == {"type": "echo", "payload": number}
    for number, client in enumerate(clients):
        client.send(json.dumps({"type": "broadcast", "payload": number}))
        receipt = {"type": "broadcastResult", "payload": number, "listenerCount": 8}
        for listener in clients:
            received = json.loads(listener.recv(timeout=WAIT_S))
            assert received == {"type": "broadcast", "payload": number}
        assert json.loads(client.recv(timeout=WAIT_S)) == receipt
    # Nobody has received anything else: the next message is the echo.
    for client in clients:
        assert exchange(client, "echo", "last") == {"type": "echo", "payload": "last"}
    served = server.served()
    assert (served["requests"], served["deliveries"], served["slow"]) == (8 + 8 + 8, 64, 0)


def exchange(client: ClientConnection, kind: str, payload: Any) -> Any:
    client.send(json.dumps({"type": kind, "payload": payload}))
    return json.loads(client.recv(timeout=WAIT_S))


def test_a_client_that_is_gone_is_no_listener_any_more(serve: Serve) -> None:
    server = serve("--threads", "2")
    stays, leaves, dies = (server.open("/ws") for _ in range(3))
    for client in (stays, leaves, dies):
        exchange(client, "echo", 0)
    leaves.close()
    dies.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    dies.socket.close()
    received: Any = {}
    # Threads learn of it at different times; each receipt gives the present number of clients.
    for number in range(1000):
        received = exchange(stays, "broadcast", number)
        assert received == {"type": "broadcast", "payload": number}
        received = json.loads(stays.recv(timeout=WAIT_S))
        if received["listenerCount"] == 1:
            break
    assert received["listenerCount"] == 1


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_listener_that_takes_nothing_is_closed_and_the_others_lose_nothing(
    serve: Serve, driver: str
) -> None:
    server = serve("--driver", driver)
    sender = server.open("/ws")
    stuck = upgraded(server, "/ws", receive_buffer=4096)
    padding = "x" * 500_000
    listeners = []
    for number in range(40):  # 20 MB; kernel and server buffer part of it
        exchange(sender, "broadcast", [number, padding])
        listeners.append(json.loads(sender.recv(timeout=WAIT_S))["listenerCount"])
    assert (listeners[0], listeners[-1]) == (2, 1)
    kept = 0
    with contextlib.suppress(ConnectionResetError):
        while taken := len(stuck.recv(1 << 16)):
            kept += taken
    assert kept < 20_000_000
    assert server.served()["slow"] == 1


# --- what must not be said


def upgraded(server: Serving, path: str, *, receive_buffer: int | None = None) -> socket.socket:
    """Open a plain connection and do the opening handshake."""
    plain = server.raw(receive_buffer=receive_buffer)
    upgrade(plain, path)
    return plain


def upgrade(plain: socket.socket, path: str) -> None:
    """Do the opening handshake, as in RFC 6455 §1.3."""
    fields = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    plain.sendall(f"GET {path} HTTP/1.1\r\nHost: h\r\n{fields}{key}\r\n".encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += plain.recv(1)
    assert head.startswith(b"HTTP/1.1 101 ")
    assert b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" in head


def frame(first: int, payload: bytes) -> bytes:
    """A short frame with a mask of zeros."""
    return bytes([first, 0x80 | len(payload)]) + bytes(4) + payload


def to_the_end(plain: socket.socket) -> bytes:
    """Read the rest; the server has to end the connection in order."""
    received = b""
    while more := plain.recv(4096):
        received += more
    return received


LONG = bytes([0x82, 0xFF]) + struct.pack(">Q", 1 << 63) + bytes(4)
MUST_NOT = [
    ("reserved bit", "/echo", frame(0xC1, b"a"), 1002),
    ("unknown opcode", "/echo", frame(0x83, b""), 1002),
    ("not masked", "/echo", b"\x81\x01a", 1002),
    ("half a ping", "/echo", frame(0x09, b""), 1002),
    ("long ping", "/echo", bytes([0x89, 0xFE, 0, 126]) + bytes(130), 1002),
    ("continuation of nothing", "/echo", frame(0x80, b"a"), 1002),
    ("message within a message", "/echo", frame(0x01, b"a") + frame(0x81, b"b"), 1002),
    ("length in too many bytes", "/echo", bytes([0x82, 0xFE, 0, 1]) + bytes(5), 1002),
    ("close code 1005", "/echo", frame(0x88, b"\x03\xed"), 1002),
    ("bad UTF-8", "/echo", frame(0x81, b"\xff"), 1007),
    ("bad UTF-8 in a part", "/echo", frame(0x01, b"\xed\xa0\x80"), 1007),
    ("bad reason", "/echo", frame(0x88, b"\x03\xe8\xff"), 1007),
    ("2^63 bytes", "/echo", LONG, 1009),
    ("another dialect", "/ws", frame(0x81, b"hello"), 1008),
    ("JSON of nothing", "/ws", frame(0x81, b"[" * 100), 1008),
]


@pytest.mark.parametrize("driver", DRIVERS)
def test_what_must_not_be_said_is_answered_by_a_close_with_its_code(
    serve: Serve, driver: str
) -> None:
    server = serve("--driver", driver)
    other = server.open("/ws")
    for what, path, sent, code in MUST_NOT:
        for split in (len(sent), 1):
            plain = upgraded(server, path)
            for at in range(0, len(sent), split):
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    plain.sendall(sent[at : at + split])
            assert to_the_end(plain) == b"\x88\x02" + struct.pack(">H", code), what
            plain.close()
    assert exchange(other, "echo", 1) == {"type": "echo", "payload": 1}
    assert server.served()["malformed"] == 2 * len(MUST_NOT)


GOOD_FIELDS = (
    "Host: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
)
GOOD_KEY = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
NO_HANDSHAKE = [
    ("plain HTTP", "GET /ws HTTP/1.1\r\nHost: h\r\n\r\n", 426),
    ("another path", f"GET /x HTTP/1.1\r\n{GOOD_FIELDS}{GOOD_KEY}\r\n", 404),
    ("no key", f"GET /ws HTTP/1.1\r\n{GOOD_FIELDS}\r\n", 400),
    ("a bad key", f"GET /ws HTTP/1.1\r\n{GOOD_FIELDS}Sec-WebSocket-Key: x\r\n\r\n", 400),
    ("a body", f"GET /ws HTTP/1.1\r\n{GOOD_FIELDS}{GOOD_KEY}Content-Length: 1\r\n\r\nx", 400),
    ("POST", f"POST /ws HTTP/1.1\r\n{GOOD_FIELDS}{GOOD_KEY}\r\n", 400),
    ("no HTTP", "hello\r\n", 400),
    ("a bare LF", "GET /ws HTTP/1.1\n", 400),
    ("endless", "GET /ws HTTP/1.1\r\nX: " + "a" * 300_000, 400),
]


@pytest.mark.parametrize("driver", DRIVERS)
def test_what_is_no_handshake_is_answered_in_http(serve: Serve, driver: str) -> None:
    server = serve("--driver", driver)
    for what, sent, status in NO_HANDSHAKE:
        plain = server.raw()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            plain.sendall(sent.encode())
        with contextlib.suppress(ConnectionResetError):
            received = plain.recv(4096)
            assert received.startswith(f"HTTP/1.1 {status} ".encode()), what
            assert b"Connection: close\r\n" in received
        plain.close()
    served = server.served()
    assert (served["malformed"], served["requests"]) == (len(NO_HANDSHAKE), 0)


def test_a_client_that_keeps_sending_after_its_mistake_is_cut_off(serve: Serve) -> None:
    server = serve()
    plain = upgraded(server, "/echo")
    plain.sendall(frame(0xC1, b"a"))
    assert plain.recv(4096) == b"\x88\x02\x03\xea"
    # For a second further input is read and ignored; then the server closes the connection.
    deadline_s = time.monotonic() + WAIT_S
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        while time.monotonic() < deadline_s:
            plain.sendall(frame(0x81, b"a" * 100))
        raise AssertionError("the server still listens")
    assert server.served()["malformed"] == 1


def test_plain_text_on_a_tls_port_is_counted(serve: Serve) -> None:
    server = serve("--tls")
    plain = server.raw()
    plain.sendall(b"GET /ws HTTP/1.1\r\n\r\n")
    to_the_end(plain)
    assert server.served()["tls_failed"] == 1


@pytest.mark.parametrize("tls", [(), ("--tls",)], ids=["plain", "tls"])
def test_the_servers_close_is_clean_for_an_independent_client(
    serve: Serve, tls: tuple[str, ...]
) -> None:
    client = serve(*tls).open("/ws")
    client.send("not in the dialect")
    with pytest.raises(ConnectionClosed):
        client.recv(timeout=WAIT_S)
    assert client.close_code == 1008
