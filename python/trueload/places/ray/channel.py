"""A program on a host of a Ray cluster as a channel, and that host as a place.

How: what is sent waits in a buffer, and what comes in a queue; one thread for all hosts of the
cluster carries both (``pipes``). Pieces are small enough never to use Ray's object store.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from trueload.errors import UserError
from trueload.places import Channel, ChannelClosedError, Sink
from trueload.places.host_facts import another_machine
from trueload.places.lines import Lines
from trueload.places.program import Program, fitting, read_program
from trueload.places.ray.actor import LOST, Actor
from trueload.places.ray.outbox import Outbox
from trueload.places.ray.pipes import SILENT_S, Talk, Talks

SHIP_S = 30.0  # to send the program to a host: 20 MB over a slow link
KILL_S = 1.0
Stored = Callable[[Program], Any]
"""Returns the reference of a program in Ray's object store, in which each is once."""


class RayChannel(Channel):
    """A program on a host."""

    asked_every = 2

    def __init__(self, actor: Actor, number: int, pid: int, talks: Talks) -> None:
        self._actor = actor
        self._number = number
        self._pid = pid
        self._outbox = Outbox()
        self._lines = Lines()
        self._talks = talks
        self._talk = Talk(actor, number, self._lines, self._outbox)
        talks.add(self._talk)

    @property
    def pid(self) -> int:
        return self._pid

    def send(self, line: bytes, timeout_s: float) -> None:
        self._outbox.put(line, time.monotonic() + timeout_s, timeout_s)
        self._talks.wake(self._talk)

    def read_line(self, timeout_s: float) -> bytes | None:
        return self._lines.read(timeout_s)

    def divert(self, sink: Sink) -> None:
        self._lines.divert(sink)

    def close_input(self) -> None:
        self._outbox.close()
        self._talks.wake(self._talk)

    def wait(self, timeout_s: float) -> int | None:
        """The exit code; None also if nobody can tell."""
        with contextlib.suppress(*LOST):
            code = self._actor.call("wait", self._number, timeout_s, timeout_s=timeout_s + SILENT_S)
            return None if code is None else int(code)
        return None

    def kill(self) -> None:
        self._lines.stop()
        self._talk.end(ChannelClosedError("it has been killed"))
        try:
            self._actor.call("kill", self._number, timeout_s=KILL_S)
        except LOST:
            self._actor.end()  # the program's input ends with its actor, and so does it

    def log_tail(self) -> str:
        with contextlib.suppress(*LOST):
            log: bytes = self._actor.call("log", self._number, timeout_s=SILENT_S)
            return log.decode(errors="replace")
        return ""

    def suspect(self) -> bool:
        return self._talk.is_unanswered


class RayPlace:
    """A host of a Ray cluster."""

    def __init__(self, actor: Actor, stored: Stored, talks: Talks) -> None:
        self.name = actor.name
        self._talks = talks
        self._actor = actor
        self._stored = stored
        self._kept: set[str] = set()
        self._machine = ""

    def ready(self, timeout_s: float) -> None:
        """Wait until the actor answers. Raises ``UserError`` when it does not."""
        with before_anything_was_measured():
            self._machine = self._actor.call("about", timeout_s=timeout_s)["machine"]

    def prepare(self, program: Path, copying: object = None) -> None:
        """Make sure that the host has a program, and can run it. Raises ``UserError``."""
        try:
            with before_anything_was_measured():
                self._send(program)
        except OSError as error:
            raise UserError(str(error.strerror), f"look at {program}, and at that host") from error

    def end(self) -> None:
        """End the actor, and with it what still runs there."""
        self._actor.end()

    def open(self, argv: Sequence[str]) -> RayChannel:
        """Start a program of this machine on the host; it is sent first if it is not there. Raises
        ``OSError`` if it cannot be started, ``UserError`` if it could not be brought there."""
        with before_anything_was_measured():
            sha256 = self._send(Path(argv[0]))
            started = self._actor.call("start", sha256, list(argv), timeout_s=SHIP_S)
        number, pid, refused = started
        if refused is not None:
            raise OSError(None, f"{refused} (on {self.name})")
        return RayChannel(self._actor, number, pid, self._talks)

    def _send(self, path: Path) -> str:
        """Make sure that the host has the program. Returns its SHA-256."""
        program = fitting(read_program(path), self._machine)
        if program.sha256 in self._kept:
            return program.sha256
        if program.machine not in (None, self._machine):
            raise another_machine(f"host {self.name}", self._machine, program)
        stored = self._stored(program)
        refused = self._actor.call("keep", program.sha256, stored, program.loader, timeout_s=SHIP_S)
        if refused is not None:
            raise OSError(None, f"{refused} (on {self.name})")
        self._kept.add(program.sha256)
        return program.sha256


@contextlib.contextmanager
def before_anything_was_measured() -> Iterator[None]:
    """Make a ``UserError`` of a host that is lost."""
    try:
        yield
    except LOST as error:
        hint = "`ray status` on the head says which hosts the cluster has"
        raise UserError(str(error), hint) from error
