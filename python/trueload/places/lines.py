"""Lines that one thread hears and another reads: split, bounded, with an end that says why.

How: a queue of so many lines; whoever fills it waits while it is full, so that a reader who is slow
slows the program down and takes no memory. Must not know where the bytes come from.
"""

from __future__ import annotations

import contextlib
import queue

from trueload.places import ChannelClosedError

LINE_BYTES_MAX = 256 * 2**20  # the longest line: a measurement with a day of seconds
LINES_MAX = 4_096  # lines read ahead; beyond that the program waits
HEAD_BYTES = 2**16  # what is kept of a line that is too long
CLOSED = "it has closed its output"


class Lines:
    """``add`` and ``end`` from one thread, ``read`` from another, ``stop`` from any."""

    def __init__(self) -> None:
        self._lines: queue.Queue[bytes | None] = queue.Queue(LINES_MAX)
        self._pending = bytearray()
        self._why = CLOSED
        self._stopped = False

    def add(self, chunk: bytes) -> bool:
        """Bytes as they came; False when a line is longer than any can be, and nothing is heard
        any more."""
        self._pending += chunk
        if b"\n" in chunk:
            *lines, rest = self._pending.split(b"\n")
            self._pending = bytearray(rest)
            for line in lines:
                self._put(bytes(line))
        if len(self._pending) > LINE_BYTES_MAX:
            self._put(bytes(self._pending[:HEAD_BYTES]))  # no JSON: the reader will refuse it
            return False
        return True

    def end(self, why: str = CLOSED) -> None:
        """Nothing more will come."""
        self._why = why
        self._put(None)

    def read(self, timeout_s: float) -> bytes | None:
        """The next line; None when none came in time. Raises ``ChannelClosedError`` at the end."""
        try:
            line = self._lines.get(timeout=max(0.0, timeout_s))
        except queue.Empty:
            return None
        if line is None:
            self._lines.put(None)  # whoever asks again hears the same
            raise ChannelClosedError(self._why)
        return line

    def stop(self) -> None:
        """Nobody reads any more: what still comes is dropped, and whoever fills it goes on."""
        self._stopped = True

    def _put(self, line: bytes | None) -> None:
        while not self._stopped:
            with contextlib.suppress(queue.Full):
                self._lines.put(line, timeout=0.2)
                return
