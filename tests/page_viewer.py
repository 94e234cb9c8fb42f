"""A viewer of the page of ``--web``, on a plain socket: as a browser does, or worse."""

from __future__ import annotations

import json
import socket
from typing import Any
from urllib.parse import urlsplit

BOUND_S = 60.0


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=BOUND_S)


def ask(port: int, raw: bytes, *, ends: bool = False) -> bytes:
    """Return everything that is answered to these bytes; ``ends``: no more are to come."""
    with connected(port) as connection:
        connection.sendall(raw)
        if ends:
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        while more := connection.recv(65_536):
            answer += more
        return answer


def get(url: str, name: str = "") -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body of a file of the page, as a browser asks for it."""
    at = urlsplit(url)
    assert at.port is not None
    raw = f"GET {at.path}{name} HTTP/1.1\r\nHost: {at.netloc}\r\nAccept: */*\r\n\r\n"
    return parted(ask(at.port, raw.encode()))


def parted(answer: bytes) -> tuple[int, dict[str, str], bytes]:
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    return int(status.split()[1]), dict(line.split(": ", 1) for line in lines), body


class Viewer:
    """A connection that is sent the states, unless ``status`` says that it is refused."""

    def __init__(self, url: str) -> None:
        at = urlsplit(url)
        assert at.port is not None
        self._connection = connected(at.port)
        request = f"GET {at.path}events HTTP/1.1\r\nHost: {at.netloc}\r\n\r\n"
        self._connection.sendall(request.encode())
        self._unread = b""
        while b"\r\n\r\n" not in self._unread:
            self._read()
        head, _, self._unread = self._unread.partition(b"\r\n\r\n")
        self.status = int(head.split()[1])

    def rest(self) -> bytes:
        """Return what is left until the server ends it."""
        while self._read():
            pass
        return self._unread

    def state(self) -> Any:
        """Return the next state; None once the server has ended it."""
        while b"\n\n" not in self._unread:
            if not self._read():
                return None
        event, _, self._unread = self._unread.partition(b"\n\n")
        assert event.startswith(b"data: "), event
        return json.loads(event.removeprefix(b"data: "))

    def close(self) -> None:
        self._connection.close()

    def _read(self) -> bool:
        try:
            more = self._connection.recv(65_536)
        except ConnectionResetError:
            more = b""
        self._unread += more
        return bool(more)
