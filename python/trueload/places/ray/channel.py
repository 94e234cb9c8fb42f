"""A program on a host of a Ray cluster as a channel, and that host as a place.

How: a thread always has one ``read`` pending at the actor. The actor answers as soon as the program
has written something, or after a quarter of a second with nothing. So a line takes one message, and
a host that does not answer is noticed. Another thread writes. Pieces are small enough never to use
Ray's object store. Whatever Ray raises (dead actor, dead node, lost connection) means the same
here: the host, or the way to it, is lost for good, and every call that still waits ends at once.
Must not know what the lines mean, nor how the cluster was found.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trueload.deadline import within
from trueload.errors import UserError
from trueload.places import Channel, ChannelClosedError, HostGoneError, Sink, WayGoneError
from trueload.places.lines import Lines
from trueload.places.program import Program, fitting, read_program
from trueload.places.ray.host import NODE_DIED
from trueload.places.ray.outbox import NOT_READ, Outbox
from trueload.places.ray.way import Way
from trueload.places.remote import another_machine

HOLD_S = 0.25  # how long the actor holds a read while there is no output
SILENT_S = 1.5  # without an answer for so long, hold included, a host is lost
SHIP_S = 30.0  # to send the program to a host: 20 MB over a slow link
KILL_S = 1.0
END_S = 0.5  # to send the message that ends an actor
WRITE_S = 5.0  # for a program to read a piece of its input
LOST = (HostGoneError, WayGoneError)


class Actor:
    """The actor on one host, called with a time limit."""

    def __init__(self, ray: Any, handle: Any, name: str, way: Way) -> None:
        self._ray = ray
        self._handle = handle
        self.name = name
        self.way = way
        self._lost: HostGoneError | WayGoneError | None = None
        self._waiting: set[threading.Event] = set()

    def call(self, method: str, *arguments: Any, timeout_s: float) -> Any:
        """Call a method and return its result. Raises one of ``LOST`` if none comes in time."""
        over = threading.Event()
        self._waiting.add(over)
        try:
            self._check()
            # Ray enforces no time limit of its own if the head of the cluster does not answer.
            return within(timeout_s, self._ask, method, arguments, over=over)
        except LOST:
            raise
        except Exception as error:  # Ray raises its own kinds, and those of its transport
            self._check()
            lost = self.way.blame(self.name, error, self._how(error, timeout_s))
            self._lose(lost)
            raise lost from error
        finally:
            self._waiting.discard(over)

    def end(self) -> None:
        """End the actor, and thereby whatever it has started. Does not wait for that."""
        self._lose(HostGoneError(f"the actor on {self.name} has been ended"))
        if self.way.lost is None:
            with contextlib.suppress(Exception):
                within(END_S, self._end)

    def _check(self) -> None:
        if self._lost is not None:
            raise type(self._lost)(str(self._lost))

    def _lose(self, error: HostGoneError | WayGoneError) -> None:
        """The first error names the cause; what fails after it says less."""
        self._lost = self._lost or error
        for over in self._waiting.copy():
            over.set()

    def _end(self) -> None:
        # The first call needs the actor to answer, the second the head of the cluster. Nothing is
        # returned: through ray:// even discarding an answer can take a minute.
        self._handle.leave.remote()
        self._ray.kill(self._handle, no_restart=True)

    def _ask(self, method: str, arguments: tuple[Any, ...]) -> Any:
        return self._ray.get(getattr(self._handle, method).remote(*arguments))

    def _how(self, error: Exception, timeout_s: float) -> str:
        if isinstance(error, TimeoutError):
            return f"it has not answered for {timeout_s:g} s"
        return cause_of_death(str(error)) or type(error).__name__


def cause_of_death(text: str) -> str:
    """The cause of an actor's death in a long text of Ray's; if none is known, its first line."""
    for words, meaning in (
        (NODE_DIED, NODE_DIED),
        ("node has died", NODE_DIED),
        ("killed by `ray.kill`", "its actor has been killed with ray.kill"),
        ("NODE_OUT_OF_MEMORY", "its actor was killed because the host has too little memory"),
        ("worker process has died", "the process of its actor has died"),
        ("broke the connection", "the connection to the cluster has been lost"),
    ):
        if words in text:
            return meaning
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "".join(c for c in lines[0] if c.isprintable())[:200] if lines else ""


class RayChannel(Channel):
    """A program on a host."""

    def __init__(self, actor: Actor, number: int, pid: int) -> None:
        self._actor = actor
        self._number = number
        self._pid = pid
        self._outbox = Outbox()
        self._lines = Lines()
        self._stopped = False
        threading.Thread(target=self._read_lines, name="ray-lines", daemon=True).start()
        threading.Thread(target=self._write_lines, name="ray-writes", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._pid

    def send(self, line: bytes, timeout_s: float) -> None:
        self._outbox.put(line, time.monotonic() + timeout_s, timeout_s)

    def read_line(self, timeout_s: float) -> bytes | None:
        return self._lines.read(timeout_s)

    def divert(self, sink: Sink) -> None:
        self._lines.divert(sink)

    def close_input(self) -> None:
        self._outbox.close()

    def wait(self, timeout_s: float) -> int | None:
        """The exit code; None also if nobody can tell."""
        with contextlib.suppress(*LOST):
            code = self._actor.call("wait", self._number, timeout_s, timeout_s=timeout_s + SILENT_S)
            return None if code is None else int(code)
        return None

    def kill(self) -> None:
        self._stopped = True
        self._lines.stop()
        self._outbox.fail(ChannelClosedError("it has been killed"))
        try:
            self._actor.call("kill", self._number, timeout_s=KILL_S)
        except LOST:
            self._actor.end()  # the program's input ends with its actor, and so does it

    def log_tail(self) -> str:
        with contextlib.suppress(*LOST):
            log: bytes = self._actor.call("log", self._number, timeout_s=SILENT_S)
            return log.decode(errors="replace")
        return ""

    def _read_lines(self) -> None:
        actor = self._actor
        try:
            with actor.way.listening(actor.name):
                while not self._stopped:
                    data = actor.call("read", self._number, HOLD_S, timeout_s=SILENT_S)
                    actor.way.heard(actor.name)
                    if data is None or (data and not self._lines.add(data)):
                        break
            self._lines.end()
        except LOST as error:
            self._outbox.fail(error)
            self._lines.end(error)

    def _write_lines(self) -> None:
        try:
            while (piece := self._outbox.take()) is not None:
                arguments = (self._number, piece, WRITE_S)
                refused = self._actor.call("write", *arguments, timeout_s=WRITE_S + SILENT_S)
                if refused is not None:
                    self._outbox.fail(ChannelClosedError(refused or NOT_READ.format(WRITE_S)))
            if not self._stopped:
                self._actor.call("close_input", self._number, timeout_s=SILENT_S)
        except LOST as error:
            self._outbox.fail(error)


class RayPlace:
    """A host of a Ray cluster."""

    def __init__(self, actor: Actor, shipped: Shipped) -> None:
        self.name = actor.name
        self._actor = actor
        self._shipped = shipped
        self._kept: set[str] = set()
        self._machine = ""

    def ready(self, timeout_s: float) -> None:
        """Wait until the actor answers. Raises ``UserError`` when it does not."""
        try:
            about = self._actor.call("about", timeout_s=timeout_s)
        except LOST as error:
            raise lost(error) from error
        self._machine = about["machine"]

    def prepare(self, program: Path, copying: object = None) -> None:
        """Make sure that the host has a program, and can run it. Raises ``UserError``."""
        try:
            self._send(program)
        except LOST as error:
            raise lost(error) from error
        except OSError as error:
            raise UserError(str(error.strerror), f"look at {program}, and at that host") from error

    @property
    def is_cut_off(self) -> bool:
        """Whether the way to all hosts of the cluster is lost."""
        return self._actor.way.lost is not None

    def end(self) -> None:
        """End the actor, and with it what still runs there."""
        self._actor.end()

    def open(self, argv: Sequence[str]) -> RayChannel:
        """Start a program of this machine on the host; it is sent first if it is not there. Raises
        ``OSError`` if it cannot be started, ``UserError`` if it could not be brought there."""
        try:
            sha256 = self._send(Path(argv[0]))
            started = self._actor.call("start", sha256, list(argv), timeout_s=SHIP_S)
        except LOST as error:
            raise lost(error) from error
        number, pid, refused = started
        if refused is not None:
            raise OSError(None, f"{refused} (on {self.name})")
        return RayChannel(self._actor, number, pid)

    def _send(self, path: Path) -> str:
        """Make sure that the host has the program. Returns its SHA-256."""
        program, reference = self._shipped.program(path, self._machine)
        if program.sha256 in self._kept:
            return program.sha256
        if program.machine not in (None, self._machine):
            raise another_machine(f"host {self.name}", self._machine, program)
        refused = self._actor.call(
            "keep", program.sha256, reference, program.loader, timeout_s=SHIP_S
        )
        if refused is not None:
            raise OSError(None, f"{refused} (on {self.name})")
        self._kept.add(program.sha256)
        return program.sha256


def lost(error: ChannelClosedError) -> UserError:
    """The same as a ``UserError``, for a host lost before anything was measured."""
    return UserError(str(error), "`ray status` on the head says which hosts the cluster has")


class Shipped:
    """Programs in Ray's object store, each stored once."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._references: dict[str, Any] = {}

    def program(self, path: Path, machine: str) -> tuple[Program, Any]:
        """A program for a machine of this kind, and the reference to its bytes. Raises
        ``OSError``."""
        program = fitting(read_program(path), machine)
        if program.sha256 not in self._references:
            self._references[program.sha256] = self._ray.put(program.data)
        return program, self._references[program.sha256]
