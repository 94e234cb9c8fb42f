"""Stand-ins for engines: `standin.py SOCKET RECORDING...` plays one for each connection.

How: they send no load, but replay what a real engine reported, at its times, each on its own clock.
The first line of a connection is the host's number, from which everything else follows. Times are
on the front's clock, and in lines on the host's. When its standard input ends, it prints one line
of JSON about the traffic and exits.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recording import Recording, line_of, load
from trueload.protocol.fleet import Clock
from trueload.protocol.plan import Done, FromEngine, PhaseStarted, PhaseStopped
from trueload.units import NS_PER_S

MARK_NS = 1_234_567_890_123_456_789
"""Stands for a time in a line that is otherwise ready to be said."""
MARK = str(MARK_NS).encode()
SET_UP_NS = 2_000_000
AFTER_NS = 1_000  # from a line to one that must not overtake it


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

    def marked(message: Any) -> bytes:
        return line_of(message.model_copy(update={"at_ns": MARK_NS}))

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


def nature_of(number: int) -> Nature:
    """Derive a host's clock and delays from its number, reproducibly.

    Clocks are up to hours apart, delays up to a millisecond.
    """
    hours_ns = (number * 7_919 % 1_000 - 500) * 36_000_000_000
    return Nature(
        ahead_ns=hours_ns + number * 1_003,
        there_ns=number * 37 % 500 * 1_000,
        back_ns=number * 61 % 500 * 1_000,
    )


def variant_of(number: int, variants: int) -> int:
    """Tell which of several recordings a host replays."""
    return number % variants


class Traffic:
    """The traffic of all hosts in bytes, and when the last `phase_done` was sent."""

    def __init__(self) -> None:
        self.said_bytes = 0
        self.heard_bytes = 0
        self.done_ns = 0


class Host(asyncio.Protocol):
    """One connection, which plays one host."""

    _transport: asyncio.Transport
    _lines: Lines
    _nature: Nature | None = None

    def __init__(self, variants: Sequence[Lines], traffic: Traffic) -> None:
        self._variants = variants
        self._traffic = traffic
        self._pending = b""
        self._due: list[asyncio.TimerHandle] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()

    def data_received(self, data: bytes) -> None:
        self._traffic.heard_bytes += len(data)
        *lines, self._pending = (self._pending + data).split(b"\n")
        for line in lines:
            self._handle(line)

    def _handle(self, line: bytes) -> None:
        """Handle a line from the front."""
        now_ns = time.monotonic_ns()
        if self._nature is None:
            number = int(line)
            self._nature = nature_of(number)
            self._lines = self._variants[variant_of(number, len(self._variants))]
            self._say(now_ns, self._lines.hello)
            return
        message = json.loads(line)
        made_ns = now_ns + self._nature.there_ns
        match message["type"]:
            case "clock":
                self._tell(made_ns, Clock(type="clock", id=message["id"], at_ns=MARK_NS))
            case "generate":
                self._say(made_ns + SET_UP_NS, self._lines.ready)
            case "phase":
                planned_ns = message["at_ns"] - self._nature.ahead_ns
                # If it is told too late, it begins late and reports so.
                self._begin(message["id"], max(planned_ns, made_ns))
            case "stop":
                self._forget()
                self._tell(made_ns, Done(type="done", why="stopped"))
            case _:
                pass

    def _begin(self, name: str, start_ns: int) -> None:
        lines = self._lines
        stop_ns = start_ns + lines.window_ns
        self._tell(start_ns, PhaseStarted(type="phase_started", id=name, at_ns=MARK_NS))
        for since_ns, line in lines.ticks:
            self._say(start_ns + since_ns + AFTER_NS, line)
        self._tell(stop_ns, PhaseStopped(type="phase_stopped", id=name, at_ns=MARK_NS))
        # The last tick may be of a moment after the end; `phase_done` still comes after it.
        last_ns = lines.ticks[-1][0] if lines.ticks else 0
        done_ns = max(stop_ns + lines.drain_ns, start_ns + last_ns) + 2 * AFTER_NS
        self._say(done_ns, lines.done, of_ns=start_ns)

    def _tell(self, made_ns: int, message: FromEngine) -> None:
        self._say(made_ns, line_of(message))

    def _say(self, made_ns: int, line: bytes, of_ns: int | None = None) -> None:
        """Send a line made at `made_ns`, with that time in it or another; the front gets it after
        the way back."""
        assert self._nature is not None
        at_ns = self._nature.ahead_ns + (made_ns if of_ns is None else of_ns)
        when_s = (made_ns + self._nature.back_ns) / NS_PER_S
        self._due.append(asyncio.get_running_loop().call_at(when_s, self._write, line, at_ns))

    def _write(self, line: bytes, at_ns: int) -> None:
        line = line.replace(MARK, str(at_ns).encode())
        self._transport.write(line)
        self._traffic.said_bytes += len(line)
        if b'"phase_done"' in line[:32]:
            self._traffic.done_ns = time.monotonic_ns()

    def _forget(self) -> None:
        for each in self._due:
            each.cancel()
        self._due.clear()


async def serve(path: str, variants: Sequence[Lines]) -> Traffic:
    """Serve until standard input ends; return the traffic."""
    loop = asyncio.get_running_loop()
    traffic = Traffic()
    server = await loop.create_unix_server(lambda: Host(variants, traffic), path, backlog=1_024)
    print("listening", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()
    return traffic


def main() -> None:
    """Serve, then print the traffic."""
    path, *recordings = sys.argv[1:]
    variants = [lines_of(load(Path(each))) for each in recordings]
    print(json.dumps(vars(asyncio.run(serve(path, variants)))))


if __name__ == "__main__":
    main()
