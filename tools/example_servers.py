"""The servers that the pages show: trueload's own, and one that answers every request twice."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

TRUELOAD = str(Path(sys.executable).parent / "trueload")
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, World!"
END_OF_REQUEST = b"\r\n\r\n"
DOUBLE_PORT = 8081


@contextmanager
def reference_server(protocol: str = "http", *flags: str, port: int = 8080) -> Iterator[str]:
    """The reference server, on CPU 0."""
    words = [TRUELOAD, "serve", protocol, "--listen", f"127.0.0.1:{port}", "--cpus", "0", *flags]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert server.stdout is not None
    scheme = server.stdout.readline().split()[-1].partition(":")[0]  # it says where it listens
    try:
        yield f"{scheme}://127.0.0.1:{port}/"
    finally:
        server.terminate()
        server.wait()


@dataclass
class DoubleServer:
    """A server that answers each request twice, and counts the requests that it received."""

    url: str = f"http://127.0.0.1:{DOUBLE_PORT}/"
    requests: int = 0

    def answer(self, connection: socket.socket) -> None:
        """Answer each request on a connection twice, until the client closes it."""
        received = 0
        with connection:
            try:
                while data := connection.recv(4096):
                    requests = data.count(END_OF_REQUEST)
                    received += requests
                    connection.sendall(ANSWER * 2 * requests)
            except OSError:  # the client closed the connection while it was answered
                pass
        self.requests += received

    def accept(self, listener: socket.socket) -> None:
        """Give each connection a thread, until the listener is shut down."""
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=(connection,), daemon=True).start()


@contextmanager
def double_server() -> Iterator[DoubleServer]:
    """A server that answers each request twice."""
    server = DoubleServer()
    with socket.create_server(("127.0.0.1", DOUBLE_PORT)) as listener:
        threading.Thread(target=server.accept, args=(listener,), daemon=True).start()
        yield server
        listener.shutdown(socket.SHUT_RDWR)
