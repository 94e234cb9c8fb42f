"""The engine as a process: it is found, started, kept alive, and exchanges typed messages.

How: the place runs the binary. A thread tells it twice a second that the front is alive (the
``lease``), whatever the front is busy with. Every line that the engine writes becomes a message of
``plan``. Anything else (it dies, is silent, writes junk) is an ``EngineError`` in bounded time.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from typing import Literal, TypeVar

from trueload.closeable import Closeable
from trueload.deadline import looks
from trueload.engines.binary import find_engine
from trueload.errors import ExitCode, UserError, out_of_memory, shortage_hint
from trueload.places import (
    Channel,
    ChannelClosedError,
    CutOffError,
    HostGoneError,
    LineTooLongError,
    LinkLostError,
    Place,
    Sink,
)
from trueload.places.local import LocalPlace
from trueload.protocol import PROTOCOL
from trueload.protocol.fleet import AskDistance, AskSpeeds, Distance, Speeds
from trueload.protocol.plan import (
    Done,
    Error,
    FromEngine,
    Hello,
    Lease,
    Mark,
    Ready,
    Stop,
    ToEngine,
    parse_from_engine,
    to_line,
)
from trueload.protocol.server_report import ServerReport
from trueload.text import signal_text

HELLO_S = 10.0  # for a cold disk and a busy machine; the engine itself needs milliseconds
LEASE_S = 2.0  # the engine ends without a lease for so long
LEASE_EVERY_S = 0.5
SEND_S = 5.0
ANSWER_S = 1.0  # the engine gives up after 50 ms
ENDING_S = 0.5  # from a closed channel to the end of its process
STOP_S = 1.0  # the engine promises to end within this time of `stop`

NO_MEMORY = re.compile(r"memory allocation of [^\n]*failed")  # printed by Rust before it aborts
FailureKind = Literal[
    "start", "engine", "died", "memory", "silent", "junk", "late", "lost", "paused"
]


class EngineError(Exception):
    """The engine failed. ``kind`` is one word, the message one line. ``cut`` is the end of its
    channel if nothing is known of the engine itself."""

    def __init__(self, kind: FailureKind, message: str, cut: CutOffError | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.cut = cut

    def as_user_error(self, doing: str) -> UserError:
        """The error to report if the engine is indispensable; ``doing`` says what it failed at."""
        if self.kind == "memory":
            return out_of_memory(f"{self} {doing}")
        hint = "`trueload doctor` looks at this machine"
        return UserError(str(self), hint, ExitCode.NOTHING_MEASURED)


class Engine(Closeable):
    """A running engine; a context manager that leaves nothing running."""

    def __init__(self, channel: Channel, *, lease: bool = True) -> None:
        self._channel = channel
        self._done = False
        self._over = threading.Event()
        if lease:
            threading.Thread(target=self._keep_alive, name="engine-lease", daemon=True).start()
        try:
            self.hello = self._greet()
        except BaseException:
            self.close()
            raise

    @classmethod
    def start(cls, place: Place | None = None, *, lease: bool = True) -> Engine:
        """Start an engine, locally unless a place is given. Without ``lease`` the caller has to say
        now and then that the front is alive. Raises ``UserError``, ``EngineError``."""
        where = LocalPlace() if place is None else place
        binary = find_engine()
        try:
            channel = where.open([str(binary)])
        except OSError as error:
            raise UserError(
                f"the engine {binary} cannot be started: {error.strerror}",
                shortage_hint(error) or "build it again with `cargo build --release`",
            ) from error
        return cls(channel, lease=lease)

    @property
    def pid(self) -> int:
        return self._channel.pid

    @property
    def asked_every(self) -> int:
        """The number of a fleet's turns after which it is asked for its clock again."""
        return self._channel.asked_every

    def pids_here(self) -> set[int]:
        """Pids of its processes that run on this machine."""
        return {self.pid}

    def allowed_cpus(self) -> tuple[int, ...]:
        """The CPUs of this machine that it may run on; empty once it has ended."""
        try:
            return tuple(sorted(os.sched_getaffinity(self.pid)))
        except OSError:
            return ()

    def send(self, message: ToEngine) -> None:
        """Send one message. Raises ``EngineError``, but not if the engine has ended: it may have
        said why, and ``receive`` returns that first, then raises."""
        try:
            self._channel.send(to_line(message), SEND_S)
        except ChannelClosedError as error:
            if self._channel.wait(ENDING_S) is None:
                raise self._failure(error) from error

    def receive(self, timeout_s: float) -> FromEngine | None:
        """The next message; None when none came in time. Raises ``EngineError``."""
        try:
            line = self._channel.read_line(timeout_s)
        except ChannelClosedError as error:
            raise self._failure(error) from error
        return None if line is None else self.understand(line)

    def divert(self, sink: Sink) -> None:
        """Hand each later line to ``sink`` as it comes, from another thread, instead of keeping it
        for ``receive``. ``understand`` parses such a line."""
        self._channel.divert(sink)

    def understand(self, line: bytes | ChannelClosedError) -> FromEngine:
        """Parse a line. Raises ``EngineError`` for junk, and for the end of the channel."""
        if isinstance(line, ChannelClosedError):
            raise self._failure(line) from line
        try:
            message = parse_from_engine(line)
        except ValueError as error:
            raise EngineError(
                "junk", (f"the engine sent a line that is not a message: {line[:80]!r}")
            ) from (error)
        if isinstance(message, Done):
            self._done = True
        return message

    @property
    def way(self) -> str | None:
        """What its messages go through, as those of other hosts may; None if nothing is known."""
        return self._channel.way

    def suspect(self) -> bool:
        """Note that nothing is heard of it; whether the reason will come as its last line."""
        return self._channel.suspect()

    def stop(self) -> None:
        """Ask it to end. What it still has to say can be received."""
        with contextlib.suppress(EngineError):
            self.send(Stop())

    def close(self) -> None:
        """End it: politely if it has been asked to and is ending, else at once."""
        self._over.set()
        self._channel.close_input()
        if not self._done or self._channel.wait(STOP_S) is None:
            self._channel.kill()

    def _greet(self) -> Hello:
        message = self.receive(HELLO_S)
        if not isinstance(message, Hello):
            received = (
                f"said '{message.type}' first" if message else f"said nothing for {HELLO_S:g} s"
            )
            raise EngineError("start", f"the engine {received}")
        if message.protocol != PROTOCOL:
            raise UserError(
                f"the engine speaks protocol {message.protocol}, this trueload {PROTOCOL}",
                "build the engine again with `cargo build --release`, or unset TRUELOAD_ENGINE",
            )
        return message

    def _failure(self, error: ChannelClosedError) -> EngineError:
        """The error for a closed channel; mostly the process has ended."""
        if isinstance(error, LineTooLongError):
            return EngineError("junk", f"the engine sent a line that cannot be read: {error}")
        if isinstance(error, HostGoneError):
            return EngineError("died", str(error))
        if isinstance(error, LinkLostError):
            return EngineError("lost", str(error), error)
        if isinstance(error, CutOffError):
            ends = f"nothing is known of its engine, which ends by itself within {LEASE_S:g} s"
            return EngineError("lost", f"{error}; {ends}", error)
        code = self._channel.wait(ENDING_S)
        if code is None:
            return EngineError("died", f"the engine still runs but no longer takes part: {error}")
        log = self._channel.log_tail()
        if code == -signal.SIGABRT and NO_MEMORY.search(log):
            return EngineError("memory", "the engine ran out of memory")
        last = last_words(log)
        last_text = f"; its last words: {last}" if last else ""
        return EngineError("died", f"the engine died: {_how(code)}{last_text}")

    def _keep_alive(self) -> None:
        line = to_line(Lease())
        while not self._over.wait(LEASE_EVERY_S):
            # Whoever reads from the channel finds out that it has closed.
            with contextlib.suppress(ChannelClosedError):
                self._channel.send(line, LEASE_EVERY_S)


def last_words(log: str) -> str:
    """The last line of a log that says what happened, without hints of the language's runtime and
    lines of its backtrace. Printable, at most 200 characters."""
    meaningful = [
        line.strip()
        for line in log.splitlines()
        if line.strip() and not line.strip().startswith(("note:", "skipping ", "stack backtrace"))
    ]
    words = meaningful[-1] if meaningful else ""
    return "".join(c if c.isprintable() else " " for c in words)[:200]


def _how(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    if code == -signal.SIGKILL:
        return (
            f"{signal_text(-code)}, perhaps from the kernel, because memory ran out: see `dmesg`,"
            " or memory.events of its cgroup"
        )
    return signal_text(-code)


def await_listening(server: Engine, timeout_s: float) -> str:
    """Wait until a reference server listens, and return its address. Raises ``EngineError``."""
    for left_s in looks(time.monotonic() + timeout_s):
        message = server.receive(left_s)
        if isinstance(message, Ready) and message.listen is not None:
            return message.listen
        if isinstance(message, Error):
            raise EngineError("engine", message.message)
    raise EngineError("silent", f"the reference server was not listening after {timeout_s:g} s")


def seen_since_mark(server: Engine, name: str, timeout_s: float) -> ServerReport:
    """Set a mark called ``name`` on a reference server that keeps a record
    (``ServeHttp(record=True)``). Return what it saw since the mark before, or since it began.
    Raises ``EngineError``."""
    server.send(Mark(id=name))
    for left_s in looks(time.monotonic() + timeout_s):
        message = server.receive(left_s)
        if isinstance(message, ServerReport) and message.id == name:
            return message
        if isinstance(message, Error):
            raise EngineError("engine", message.message)
    raise EngineError("silent", f"the reference server sent no record within {timeout_s:g} s")


Answer = TypeVar("Answer", Distance, Speeds)


def ask_core_latency(
    engine: Engine, cpus: tuple[int, int], note: Callable[[FromEngine], None] = lambda _: None
) -> float | None:
    """The time in ns to hand a cache line over from one CPU to the other and back, None if it
    cannot be measured. Other messages of the engine go to ``note``. Raises ``EngineError``."""
    answer = _ask(engine, AskDistance(cpus=cpus), Distance, note)
    return None if answer is None else answer.ns


def ask_speeds(
    engine: Engine, cpus: tuple[int, ...], note: Callable[[FromEngine], None]
) -> Speeds | None:
    """Return what was seen of the CPUs watched so far, and watch these from now on. None if no
    answer comes in time. Raises ``EngineError``."""
    return _ask(engine, AskSpeeds(cpus=cpus), Speeds, note)


def _ask(
    engine: Engine,
    question: AskDistance | AskSpeeds,
    kind: type[Answer],
    note: Callable[[FromEngine], None],
) -> Answer | None:
    """Send a question and return its answer; None if none comes in time."""
    engine.send(question)
    for left_s in looks(time.monotonic() + ANSWER_S):
        message = engine.receive(left_s)
        if isinstance(message, kind):
            return message
        if message is not None:
            note(message)
    return None
