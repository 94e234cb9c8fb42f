"""A bounded queue of lines between the thread that receives bytes and the one that reads lines.

How: the receiving thread receives nothing while ``LINES_MAX`` lines or more are kept, so a slow
reader slows the program down instead of using memory. A front of many programs diverts the lines of
all to one sink, which the receiving thread calls. The end of the queue says why it ended.
"""

from __future__ import annotations

import threading
import time
from collections import deque

from trueload.places import ChannelClosedError, LineTooLongError, Sink

# The longest line is the result of a phase, with an hour of seconds or with 100,000 targets.
LINE_BYTES_MAX = 128 * 2**20
LINES_MAX = 4_096  # lines read ahead; beyond that the program waits
TURN_S = 0.02  # the shortest wait, so that the receiving thread gets its turn
LATE_S = 0.1
TURNS_MAX = 100
CLOSED = "it has closed its output"
TOO_LONG = "it has written a line of more than {} MiB"


class Lines:
    """``add`` and ``end`` are called by one thread, ``read`` by another, the rest by any."""

    def __init__(self) -> None:
        self._lines: deque[bytes | ChannelClosedError] = deque()
        self._changed = threading.Condition()
        self._pending = bytearray()
        self._stopped = False
        self._sink: Sink | None = None

    def add(self, chunk: bytes) -> bool:
        """Add bytes as they came. Return False if a line is longer than allowed: the part of it
        that has come is dropped, and nothing more is accepted."""
        self._pending += chunk
        if b"\n" in chunk:
            *lines, rest = self._pending.split(b"\n")
            self._pending = bytearray(rest)
            for line in lines:
                self._put(bytes(line))
        if len(self._pending) > LINE_BYTES_MAX:
            self._pending = bytearray()
            self._put(LineTooLongError(TOO_LONG.format(LINE_BYTES_MAX // 2**20)))
            return False
        return True

    def end(self, why: ChannelClosedError | None = None) -> None:
        """Mark the end: nothing more will come."""
        self._put(why or ChannelClosedError(CLOSED))

    def is_full(self) -> bool:
        """Whether nothing should be received now."""
        return not self._stopped and self._sink is None and len(self._lines) >= LINES_MAX

    def read(self, timeout_s: float) -> bytes | None:
        """The next line; None if none came in time. Raises ``ChannelClosedError`` at the end."""
        with self._changed:
            if not self._await_line(timeout_s):
                return None
            found = self._lines[0]
            if isinstance(found, ChannelClosedError):  # it stays: every later read raises it
                raise type(found)(str(found))
            self._lines.popleft()
        return found

    def _await_line(self, timeout_s: float) -> bool:
        """Wait ``timeout_s`` for a line, and longer if the wait itself returned late. The receiving
        thread may have been held up as we were, by a thread that held the interpreter's lock."""
        wait_s = max(TURN_S, timeout_s)
        for _ in range(TURNS_MAX):
            began_s = time.monotonic()
            if self._changed.wait_for(lambda: self._lines, wait_s):
                return True
            if time.monotonic() - began_s < wait_s + LATE_S:
                return False
            wait_s = TURN_S
        return False

    def divert(self, sink: Sink) -> None:
        """Hand every unread line to ``sink``, and from now on each line as it comes."""
        with self._changed:
            while self._lines:
                sink(self._lines.popleft())
            self._sink = sink

    def stop(self) -> None:
        """Stop reading: what still comes is dropped."""
        with self._changed:
            self._stopped = True

    def _put(self, line: bytes | ChannelClosedError) -> None:
        with self._changed:
            if self._stopped:
                return
            sink = self._sink
            if sink is None:
                self._lines.append(line)
                self._changed.notify_all()
        if sink is not None:
            sink(line)
