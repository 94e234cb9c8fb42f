"""The published traps: servers, and a frozen generator, that other tools measure without a warning.

Each trap is a server's behaviour on a connection, the flags of the run against it, and the check
that must fail. ``spring`` runs one of them through the command line.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from harness import COMMAND_TIMEOUT_S, Finished, Trueload
from trueload.machine.processes import descendants
from waiting import be_late

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
FROZEN_S = 1.0
REQUESTS_BEFORE_FREEZE = 5  # on one connection


@dataclass
class Talk:
    """The server's side of one connection: its number (from 0), and the requests read so far."""

    socket: socket.socket
    number: int
    received: threading.Event
    count: int = 0

    def requests(self) -> Iterator[int]:
        """The numbers (from 0) of requests as they come."""
        while data := self.socket.recv(65_536):
            for _ in range(data.count(b"\r\n\r\n")):
                yield self.count
                self.count += 1
                if self.count == REQUESTS_BEFORE_FREEZE:
                    self.received.set()

    def answer_all(self) -> None:
        """Answer every request, as an honest server does."""
        for _ in self.requests():
            self.socket.sendall(OK)


def write_without_reading(talk: Talk) -> None:
    """Write answers without end, and read nothing."""
    while True:
        talk.socket.sendall(OK * 100)


def starve_half(talk: Talk) -> None:
    """Never answer on every other connection."""
    if talk.number % 2:
        for _ in talk.requests():
            pass
    talk.answer_all()


def forget_half(talk: Talk) -> None:
    """Answer only once on every other connection."""
    for number in talk.requests():
        if talk.number % 2 == 0 or number == 0:
            talk.socket.sendall(OK)


class StopForEverybody:
    """Answer, and stop on all connections at once when each of them has had twenty requests."""

    def __init__(self, connections: int) -> None:
        self._waited_for = set(range(connections))

    def __call__(self, talk: Talk) -> None:
        for number in talk.requests():
            if number == 20:
                self._waited_for.discard(talk.number)
            if self._waited_for:
                talk.socket.sendall(OK)


def fail_most(talk: Talk) -> None:
    """Answer four of five requests with an error."""
    for number in talk.requests():
        talk.socket.sendall(BUSY if number % 5 else OK)


def drop_after_accept(talk: Talk) -> None:
    """Close one of ten connections at once."""
    if talk.number % 10 != 9:
        talk.answer_all()


def drop_when_asked(talk: Talk) -> None:
    """Close one of ten connections at its first request."""
    if talk.number % 10 != 9:
        talk.answer_all()
    next(talk.requests(), None)


def drop_in_mid_answer(talk: Talk) -> None:
    """Close one of ten connections in the middle of its first answer."""
    if talk.number % 10 != 9:
        talk.answer_all()
    for _ in talk.requests():
        talk.socket.sendall(OK[:-1])
        return


@dataclass(frozen=True)
class Trap:
    """A trap: the server's behaviour, the flags of the run, and the check that must fail."""

    name: str
    behave: Callable[[Talk], None]
    check: str
    flags: tuple[str, ...] = ("-c", "20", "-d", "500ms", "--warmup", "200ms", "--timeout", "1s")
    freeze: bool = False


RATE = ("-c", "20", "-d", "500ms", "--warmup", "200ms", "--timeout", "1s", "--rate", "1k/s")
LONG = ("-c", "20", "-d", "1500ms", "--warmup", "0", "--timeout", "2s")
TRAPS = (
    Trap("it writes without reading", write_without_reading, "unsolicited"),
    Trap("half of the connections are starved", starve_half, "starvation"),
    Trap("half of the connections are answered once", forget_half, "starvation", LONG),
    Trap("80 % of the answers are errors", fail_most, "errors"),
    Trap("80 % of the answers are errors, at a rate", fail_most, "errors", RATE),
    Trap("one connection in ten is dropped when asked", drop_when_asked, "connections"),
    Trap("one connection in ten is dropped in mid-answer", drop_in_mid_answer, "connections"),
    Trap("one connection in ten is dropped unasked", drop_after_accept, "connections"),
    Trap(
        "one connection in ten is dropped, of one per request",
        drop_after_accept,
        "errors",
        ("-c", "20", "--requests", "500", "--close"),
    ),
    Trap("the generator is frozen", Talk.answer_all, "hiccup", LONG, freeze=True),
    Trap("the generator is frozen, at a rate", Talk.answer_all, "hiccup", (*LONG, "--rate", "1k/s"),
         freeze=True),
)  # fmt: skip


class TrapServer:
    """A server with a thread per connection, which runs ``behave``."""

    def __init__(self, behave: Callable[[Talk], None]) -> None:
        self._behave = behave
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=256)
        self._talks: list[Talk] = []
        self.received = threading.Event()
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}/"
        self._accepting = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> TrapServer:
        self._accepting.start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listening.close()
        for talk in self._talks:
            with contextlib.suppress(OSError):
                talk.socket.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            for number in itertools.count():
                talk = Talk(self._listening.accept()[0], number, self.received)
                self._talks.append(talk)
                threading.Thread(target=self._serve, args=(talk,), daemon=True).start()

    def _serve(self, talk: Talk) -> None:
        with contextlib.suppress(OSError), talk.socket:
            self._behave(talk)


def spring(trueload: Trueload, trap: Trap) -> tuple[int, Any]:
    """Run into the trap; return the exit code and the record."""
    with TrapServer(trap.behave) as server:
        process = trueload.start("http", server.url, *trap.flags, "--json", "-", "--no-save")
        if trap.freeze:
            assert server.received.wait(COMMAND_TIMEOUT_S), "nothing was sent"
            _freeze(engine_of(process.pid))
        out, err = process.communicate(timeout=COMMAND_TIMEOUT_S)
    return process.returncode, Finished(process.returncode, out, err).json()


def engine_of(pid: int) -> int:
    """Return the engine that a running command has started."""
    for child in descendants(pid):
        with contextlib.suppress(OSError):
            if "engine" in os.path.basename(os.readlink(f"/proc/{child}/exe")):
                return child
    raise AssertionError(f"{pid} has started no engine")


def _freeze(pid: int) -> None:
    # Freeze for FROZEN_S, well below the 2 s after which an engine without a lease ends.
    os.kill(pid, signal.SIGSTOP)
    be_late(FROZEN_S)
    os.kill(pid, signal.SIGCONT)
