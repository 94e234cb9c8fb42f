"""What is still to be written to a program on another host, in order.

How: senders add to a buffer, and return as soon as all of it fits. One thread takes pieces out and
writes them. So a host that no longer answers holds nobody up who also has to write to others. Must
not know how a piece is written.
"""

from __future__ import annotations

import threading

from trueload.deadline import seconds_left
from trueload.places import ChannelClosedError

PIECE_BYTES = 64 * 2**10
WAITING_BYTES_MAX = 256 * 2**10
NOT_READ = "it has not read its input for {:g} s"


class Outbox:
    """``put``, ``close`` and ``fail`` are called by any thread, ``take`` by the one that writes."""

    def __init__(self) -> None:
        self._waiting = bytearray()
        self._changed = threading.Condition()
        self._sending = threading.Lock()  # a long line is put in pieces, and stays in one
        self._closed: ChannelClosedError | None = None

    def put(self, line: bytes, deadline_s: float, timeout_s: float) -> None:
        """Add a line, and wait until the last of it fits. Raises ``ChannelClosedError``."""
        with self._sending:
            for start in range(0, len(line), PIECE_BYTES):
                self._put(line[start : start + PIECE_BYTES], deadline_s, timeout_s)

    def _put(self, piece: bytes, deadline_s: float, timeout_s: float) -> None:
        def fits() -> bool:
            has_room = len(self._waiting) + len(piece) <= WAITING_BYTES_MAX
            return self._closed is not None or has_room

        with self._changed:
            in_time = self._changed.wait_for(fits, seconds_left(deadline_s))
            if self._closed is not None:
                raise type(self._closed)(str(self._closed))
            if not in_time:
                raise ChannelClosedError(NOT_READ.format(timeout_s))
            self._waiting += piece
            self._changed.notify_all()

    def take(self) -> bytes | None:
        """Wait for a piece; None after ``fail``, and once all is written after ``close``."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed is not None)
            piece = bytes(self._waiting[:PIECE_BYTES])
            del self._waiting[:PIECE_BYTES]
            self._changed.notify_all()
        return piece or None

    def close(self) -> None:
        """Accept nothing more. What is waiting is still written."""
        self._end(ChannelClosedError("its input is closed"))

    def fail(self, error: ChannelClosedError) -> None:
        """Drop what is waiting; who still sends gets the error."""
        with self._changed:
            self._waiting.clear()
        self._end(error)

    def _end(self, error: ChannelClosedError) -> None:
        with self._changed:
            self._closed = self._closed or error
            self._changed.notify_all()
