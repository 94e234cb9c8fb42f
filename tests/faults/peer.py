"""A server that acts out a script on a real socket, and counts the requests that reach it.

One thread accepts, one thread per connection follows its script. What it counts are requests that
came in whole, also those that come while it is doing something else, or after the end of its
script: it reads on until the other side has closed. It must not know what trueload makes of it.
"""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from random import Random
from types import TracebackType
from typing import Final

from faults.cases import MESSAGE_BYTES, Script, Step
from faults.tls import SealedSocket

IDLE_S_MAX: Final = 20.0
"""A connection that is left alone for longer is given up, so that no test hangs."""

LINGER_AWAY: Final = struct.pack("ii", 1, 0)
"""SO_LINGER of 0 s: a close becomes a reset."""

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)", re.IGNORECASE)


class GoneError(Exception):
    """The other side has closed or reset the connection."""


class RequestCounter:
    """Counts whole requests in a stream; they are the generator's, so this need not be strict."""

    def __init__(self) -> None:
        self.whole = 0
        self.bytes = 0
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Takes in what was read."""
        self.bytes += len(data)
        self._rest += data
        while (end := self._rest.find(b"\r\n\r\n")) >= 0:
            length = _LENGTH.search(self._rest[: end + 2])
            size = end + 4 + (int(length[1]) if length else 0)
            if len(self._rest) < size:
                return
            self.whole += 1
            self._rest = self._rest[size:]


class MessageCounter:
    """Counts messages of a fixed size, and keeps them to be sent back."""

    def __init__(self) -> None:
        self.whole = 0
        self.bytes = 0
        self.to_echo: list[bytes] = []
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Takes in what was read."""
        self.bytes += len(data)
        self._rest += data
        while len(self._rest) >= MESSAGE_BYTES:
            self.to_echo.append(self._rest[:MESSAGE_BYTES])
            self._rest = self._rest[MESSAGE_BYTES:]
            self.whole += 1


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
        http = protocol == "http"
        self.requests: RequestCounter | MessageCounter
        self.requests = RequestCounter() if http else MessageCounter()
        self._ended = False
        self._raw = sock
        self._sock = sock if context is None else SealedSocket(sock, context)
        self._script = script
        self._cut = cut
        self._wanted = 0
        self._closed = False

    def run(self) -> None:
        """Follows the script to its end, then reads until the other side closes."""
        self._sock.settimeout(IDLE_S_MAX)
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(GoneError, OSError):
            if isinstance(self._sock, SealedSocket):
                self._sock.handshake()
            self._follow()
        self._drain()
        self._sock.close()

    def abort(self) -> None:
        """Ends a connection that is still in use, from another thread."""
        with contextlib.suppress(OSError):
            self._raw.shutdown(socket.SHUT_RDWR)

    def _follow(self) -> None:
        again = True
        while again:
            again = False
            for step in self._script:
                if step.word in ("hold", "again"):
                    again = step.word == "again"
                    break
                self._take(step)

    def _take(self, step: Step) -> None:
        match step.word:
            case "read" if step.count:
                self._read(step.count)
            case "read":
                while not self._ended:
                    self._receive()
            case "echo":
                self._echo(step.count)
            case "send":
                self._send(step.data * step.count)
            case "flood":
                while True:
                    self._sock.sendall(step.data * max(1, 65536 // len(step.data)))
            case "drip":
                for byte in step.data:
                    self._sock.sendall(bytes([byte]))
                    time.sleep(step.ms / 1000)
            case "wait":
                time.sleep(step.ms / 1000)
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
            # A script that waits for this end goes on with its next step; any other is over.
            if self._ended or Step("read", count=0) not in self._script:
                raise GoneError
            self._ended = True
        self.requests.feed(data)

    def _echo(self, count: int) -> None:
        assert isinstance(self.requests, MessageCounter), "this protocol has nothing to echo"
        messages, self.requests.to_echo = (
            self.requests.to_echo[:count],
            self.requests.to_echo[count:],
        )
        self._send(b"".join(messages))

    def _send(self, data: bytes) -> None:
        for piece in pieces(data, self._cut):
            self._sock.sendall(piece)

    def _drain(self) -> None:
        with contextlib.suppress(GoneError, OSError):
            while not self._closed:
                self._receive()


def pieces(data: bytes, cut: Random | None) -> Iterator[bytes]:
    """`data` as it is, or cut at random into at most 64 pieces."""
    if cut is None or len(data) < 2:
        yield data
        return
    cuts = sorted(cut.sample(range(1, len(data)), min(cut.randint(1, 63), len(data) - 1)))
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        yield data[start:end]


class Peer:
    """Listens while it is entered: `with Peer(scripts) as peer: … peer.url`."""

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
        """With `context` the peer speaks TLS; `secure` is what its URL says."""
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
        """Where it listens."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self._scheme}://{host}:{self.port}/"

    @property
    def accepted(self) -> int:
        """Connections accepted up to now."""
        return len(self._connections)

    @property
    def requests(self) -> int:
        """Requests that have come in whole, up to now."""
        return sum(connection.requests.whole for connection in self._connections)

    def settle(self) -> None:
        """Waits until every connection has come to its end: then the counts are final."""
        for thread in list(self._threads):
            thread.join(IDLE_S_MAX)

    def close(self) -> None:
        """Stops listening and ends what is open."""
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
            self._threads.append(thread)
            thread.start()
