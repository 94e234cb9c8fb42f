"""The reference server over HTTP/2 from outside, frame by frame: each flag has its effect."""

from __future__ import annotations

import json
import signal
import socket
import ssl
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from harness import Trueload, start_server

pytestmark = pytest.mark.engine

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW = 0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
NO_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR, REFUSED_STREAM = 0, 2, 3, 7

Frame = tuple[int, int, int, bytes]


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return (
        struct.pack(">I", len(payload))[1:]
        + bytes([kind, flags])
        + struct.pack(">I", stream)
        + payload
    )


def request(stream: int, path: str = "/", *, method: bytes = b"\x82", end: bool = True) -> bytes:
    """A header block from the static table of RFC 7541, with the path as a literal."""
    block = method + b"\x86\x04" + bytes([len(path)]) + path.encode()
    return frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream, block)


class Client:
    """One connection, and the frames that arrive on it."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.sock.settimeout(20)
        self.sock.sendall(PREFACE + frame(SETTINGS, 0, 0))
        self.rest = b""

    def send(self, *frames: bytes) -> None:
        self.sock.sendall(b"".join(frames))

    def _take(self, count: int) -> bytes | None:
        while len(self.rest) < count:
            more = self.sock.recv(65536)
            if not more:
                return None
            self.rest += more
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def frames(self) -> Iterator[Frame]:
        """Yield frames as they arrive, until the connection ends."""
        while (head := self._take(9)) is not None:
            payload = self._take(int.from_bytes(head[:3]))
            assert payload is not None, "the connection ends within a frame"
            yield head[3], head[4], int.from_bytes(head[5:]) & 0x7FFF_FFFF, payload

    def until_pong(self) -> list[Frame]:
        """Return everything that arrives before the answer to a PING."""
        self.send(frame(PING, 0, 0, b"12345678"))
        seen: list[Frame] = []
        for each in self.frames():
            if each == (PING, ACK, 0, b"12345678"):
                return seen
            seen.append(each)
        raise AssertionError(f"the connection ends: {seen}")

    def until_answered(self, *streams: int) -> dict[int, bytes]:
        """Return the bodies on these streams, in the order in which they ended."""
        bodies: dict[int, bytes] = {}
        ended: dict[int, bytes] = {}
        for kind, flags, stream, payload in self.frames():
            if kind == DATA:
                bodies[stream] = bodies.get(stream, b"") + payload
                if flags & END_STREAM:
                    ended[stream] = bodies[stream]
            if set(ended) == set(streams):
                return ended
        raise AssertionError(f"the connection ends after {ended}")


def on_streams(frames: list[Frame]) -> list[tuple[int, int, bytes]]:
    return [(kind, stream, payload) for kind, _, stream, payload in frames if stream > 0]


@contextmanager
def served(
    trueload: Trueload, json_file: Path, *flags: str
) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Run a server with a record; once it has ended, the dict holds its counts."""
    server = start_server(trueload, "--http", "2", "--record", "--json", str(json_file), *flags)
    counts: dict[str, Any] = {}
    yield server.host, server.port, counts
    server.process.send_signal(signal.SIGTERM)
    server.process.communicate(timeout=30)
    counts |= json.loads(json_file.read_text())


def test_one_port_speaks_both_versions_and_counts_alike(trueload: Trueload, tmp_path: Path) -> None:
    with served(trueload, tmp_path / "told") as (host, port, counts):
        with socket.create_connection((host, port)) as sock:
            client = Client(sock)
            client.send(request(1, "/wait/50"), request(3), request(5, "/perf"))
            bodies = client.until_answered(1, 3, 5)
            assert list(bodies) == [3, 5, 1], "what waits holds up no other"
            assert (bodies[1], bodies[3]) == (b"ok", b"Hello, World!")
            assert json.loads(bodies[5])["path"] == "/perf"
        with socket.create_connection((host, port)) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            received = b"".join(iter(lambda: sock.recv(4096), b""))
            assert received.startswith(b"HTTP/1.1 200 OK\r\n")
    assert (counts["requests"], counts["responses"], counts["accepted"]) == (4, 4, 2)
    assert (counts["record"]["answered"], counts["malformed"]) == (4, 0)


@pytest.mark.parametrize(("offered", "spoken"), [("h2", "h2"), ("http/1.1", "http/1.1")])
def test_over_tls_alpn_chooses(
    trueload: Trueload, tmp_path: Path, offered: str, spoken: str
) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols([offered])
    with (
        served(trueload, tmp_path / "told", "--tls") as (host, port, counts),
        socket.create_connection((host, port)) as plain,
        context.wrap_socket(plain) as sock,
    ):
        assert sock.selected_alpn_protocol() == spoken
        if spoken == "h2":
            client = Client(sock)
            client.send(request(1))
            assert client.until_answered(1) == {1: b"Hello, World!"}
        else:
            sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert sock.recv(4096).startswith(b"HTTP/1.1 200 OK\r\n")
    assert counts["requests"] == 1


def code(number: int) -> bytes:
    return struct.pack(">I", number)


def test_streams_above_the_limit_are_refused(trueload: Trueload, tmp_path: Path) -> None:
    with (
        served(trueload, tmp_path / "told", "--max-streams", "1") as (host, port, counts),
        socket.create_connection((host, port)) as sock,
    ):
        client = Client(sock)
        client.send(request(1, "/wait/100"), request(3))
        frames = client.until_pong()
        assert frames[0] == (SETTINGS, 0, 0, struct.pack(">HIHI", 3, 1, 4, 1 << 20))
        assert on_streams(frames) == [(RESET, 3, code(REFUSED_STREAM))]
        assert client.until_answered(1) == {1: b"ok"}
    assert counts["requests"] == 1


@pytest.mark.parametrize(
    ("flag", "name", "expected"),
    [("--refuse-share", "refuse", REFUSED_STREAM), ("--reset-share", "reset", INTERNAL_ERROR)],
)
def test_a_share_of_the_streams_is_reset_and_the_connection_goes_on(
    trueload: Trueload, tmp_path: Path, flag: str, name: str, expected: int
) -> None:
    with (
        served(trueload, tmp_path / "told", flag, "100%") as (host, port, counts),
        socket.create_connection((host, port)) as sock,
    ):
        client = Client(sock)
        client.send(request(1), request(3))
        resets = [(RESET, stream, code(expected)) for stream in (1, 3)]
        assert on_streams(client.until_pong()) == resets
    assert (counts["record"]["faults"], counts["responses"]) == ({name: 2}, 0)


def test_goaway_comes_after_so_many_requests_and_the_connection_ends_in_order(
    trueload: Trueload, tmp_path: Path
) -> None:
    with (
        served(trueload, tmp_path / "told", "--goaway-after", "2") as (host, port, counts),
        socket.create_connection((host, port)) as sock,
    ):
        client = Client(sock)
        client.send(request(1, "/wait/50"), *(request(stream) for stream in range(3, 400, 2)))
        frames = list(client.frames())
        goaways = [payload for kind, _, _, payload in frames if kind == GOAWAY]
        assert goaways == [code(3) + code(NO_ERROR)]
        assert {stream for _, stream, _ in on_streams(frames)} == {1, 3}
        assert frames[-1] == (DATA, END_STREAM, 1, b"ok")
    assert (counts["requests"], counts["responses"]) == (2, 2)


def test_a_window_that_stalls_and_settings_that_are_late(
    trueload: Trueload, tmp_path: Path
) -> None:
    flags = ("--stall-window", "--settings-delay", "100ms")
    with (
        served(trueload, tmp_path / "told", *flags) as (host, port, counts),
        socket.create_connection((host, port)) as sock,
    ):
        client = Client(sock)
        body = [frame(DATA, 0, 1, bytes(13_107)) for _ in range(5)]
        client.send(request(1, method=b"\x83", end=False), *body)
        frames = client.until_pong()
        assert frames[0][0] == SETTINGS, "nothing comes before them"
        assert on_streams(frames) == [], "no room beyond 65,535 bytes"
        client.send(frame(DATA, 0, 1, b"x"))
        assert on_streams(client.until_pong()) == [(RESET, 1, code(FLOW_CONTROL_ERROR))]
    assert (counts["requests"], counts["malformed"]) == (0, 1)
