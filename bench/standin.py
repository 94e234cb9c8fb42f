"""A stand-in for an engine: replays what a real one reported, at its times, on its own clock.

It sends no load. It is a state machine: lines in, lines out, and the time of its next output. It
owns no socket and reads no clock. Times passed in are on the front's clock; times in its lines are
on its own.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from recording import Recording, line_of
from trueload.protocol.plan import Clock, Done, PhaseStarted, PhaseStopped, to_line

MARK_NS = 1_234_567_890_123_456_789
"""Stands for a time in a line that is otherwise ready to be said."""
MARK = str(MARK_NS).encode()
SET_UP_NS = 2_000_000


@dataclass(frozen=True)
class Lines:
    """The lines of a host, complete but for the times."""

    hello: bytes
    ready: bytes
    ticks: tuple[tuple[int, bytes], ...]
    """Since the start of the window, and the line."""
    done: bytes
    window_ns: int
    drain_ns: int


def lines_of(recording: Recording) -> Lines:
    """Prepare the lines once, for all hosts that report the same."""

    def marked(message: Any, **changes: Any) -> bytes:
        return line_of(message.model_copy(update={"at_ns": MARK_NS, **changes}))

    found = recording.measurement
    done = found.model_copy(update={"started_ns": MARK_NS, "began_ns": MARK_NS})
    return Lines(
        hello=line_of(recording.hello),
        ready=marked(recording.ready),
        ticks=tuple((tick.at_ns, marked(tick)) for tick in recording.ticks),
        done=line_of(recording.done.model_copy(update={"measurement": done})),
        window_ns=found.window_ns,
        drain_ns=found.drain_ns,
    )


@dataclass(frozen=True)
class Nature:
    """What differs between hosts: the lead of its clock over the front's, and the delay of a line
    to it and back."""

    ahead_ns: int = 0
    there_ns: int = 0
    back_ns: int = 0


class StandIn:
    """The state machine of one host."""

    def __init__(self, lines: Lines, nature: Nature) -> None:
        self._lines = lines
        self._nature = nature
        self._due: list[tuple[int, int, Callable[[], bytes]]] = []
        self._order = 0

    def handle_start(self, now_ns: int) -> None:
        """Handle the start of the process."""
        self._send(now_ns, lambda: self._lines.hello)

    def handle_line(self, now_ns: int, line: bytes) -> None:
        """Handle a line from the front."""
        message = json.loads(line)
        made_ns = now_ns + self._nature.there_ns
        match message["type"]:
            case "clock":
                answer = Clock(type="clock", id=message["id"], at_ns=self._own(made_ns))
                self._send(made_ns, lambda: to_line(answer))
            case "generate":
                ready_ns = made_ns + SET_UP_NS
                self._send(ready_ns, lambda: self._timed(self._lines.ready, ready_ns))
            case "phase":
                planned_ns = message["at_ns"] - self._nature.ahead_ns
                # If it is told too late, it begins late and reports so.
                self._begin(message["id"], max(planned_ns, made_ns))
            case "stop":
                self._due.clear()
                self._send(made_ns, lambda: to_line(Done(type="done", why="stopped")))
            case _:
                pass

    def poll_output(self, now_ns: int) -> bytes | None:
        """Return the next line that is due; None if there is none."""
        if not self._due or self._due[0][0] > now_ns:
            return None
        return heapq.heappop(self._due)[2]()

    def poll_timeout_ns(self) -> int | None:
        """Return the time of its next output; None if there is none."""
        return self._due[0][0] if self._due else None

    def _begin(self, name: str, start_ns: int) -> None:
        lines = self._lines
        stop_ns = start_ns + lines.window_ns
        # The last tick may be of a moment after the end; `phase_done` still comes after it.
        last_ns = lines.ticks[-1][0] if lines.ticks else 0
        done_ns = max(stop_ns + lines.drain_ns, start_ns + last_ns)
        started = PhaseStarted(type="phase_started", id=name, at_ns=self._own(start_ns))
        stopped = PhaseStopped(type="phase_stopped", id=name, at_ns=self._own(stop_ns))
        self._send_edge(started, start_ns)
        for since_ns, line in lines.ticks:
            self._send(start_ns + since_ns, self._later(line, start_ns + since_ns))
        self._send_edge(stopped, stop_ns)
        self._send(done_ns, self._later(lines.done, start_ns))

    def _send_edge(self, edge: PhaseStarted | PhaseStopped, at_ns: int) -> None:
        self._send(at_ns, lambda: to_line(edge))

    def _later(self, line: bytes, at_ns: int) -> Callable[[], bytes]:
        return lambda: self._timed(line, at_ns)

    def _timed(self, line: bytes, at_ns: int) -> bytes:
        return line.replace(MARK, str(self._own(at_ns)).encode())

    def _own(self, front_ns: int) -> int:
        return front_ns + self._nature.ahead_ns

    def _send(self, made_ns: int, line: Callable[[], bytes]) -> None:
        """Queue a line made at `made_ns`; the front gets it after the way back."""
        self._order += 1
        heapq.heappush(self._due, (made_ns + self._nature.back_ns, self._order, line))
