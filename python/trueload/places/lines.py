"""Lines that one thread hears and another reads: split, bounded, with an end that says why.

How: so many lines are kept; whoever fills them waits while they are full, so that a reader who is
slow slows the program down and takes no memory. One who hears of many programs has the lines of all
handed to him instead, by the threads that hear them. Must not know where the bytes come from.
"""

from __future__ import annotations

import threading
import time
from collections import deque

from trueload.places import ChannelClosedError, LineTooLongError, Sink

# The longest line: what a phase leaves, with an hour of seconds or with 100,000 targets.
LINE_BYTES_MAX = 128 * 2**20
LINES_MAX = 4_096  # lines read ahead; beyond that the program waits
TURN_S = 0.02  # the least that who fills it has to come to its turn
LATE_S = 0.1
TURNS_MAX = 100
CLOSED = "it has closed its output"
TOO_LONG = "it has written a line of more than {} MiB"


class Lines:
    """``add`` and ``end`` from one thread, ``read`` from another, the rest from any."""

    def __init__(self) -> None:
        self._lines: deque[bytes | ChannelClosedError] = deque()
        self._changed = threading.Condition()
        self._pending = bytearray()
        self._stopped = False
        self._sink: Sink | None = None

    def add(self, chunk: bytes) -> bool:
        """Bytes as they came; False when a line is longer than any can be: what had come of it is
        dropped, and nothing is heard any more."""
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

    def end(self, why: str = CLOSED) -> None:
        """Nothing more will come."""
        self._put(ChannelClosedError(why))

    def read(self, timeout_s: float) -> bytes | None:
        """The next line; None when none came in time. Raises ``ChannelClosedError`` at the end."""
        with self._changed:
            if not self._await_line(timeout_s):
                return None
            found = self._lines[0]
            if isinstance(found, ChannelClosedError):  # whoever asks again hears the same
                raise type(found)(str(found))
            self._lines.popleft()
            self._changed.notify_all()
        return found

    def _await_line(self, timeout_s: float) -> bool:
        """Wait so long; longer after a wait from which we came back late: who fills it may have
        been kept from it as we were, by whoever held the interpreter's lock."""
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
        """Hand every line that has not been read to ``sink``, and all that come, as they do."""
        with self._changed:
            while self._lines:
                sink(self._lines.popleft())
            self._sink = sink
            self._changed.notify_all()

    def stop(self) -> None:
        """Nobody reads any more: what still comes is dropped, and whoever fills it goes on."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _put(self, line: bytes | ChannelClosedError) -> None:
        with self._changed:
            self._changed.wait_for(self._has_room)
            if self._stopped:
                return
            sink = self._sink
            if sink is None:
                self._lines.append(line)
                self._changed.notify_all()
        if sink is not None:
            sink(line)

    def _has_room(self) -> bool:
        return self._stopped or self._sink is not None or len(self._lines) < LINES_MAX
