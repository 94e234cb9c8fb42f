"""An engine's stand-in: it says what a real one said, at the times and in the sizes of a real one,
on a clock of its own; it sends no load.

A machine: lines in, lines out, and a time at which it wants to be asked again. It owns no socket
and reads no clock. Times that it is given are of the front's clock; what it says is of its own.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from recording import Recording
from trueload.protocol.plan import Clock, Done, PhaseStarted, PhaseStopped, to_line

MARK_NS = 1_234_567_890_123_456_789
"""Stands for a time in a line that is otherwise ready to be said."""
MARK = str(MARK_NS).encode()
SET_UP_NS = 2_000_000


@dataclass(frozen=True)
class Lines:
    """What a host says, ready but for the times."""

    hello: bytes
    ready: bytes
    ticks: tuple[tuple[int, bytes], ...]
    """Since the start of the window, and the line."""
    done: bytes
    window_ns: int
    drain_ns: int


def lines_of(recording: Recording) -> Lines:
    """Written out once for all hosts that say the same."""

    def marked(message: Any, **changes: Any) -> bytes:
        return to_line(message.model_copy(update={"at_ns": MARK_NS, **changes}))

    found = recording.measurement
    done = found.model_copy(update={"started_ns": MARK_NS, "began_ns": MARK_NS})
    return Lines(
        hello=to_line(recording.hello),
        ready=marked(recording.ready),
        ticks=tuple((tick.at_ns, marked(tick)) for tick in recording.ticks),
        done=to_line(recording.done.model_copy(update={"measurement": done})),
        window_ns=found.window_ns,
        drain_ns=found.drain_ns,
    )


@dataclass(frozen=True)
class Nature:
    """What is its own: how far its clock is ahead of the front's, how long a line takes to it and
    back, and after how many ticks it falls silent, if it does."""

    ahead_ns: int = 0
    there_ns: int = 0
    back_ns: int = 0
    ticks: int | None = None


class StandIn:
    """One host."""

    def __init__(self, lines: Lines, nature: Nature) -> None:
        self._lines = lines
        self._nature = nature
        self._due: list[tuple[int, int, Callable[[], bytes]]] = []
        self._order = 0
        self._silent = False

    def handle_start(self, now_ns: int) -> None:
        """It has been started."""
        self._say(now_ns, lambda: self._lines.hello)

    def handle_line(self, now_ns: int, line: bytes) -> None:
        """The front says a line."""
        heard = json.loads(line)
        made_ns = now_ns + self._nature.there_ns
        match heard["type"]:
            case "clock":
                answer = Clock(type="clock", id=heard["id"], at_ns=self._own(made_ns))
                self._say(made_ns, lambda: to_line(answer))
            case "generate":
                ready_ns = made_ns + SET_UP_NS
                self._say(ready_ns, lambda: self._timed(self._lines.ready, ready_ns))
            case "phase":
                planned_ns = heard["at_ns"] - self._nature.ahead_ns
                # One that is told too late begins late, and says so.
                self._begin(heard["id"], max(planned_ns, made_ns))
            case "stop":
                self._due.clear()
                self._say(made_ns, lambda: to_line(Done(type="done", why="stopped")))
            case _:
                pass

    def poll_output(self, now_ns: int) -> bytes | None:
        """The next line that is due, if one is."""
        if not self._due or self._due[0][0] > now_ns or self._silent:
            return None
        return heapq.heappop(self._due)[2]()

    def poll_timeout_ns(self) -> int | None:
        """When it next has something to say."""
        return self._due[0][0] if self._due and not self._silent else None

    def _begin(self, name: str, start_ns: int) -> None:
        lines = self._lines
        stop_ns = start_ns + lines.window_ns
        # The last tick may tell of a moment after the end, and is said before it all the same.
        last_ns = lines.ticks[-1][0] if lines.ticks else 0
        done_ns = max(stop_ns + lines.drain_ns, start_ns + last_ns)
        started = PhaseStarted(type="phase_started", id=name, at_ns=self._own(start_ns))
        stopped = PhaseStopped(type="phase_stopped", id=name, at_ns=self._own(stop_ns))
        self._say_edge(started, start_ns)
        for number, (since_ns, line) in enumerate(lines.ticks):
            if number == self._nature.ticks:
                self._say(start_ns + since_ns, self._fall_silent)
            self._say(start_ns + since_ns, self._later(line, start_ns + since_ns))
        self._say_edge(stopped, stop_ns)
        self._say(done_ns, self._later(lines.done, start_ns))

    def _say_edge(self, edge: PhaseStarted | PhaseStopped, at_ns: int) -> None:
        self._say(at_ns, lambda: to_line(edge))

    def _fall_silent(self) -> bytes:
        self._silent = True
        return b""

    def _later(self, line: bytes, at_ns: int) -> Callable[[], bytes]:
        return lambda: self._timed(line, at_ns)

    def _timed(self, line: bytes, at_ns: int) -> bytes:
        return line.replace(MARK, str(self._own(at_ns)).encode())

    def _own(self, front_ns: int) -> int:
        return front_ns + self._nature.ahead_ns

    def _say(self, made_ns: int, line: Callable[[], bytes]) -> None:
        """What is made at a time is heard when it has come back."""
        self._order += 1
        heapq.heappush(self._due, (made_ns + self._nature.back_ns, self._order, line))
