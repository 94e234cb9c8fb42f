"""The calls that bring input to the programs on all hosts of a cluster, and their output back.

How: one thread makes them for all hosts, and waits for whichever is answered next. A call brings
what is to be written, and its answer all that the program has written since the one before: so the
answer to a question comes back with the ticks before it. While a program says more than it is
asked, nothing but what is to be sent makes a call for ``PAUSE_S``; before that the actor holds a
call until the program has written something.
"""

from __future__ import annotations

import queue
import threading
import time
from concurrent.futures import Future
from typing import NamedTuple

from trueload.places import ChannelClosedError
from trueload.places.lines import Lines
from trueload.places.ray.actor import Actor
from trueload.places.ray.host import CHUNK_BYTES, Answer
from trueload.places.ray.outbox import Outbox

HOLD_S = 0.5  # how long an actor holds a call while there is no output
PAUSE_S = 0.6  # longer than between two questions of a fleet, which make a call anyway
# A link that is down for a moment must lose no host. TCP sends what it lost again after about 0.3,
# 0.6 and 1.2 s, and before such a call there was no answer for up to half a second.
SILENT_S = 1.8  # without an answer for so long a host is lost,
UNANSWERED_S = 1.3  # if it was called so long ago
LOOK_EVERY_S = 0.1
STALL_S = 0.5  # a front that itself was paused for so long cannot tell who was silent


class Call(NamedTuple):
    """A call under way."""

    at_s: float
    size: int
    """Bytes of input."""
    is_last: bool

    @property
    def writes(self) -> bool:
        """Whether it brings input, or its end."""
        return self.size > 0 or self.is_last


class ProgramPipe:
    """What is said between the front and one program."""

    def __init__(self, actor: Actor, number: int, lines: Lines, outbox: Outbox) -> None:
        self.is_over = False
        self._actor = actor
        self._number = number
        self._lines = lines
        self._outbox = outbox
        self._calls: dict[Future[Answer], Call] = {}
        self._answers: dict[int, Answer] = {}
        """Answers that overtook an earlier one, by turn."""
        self._turn = 1
        self._input_closed = False
        self._heard_s = self._next_s = time.monotonic()
        actor.link.heard(actor.name)

    @property
    def is_unanswered(self) -> bool:
        """Whether the host itself, and not only the program, seems to be silent: then the pipe ends
        in a moment, and says how the host was lost."""
        silent_s = time.monotonic() - self._heard_s
        is_silent = UNANSWERED_S < silent_s < 2 * SILENT_S  # no longer, if Ray holds our thread up
        return not self.is_over and bool(self._calls) and is_silent

    def call(self, done: queue.SimpleQueue[Event]) -> None:
        """Make the call that is due, if one is; its answer is put in ``done``."""
        if self.is_over:
            return
        now_s = time.monotonic()
        piece, is_last = b"", False
        if not self._input_closed and not any(each.writes for each in self._calls.values()):
            piece, is_last = self._outbox.piece()
        call = Call(now_s, len(piece), is_last)
        if not call.writes and (self._calls or now_s < self._next_s or self._lines.is_full()):
            return
        answer = self._actor.ask("exchange", self._number, piece, is_last, HOLD_S)
        self._calls[answer] = call
        answer.add_done_callback(lambda answer: done.put((self, answer)))

    def take(self, answer: Future[Answer]) -> None:
        """Take the answer to a call."""
        call = self._calls.pop(answer)
        if self.is_over:
            return
        try:
            found = answer.result()
        except Exception as error:  # Ray raises its own kinds, and those of its transport
            self._lose(error)
            return
        self._heard_s = time.monotonic()
        self._actor.link.heard(self._actor.name)
        turn, output, taken, refused, _ = found
        if call.writes:
            self._outbox.taken(taken)
            self._input_closed = call.is_last and taken == call.size
        if refused is not None:
            self._outbox.fail(ChannelClosedError(refused))
            self._input_closed = True
        says_more = output.count(b"\n") > call.writes and len(output) < CHUNK_BYTES
        self._next_s = self._heard_s + PAUSE_S * says_more
        self._answers[turn] = found
        while (next_one := self._answers.pop(self._turn, None)) is not None:
            self._turn += 1
            self._add(next_one)

    def look(self, stood_s: float) -> None:
        """Lose a host that does not answer. ``stood_s`` is how long the front itself stood."""
        self._heard_s += stood_s
        called_s = min((call.at_s for call in self._calls.values()), default=float("inf"))
        now_s = time.monotonic()
        if now_s - self._heard_s > SILENT_S and now_s - stood_s - called_s > UNANSWERED_S:
            self._lose(TimeoutError())

    def end(self, error: ChannelClosedError | None = None) -> None:
        """Expect nothing more."""
        if not self.is_over:
            self.is_over = True
            self._actor.link.forget(self._actor.name)
            if error is not None:
                self._outbox.fail(error)
            self._lines.end(error)

    def _add(self, answer: Answer) -> None:
        _, output, _, _, ended = answer
        if not self._lines.add(output) or ended:
            self.end()

    def _lose(self, error: Exception) -> None:
        self.end(self._actor.lose(error, SILENT_S))


Event = tuple[ProgramPipe, "Future[Answer] | None"]
"""A pipe that has something to send, or an answer to one of its calls."""


class ProgramPipes:
    """The pipes to all programs on a cluster."""

    def __init__(self) -> None:
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._open: set[ProgramPipe] = set()
        self._changing = threading.Lock()

    def add(self, pipe: ProgramPipe) -> None:
        """Open a pipe; it goes on until the program or its host ends."""
        with self._changing:
            if not self._open:
                threading.Thread(target=self._go_on, name="ray-pipes", daemon=True).start()
            self._open.add(pipe)
        self.wake(pipe)

    def wake(self, pipe: ProgramPipe) -> None:
        """Make a pipe send what is to be sent."""
        self._events.put((pipe, None))

    def _go_on(self) -> None:
        looked_s = time.monotonic()
        while True:
            try:
                pipe, answer = self._events.get(timeout=LOOK_EVERY_S)
                if answer is not None:
                    pipe.take(answer)
                pipe.call(self._events)
            except queue.Empty:
                pass
            if (passed_s := time.monotonic() - looked_s) >= LOOK_EVERY_S:
                looked_s += passed_s
                if not self._look(passed_s if passed_s > STALL_S else 0.0):
                    return

    def _look(self, stood_s: float) -> bool:
        """Look for silent hosts and for calls that are due; return whether any pipe goes on."""
        for pipe in self._open.copy():
            pipe.look(stood_s)
            pipe.call(self._events)
        with self._changing:
            self._open = {pipe for pipe in self._open if not pipe.is_over}
            return bool(self._open)
