"""The servers that a client is verified against, and what each of them counted.

How: the reference server, which reports what it served; and, for what it does not do, a small
server of threads that answers with errors or resets. Where nobody is to listen, the port is held by
a socket that does not. All on loopback, all gone with the context.

Must not know: clients, processes of subjects.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from trueload.deadline import seconds_left
from trueload.engines.engine import Engine, EngineError, await_listening
from trueload.protocol.client import Counted, Peer
from trueload.protocol.plan import Done, Serve, Served

READY_S = 10.0
END_S = 10.0
HEAD_BYTES_MAX = 64 * 1024
NEVER_PATH = "/wait/60000"  # longer than any run waits

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, World!"
ERROR = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 5\r\n\r\noops\n"
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing discards what is unsent and resets


@dataclass(frozen=True)
class Opened:
    """A server at work: where it is, the path that it has instead of the one asked for, and what it
    will have counted, to be asked once, when the client has ended."""

    authority: str
    count: Callable[[], Counted]
    path: str | None = None


@contextlib.contextmanager
def opened(peer: Peer) -> Iterator[Opened]:
    """The server of that kind. Raises ``EngineError``, ``UserError``."""
    if peer == "refuse":
        with socket.socket() as held:
            held.bind(("127.0.0.1", 0))
            port = held.getsockname()[1]
            yield Opened(f"127.0.0.1:{port}", lambda: Counted(0, 0, 0, 0))
    elif peer in ("reference", "silent"):
        with Engine.start() as engine:
            engine.send(Serve(listen="127.0.0.1:0", threads=1, cpus=()))
            authority = await_listening(engine, READY_S)
            path = NEVER_PATH if peer == "silent" else None
            yield Opened(authority, lambda: _final_count(engine), path)
    else:
        server = _BadServer(peer)
        try:
            yield Opened(server.authority, server.count)
        finally:
            server.close()


def _final_count(engine: Engine) -> Counted:
    engine.stop()
    deadline_s = time.monotonic() + END_S
    last: Served | None = None
    done: Done | None = None
    while done is None and seconds_left(deadline_s) > 0:
        message = engine.receive(seconds_left(deadline_s))
        if isinstance(message, Served):
            last = message
        if isinstance(message, Done):
            done = message
    if last is None or done is None:
        raise EngineError("silent", "it did not tell what it served")
    if done.why not in ("finished", "stopped"):
        raise EngineError("died", f"it ended before it was told to: {done.why}")
    return Counted(last.requests, last.responses, last.accepted, last.open_peak)


class _BadServer:
    """A thread for each connection: there are few."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._lock = threading.Lock()
        self._requests = self._ok = self._accepted = self._peak = 0
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.authority = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, name=f"{peer}-peer", daemon=True).start()

    def count(self) -> Counted:
        with self._lock:
            return Counted(self._requests, self._ok, self._accepted, self._peak)

    def close(self) -> None:
        # Only a shutdown wakes the thread that waits for connections.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self._accepted += 1
                self._open.add(connection)
                self._peak = max(self._peak, len(self._open))
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        pending = b""
        with connection, contextlib.suppress(OSError):
            while len(pending) < HEAD_BYTES_MAX and (data := connection.recv(65536)):
                pending += data
                while b"\r\n\r\n" in pending:
                    head, _, pending = pending.partition(b"\r\n\r\n")
                    connection.sendall(self._answer(connection))
                    if b"connection: close" in head.lower():
                        connection.shutdown(socket.SHUT_WR)
        with self._lock:
            self._open.discard(connection)

    def _answer(self, connection: socket.socket) -> bytes:
        """What goes back; nothing and an end of the connection for a reset."""
        with self._lock:
            self._requests += 1
            ok = self._peer == "mixed" and self._requests % 2 == 1
            self._ok += ok
        if self._peer == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            connection.close()
        return OK if ok else ERROR
