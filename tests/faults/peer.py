"""A server that acts out a script on a real socket, and counts the requests that reach it.

One thread accepts, and one thread per connection follows its script. It counts complete requests,
also those that arrive while it is busy or after the end of its script: it reads until the other
side has closed. Must not know what trueload makes of it.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from random import Random
from types import TracebackType
from typing import Final

from waiting import be_late

from faults.cases import Script, Step
from faults.counters import FrameCounter, make_counter
from faults.tls import SealedSocket

IDLE_S_MAX: Final = 20.0
"""A connection that is left alone for longer is given up, so that no test hangs."""

LATE_MS_MOST: Final = 20.0
"""What comes behind the last answer is looked for for 50 ms. No row waits longer than 20 ms to send
it, so that it is seen unless the peer itself is late by more than this."""

PLAYS_MOST: Final = 5
"""A row whose peer was late says nothing of who heard it, and is played again, so many times."""

LINGER_AWAY: Final = struct.pack("ii", 1, 0)
"""SO_LINGER of 0 s: a close becomes a reset."""


class GoneError(Exception):
    """The other side has closed or reset the connection."""


class _Connection:
    """One accepted socket and its script."""

    def __init__(
        self,
        sock: socket.socket,
        script: Script,
        cut: Random | None,
        context: ssl.SSLContext | None = None,
        protocol: str = "http",
    ) -> None:
        self.requests = make_counter(protocol)
        self._ended = False
        self._raw = sock
        self._sock = sock if context is None else SealedSocket(sock, context)
        self._script = script
        self._cut = cut
        self._wanted = 0
        self._closed = False
        self.late_ms = 0.0
        """By how much it was late with what it did after it had waited."""
        self._since_s = time.monotonic()
        self._waited_ms = 0

    def run(self) -> None:
        """Follow the script to its end, then read until the other side closes."""
        self._sock.settimeout(IDLE_S_MAX)
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(GoneError, OSError):
            if isinstance(self._sock, SealedSocket):
                self._sock.handshake()
            self._follow()
        self._drain()
        self._sock.close()

    def abort(self) -> None:
        """End a connection that is still in use, from another thread."""
        with contextlib.suppress(OSError):
            self._raw.shutdown(socket.SHUT_RDWR)

    def _follow(self) -> None:
        again, script = True, self._script
        while again:
            again = False
            for step in script:
                if step.word in ("hold", "again"):
                    again = step.word == "again"
                    break
                self._take_timed(step)
            # A connection is upgraded only once.
            words = [step.word for step in script]
            script = script[words.index("upgrade") + 1 :] if "upgrade" in words else script

    def _take_timed(self, step: Step) -> None:
        begun_s = time.monotonic()
        self._take(step)
        if step.word == "wait":
            self._waited_ms += step.ms
            return
        ended_s = time.monotonic()
        if self._waited_ms and step.word != "read":
            took_ms = (ended_s - self._since_s) * 1000
            self.late_ms = max(self.late_ms, took_ms - self._waited_ms)
        # The other side may receive the first byte as soon as sending begins.
        self._since_s = ended_s if step.word == "read" else begun_s
        self._waited_ms = 0

    def _take(self, step: Step) -> None:
        match step.word:
            case "read" if step.count:
                self._read(step.count)
            case "read":
                while not self._ended:
                    self._receive()
            case "echo":
                self._echo(step.count)
            case "head":
                self._read_head()
            case "upgrade":
                self._upgrade(step.data)
            case "send":
                self._send(step.data * step.count)
            case "flood":
                while True:
                    self._sock.sendall(step.data * max(1, 65536 // len(step.data)))
            case "drip":
                for byte in step.data:
                    self._sock.sendall(bytes([byte]))
                    be_late(step.ms / 1000)
            case "wait":
                be_late(step.ms / 1000)
            case "fin":
                self._sock.shutdown(socket.SHUT_WR)
            case "rst":
                self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_AWAY)
                self._closed = True
                self._sock.close()
            case "raw":
                self._raw.sendall(step.data)
            case "cut":
                self._raw.shutdown(socket.SHUT_WR)
            case "notify" | "alert" if isinstance(self._sock, SealedSocket):
                self._sock.notify() if step.word == "notify" else self._sock.alert()
            case word:
                raise ValueError(f"a live peer cannot {word}")

    def _read(self, count: int) -> None:
        self._wanted += count
        while self.requests.whole < self._wanted:
            self._receive()

    def _receive(self) -> None:
        data = self._sock.recv(65536)
        if not data:
            # A script that waits for the end of input continues with its next step; any other ends.
            if self._ended or Step("read", count=0) not in self._script:
                raise GoneError
            self._ended = True
        self.requests.feed(data)

    def _echo(self, count: int) -> None:
        messages = self.requests.to_echo
        self.requests.to_echo = messages[count:]
        self._send(b"".join(messages[:count]))

    def _upgrade(self, more: bytes) -> None:
        accept = self._read_head().accept
        assert accept is not None
        self._send(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + accept + b"\r\n" + more + b"\r\n"
        )

    def _read_head(self) -> FrameCounter:
        counter = self.requests
        assert isinstance(counter, FrameCounter), "only a WebSocket has a request to upgrade"
        while counter.accept is None:
            self._receive()
        return counter

    def _send(self, data: bytes) -> None:
        for piece in pieces(data, self._cut):
            self._sock.sendall(piece)

    def _drain(self) -> None:
        with contextlib.suppress(GoneError, OSError):
            while not self._closed:
                self._receive()


def pieces(data: bytes, cut: Random | None) -> Iterator[bytes]:
    """Yield `data` whole, or cut at random into at most 64 pieces."""
    if cut is None or len(data) < 2:
        yield data
        return
    cuts = sorted(cut.sample(range(1, len(data)), min(cut.randint(1, 63), len(data) - 1)))
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        yield data[start:end]


class Peer:
    """A peer that listens while its block runs: `with Peer(scripts) as peer: … peer.url`."""

    def __init__(
        self,
        scripts: tuple[Script, ...],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        seed: int | None = None,
        context: ssl.SSLContext | None = None,
        secure: bool = False,
        protocol: str = "http",
    ) -> None:
        """With `context` the peer speaks TLS; `secure` makes its URL say https."""
        self._scripts = scripts
        self._protocol = protocol
        self._context = context
        self._scheme = "https" if secure or context is not None else "http"
        self._cut = None if seed is None else Random(seed)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listening = socket.socket(family, socket.SOCK_STREAM)
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listening.bind((host, port))
        self.host = host
        self.port: int = self._listening.getsockname()[1]
        self._connections: list[_Connection] = []
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)

    @property
    def url(self) -> str:
        """Its URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self._scheme}://{host}:{self.port}/"

    @property
    def accepted(self) -> int:
        """The number of connections accepted so far."""
        return len(self._connections)

    @property
    def requests(self) -> int:
        """The number of complete requests so far."""
        return sum(connection.requests.whole for connection in self._connections)

    @property
    def was_late(self) -> bool:
        """Whether a step after a wait came so late that the client may have given up."""
        return any(each.late_ms > LATE_MS_MOST for each in self._connections)

    def settle(self) -> None:
        """Wait until every connection has ended, so that the counts are final."""
        for thread in list(self._threads):
            thread.join(IDLE_S_MAX)

    def close(self) -> None:
        """Stop listening, and end open connections."""
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._accepting.join(IDLE_S_MAX)
        self._listening.close()
        for connection in self._connections:
            connection.abort()
        self.settle()

    def __enter__(self) -> Peer:
        self._listening.listen(1024)
        self._accepting.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listening.accept()
            except OSError:
                return
            script = self._scripts[min(self.accepted, len(self._scripts) - 1)]
            connection = _Connection(sock, script, self._cut, self._context, self._protocol)
            self._connections.append(connection)
            thread = threading.Thread(target=connection.run, daemon=True)
            thread.start()  # before it can be waited for
            self._threads.append(thread)
