"""An aggregator and the engines below it, each with a channel of its own.

How: the aggregator is an engine process, on this machine or on a host of a cluster. It starts the
others' processes, or what reaches them. It merges their ticks, compares their clocks and notices
who is silent. Every other line it relays, so an engine below it is spoken to like any other. One
thread reads from it: lines of engines go to their channels, and what is combined goes to the sink
of whoever uses all of them. Must not know phases.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from trueload.closing import Closing
from trueload.engines.clock import Offset
from trueload.engines.engine import Engine, EngineError, last_words
from trueload.engines.questions import COMPARE_S, Questions
from trueload.places import BranchAt, Channel, ChannelClosedError, Sink
from trueload.places.lines import CLOSED, Lines
from trueload.places.local import LocalPlace
from trueload.protocol.aggregate import (
    Aggregate,
    Clocks,
    CloseChild,
    Ended,
    OpenChild,
    Relay,
    Relayed,
)
from trueload.protocol.plan import PROTOCOL, Clock, Done, FromEngine

FAREWELL_S = 2.5  # an aggregator gives its engines 1.5 s to end, then kills them
LEASE_NS = 2_000_000_000  # as that of every engine
NEAR_LEASE_NS = 10_000_000_000
"""On this machine the front's death closes an aggregator's input at once, and a front that starts
thousands of hosts may be busy for seconds."""
ENDED_S = 1.0  # from the end of an engine's output to the report of its exit code


@dataclass(frozen=True, slots=True)
class Combined:
    """What an aggregator says of the engines below it, or how it failed."""

    branch: Branch
    message: FromEngine | EngineError


class Branch(Closing):
    """A running aggregator; a context manager that leaves nothing running."""

    def __init__(self, at: BranchAt, sink: Callable[[Combined], None]) -> None:
        """Start it; ``sink`` is called from another thread. Raises ``UserError``,
        ``EngineError``."""
        self.number = at.number
        self.received_s = time.monotonic()
        self._sink = sink
        self._channels: dict[int, BranchChannel] = {}
        self._clocks: dict[int, tuple[Offset, int]] = {}
        self._changed = threading.Condition()
        self._ended = threading.Event()
        self._questions = Questions()
        is_here = isinstance(at.place, LocalPlace)
        try:
            self._engine = Engine.start(at.place, lease=False)
        except EngineError as error:
            where = "this machine" if is_here else at.place.name
            raise EngineError(error.kind, f"an aggregator on {where}: {error}") from error
        try:
            lease_ns = NEAR_LEASE_NS if is_here else LEASE_NS
            self._engine.send(Aggregate(protocol=PROTOCOL, lease_ns=lease_ns))
            self._questions.compare(self._engine)
        except BaseException:
            self._engine.close()
            raise
        self._engine.divert(self._receive)

    def open(self, child: int, argv: Sequence[str]) -> Channel:
        """Start a process below it, under a number of its own. Raises ``OSError``."""
        channel = self._channels[child] = BranchChannel(self, child)
        self._send(OpenChild(child=child, argv=tuple(argv)))
        return channel

    def relay(self, children: Sequence[int], line: bytes) -> None:
        """Send one line to several engines. Raises ``ChannelClosedError``."""
        self._send(Relay(children=tuple(children), line=line.decode().removesuffix("\n")))

    def end(self, child: int, *, kill: bool) -> None:
        """Close an engine's input, or kill its process."""
        self._send(CloseChild(child=child, kill=kill))

    def ask_clock(self) -> None:
        """Ask for its time, which also says that the front is alive. Raises ``EngineError``."""
        self._questions.ask(self._engine)

    def await_clock(self, child: int) -> None:
        """Wait until an engine's clock is known. Raises ``EngineError``."""
        with self._changed:
            if not self._changed.wait_for(lambda: child in self._clocks, COMPARE_S):
                what = f"the engine said nothing for {COMPARE_S:g} s when asked for its clock"
                raise EngineError("start", what)

    def offset(self, child: int) -> Offset:
        """The offset of an engine's clock from the front's, now."""
        theirs, known_ns = self._clocks[child]
        return theirs.aged(time.monotonic_ns() - known_ns).after(self.own_offset)

    @property
    def own_offset(self) -> Offset:
        """The offset of its own clock from the front's, now."""
        return self._questions.offset

    def close(self) -> None:
        """End it, with all that it has started."""
        self._engine.stop()
        self._ended.wait(FAREWELL_S)
        self._engine.close()

    def _send(self, message: Aggregate | OpenChild | Relay | CloseChild) -> None:
        try:
            self._engine.send(message)
        except EngineError as error:
            raise ChannelClosedError(f"its aggregator has failed: {error}") from error

    def _receive(self, line: bytes | ChannelClosedError) -> None:
        at_ns = time.monotonic_ns()
        self.received_s = time.monotonic()
        try:
            message = self._engine.understand(line)
        except EngineError as error:
            self._ended.set()
            self._sink(Combined(self, error))
            for channel in self._channels.values():
                channel.handle_end(None, "")
            return
        match message:
            case Relayed(child=child, line=text):
                if message.summed:
                    self._sink(Combined(self, message))
                self._channels[child].lines.add(text.encode() + b"\n")
            case Ended(child=child, code=code, log=log):
                self._channels[child].handle_end(code, log)
            case Clock():
                self._questions.answer(message, at_ns)
            case Clocks():
                self._note(message, at_ns)
            case Done():
                self._ended.set()
                self._sink(Combined(self, message))
            case _:
                self._sink(Combined(self, message))

    def _note(self, message: Clocks, at_ns: int) -> None:
        with self._changed:
            for each in message.clocks:
                self._clocks[each.child] = Offset(each.ahead_ns, each.bound_ns), at_ns
            self._changed.notify_all()


class BranchChannel(Channel):
    """The channel to one process below an aggregator."""

    def __init__(self, branch: Branch, child: int) -> None:
        self._branch = branch
        self._child = child
        self._code: int | None = None
        self._log = ""
        self._ended = threading.Event()
        self.lines = Lines()

    @property
    def pid(self) -> int:
        """Return 0: it is a child of the aggregator."""
        return 0

    def send(self, line: bytes, timeout_s: float) -> None:
        if self._ended.is_set():
            raise ChannelClosedError("its input is closed")
        self._branch.relay([self._child], line)

    def read_line(self, timeout_s: float) -> bytes | None:
        return self.lines.read(timeout_s)

    def divert(self, sink: Sink) -> None:
        self.lines.divert(sink)

    def close_input(self) -> None:
        self._end(kill=False)

    def wait(self, timeout_s: float) -> int | None:
        self._ended.wait(timeout_s)
        return self._code

    def kill(self) -> None:
        self.lines.stop()
        self._end(kill=True)
        self._ended.wait(ENDED_S)

    def log_tail(self) -> str:
        return self._log

    def handle_end(self, code: int | None, log: str) -> None:
        """Note that the process has ended, or its output has."""
        if not self._ended.is_set():
            self._code, self._log = code, log
            self._ended.set()
            # Without a code its last words may tell that it was never started.
            why = (code is None and last_words(log)) or CLOSED
            self.lines.end(ChannelClosedError(why))

    def _end(self, *, kill: bool) -> None:
        if not self._ended.is_set():
            with contextlib.suppress(ChannelClosedError):  # it ends with its aggregator
                self._branch.end(self._child, kill=kill)


def start_branches(
    wanted: Iterable[BranchAt], sink: Callable[[Combined], None], starters: Executor
) -> list[Branch]:
    """Start aggregators, all of them or none. Raises ``UserError``, ``EngineError``."""
    todo = [starters.submit(Branch, at, sink) for at in wanted]
    errors = [error for error in (each.exception() for each in todo) if error is not None]
    started = [each.result() for each in todo if each.exception() is None]
    if errors:
        for branch in started:
            branch.close()
        raise errors[0]
    return started
