"""An HTTP/2 server that does what a test says, frame by frame; it decodes no header block."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
HEADER_TABLE_SIZE, INITIAL_WINDOW_SIZE, WINDOW_FIRST = 1, 4, 65_535
END_STREAM, ACK, END_HEADERS = 1, 1, 4
OK = b"\x88"  # :status 200, from the static table


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Encode a frame."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def settings(**values: int) -> bytes:
    """Encode SETTINGS; ``streams`` limits concurrent streams, ``window`` is that of each stream."""
    numbers = {"streams": 3, "window": 4}
    payload = b"".join(struct.pack(">HI", numbers[name], values[name]) for name in values)
    return frame(SETTINGS, 0, 0, payload)


def answer(stream: int) -> bytes:
    """Encode a complete answer."""
    return frame(HEADERS, END_HEADERS, stream, OK) + frame(DATA, END_STREAM, stream, b"hello")


@dataclass
class Seen:
    """What arrived on all connections."""

    connections: int = 0
    requests: int = 0
    over_http1: int = 0
    pipelined: bool = False
    resets: int = 0
    body_bytes: int = 0
    header_table: int | None = None
    # What the client permits us to send, per stream and on the last connection.
    stream_window: int = WINDOW_FIRST
    connection_window: int = WINDOW_FIRST


@dataclass
class Http2Peer:
    """An HTTP/2 server that serves until the test ends.

    ``begins`` is what it sends first; with nothing there, it never acknowledges anything either.
    ``answers`` returns its answer to a complete request, given the request's number on the
    connection (from 1) and its stream; None closes the connection.

    ``secure`` holds TLS contexts, which take turns. Where ALPN does not choose h2, it answers
    requests in HTTP/1.1.
    """

    answers: Callable[[int, int], bytes | None]
    begins: bytes = settings()
    secure: tuple[ssl.SSLContext, ...] = ()
    seen: Seen = field(default_factory=Seen)

    def __post_init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        scheme = "https" if self.secure else "http"
        self.url = f"{scheme}://127.0.0.1:{self._socket.getsockname()[1]}/"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            turn = self.seen.connections
            self.seen.connections += 1
            threading.Thread(target=self._serve, args=(connection, turn), daemon=True).start()

    def _serve(self, plain: socket.socket, turn: int) -> None:
        with plain, contextlib.suppress(OSError):
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = plain
            if self.secure:
                context = self.secure[turn % len(self.secure)]
                connection = context.wrap_socket(plain, server_side=True)
                if connection.selected_alpn_protocol() != "h2":
                    self._serve_http1(connection)
                    return
            self._serve_http2(connection)

    def _serve_http2(self, connection: socket.socket) -> None:
        connection.sendall(self.begins)
        requests = 0
        for kind, flags, stream, payload in frames(connection):
            if kind == SETTINGS and not flags & ACK and self.begins:
                connection.sendall(frame(SETTINGS, ACK, 0))
            if kind == PING and not flags & ACK and self.begins:
                connection.sendall(frame(PING, ACK, 0, payload))
            self._note(kind, flags, stream, payload)
            if kind not in (DATA, HEADERS) or not flags & END_STREAM:
                continue
            requests += 1
            self.seen.requests += 1
            answer = self.answers(requests, stream)
            if answer is None:
                return
            connection.sendall(answer)

    def _serve_http1(self, connection: socket.socket) -> None:
        while received := connection.recv(65_536):
            assert received.endswith(b"\r\n\r\n"), received
            self.seen.pipelined |= received.count(b"\r\n\r\n") > 1
            self.seen.over_http1 += 1
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    def _note(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        """Count a frame that needs no answer."""
        self.seen.resets += kind == RST_STREAM
        if kind == DATA:
            self.seen.body_bytes += len(payload)
        elif kind == WINDOW_UPDATE and stream == 0:
            self.seen.connection_window += struct.unpack(">I", payload)[0]
        elif kind == SETTINGS and not flags & ACK:
            announced = dict(struct.iter_unpack(">HI", payload))
            self.seen.header_table = announced.get(HEADER_TABLE_SIZE)
            self.seen.stream_window = announced.get(INITIAL_WINDOW_SIZE, WINDOW_FIRST)
            self.seen.connection_window = WINDOW_FIRST


def frames(connection: socket.socket) -> Iterator[tuple[int, int, int, bytes]]:
    """Yield the frames that the client sends after its preface, until it ends."""
    read = connection.makefile("rb")
    assert read.read(len(PREFACE)) == PREFACE
    while len(head := read.read(9)) == 9:
        kind, flags, stream = struct.unpack(">BBI", head[3:])
        yield kind, flags, stream, read.read(int.from_bytes(head[:3], "big"))
