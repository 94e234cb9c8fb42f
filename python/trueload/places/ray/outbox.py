"""What is still to be written to a program on another host, in order.

How: senders add to a buffer, and return as soon as all of it fits. Pieces of it are offered until
the host says how much it has taken. So a host that no longer answers holds nobody up who also has
to write to others.
"""

from __future__ import annotations

import threading

from trueload.deadline import seconds_left
from trueload.places import ChannelClosedError

PIECE_BYTES = 64 * 2**10
WAITING_BYTES_MAX = 256 * 2**10
NOT_READ = "it has not read its input for {:g} s"


class Outbox:
    """``put``, ``close`` and ``fail`` are called by any thread, the rest by the one that writes."""

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

    def piece(self) -> tuple[bytes, bool]:
        """What to write next, and whether it is the last."""
        with self._changed:
            is_last = self._closed is not None and len(self._waiting) <= PIECE_BYTES
            return bytes(self._waiting[:PIECE_BYTES]), is_last

    def taken(self, count: int) -> None:
        """Remove so many bytes of the last piece: the host has them."""
        with self._changed:
            del self._waiting[:count]
            self._changed.notify_all()

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
