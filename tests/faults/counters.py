"""Counts complete requests in what a peer reads, in each protocol.

The requests are the generator's own, so the parsing is not strict. Must not know sockets, or what
is answered.
"""

from __future__ import annotations

import base64
import hashlib
import re

from faults.cases import MESSAGE_BYTES

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)", re.IGNORECASE)
_KEY = re.compile(rb"\r\nsec-websocket-key:[ \t]*([^\r ]+)", re.IGNORECASE)
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class RequestCounter:
    """Counts complete HTTP/1 requests."""

    def __init__(self) -> None:
        self.whole = 0
        self.bytes = 0
        self.to_echo: list[bytes] = []
        """What is to be sent back, for protocols that echo."""
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Add bytes that were read."""
        self.bytes += len(data)
        self._rest += data
        while (size := self._next()) is not None:
            self._rest = self._rest[size:]

    def _next(self) -> int | None:
        """Return the length of the next complete request and count it; None if it is incomplete."""
        end = self._rest.find(b"\r\n\r\n")
        if end < 0:
            return None
        length = _LENGTH.search(self._rest[: end + 2])
        size = end + 4 + (int(length[1]) if length else 0)
        if len(self._rest) < size:
            return None
        self.whole += 1
        return size


class MessageCounter(RequestCounter):
    """Counts messages of a fixed size."""

    def _next(self) -> int | None:
        if len(self._rest) < MESSAGE_BYTES:
            return None
        self.to_echo.append(self._rest[:MESSAGE_BYTES])
        self.whole += 1
        return MESSAGE_BYTES


class FrameCounter(RequestCounter):
    """Counts WebSocket messages, each in one short frame, after a request to upgrade."""

    def __init__(self) -> None:
        super().__init__()
        self.accept: bytes | None = None
        """What the request is to be answered with, once it is whole."""

    def _next(self) -> int | None:
        if self.accept is None:
            end = self._rest.find(b"\r\n\r\n")
            if end < 0:
                return None
            key = _KEY.search(self._rest[:end])
            assert key is not None, "no request to upgrade"
            self.accept = base64.b64encode(hashlib.sha1(key[1] + _GUID).digest())
            return end + 4
        if len(self._rest) < 2:
            return None
        opcode, length = self._rest[0] & 15, self._rest[1] & 127
        if len(self._rest) < 6 + length:
            return None
        if opcode in (1, 2):
            mask = self._rest[2:6]
            payload = bytes(
                byte ^ mask[at % 4] for at, byte in enumerate(self._rest[6 : 6 + length])
            )
            self.to_echo.append(bytes([0x80 | opcode, length]) + payload)
            self.whole += 1
        return 6 + length


def make_counter(protocol: str) -> RequestCounter:
    """Return the counter for a protocol."""
    return {"http": RequestCounter, "tcp": MessageCounter, "ws": FrameCounter}[protocol]()
