"""Questions to one engine for its clock, and what the answers tell."""

from __future__ import annotations

import itertools
import time

from trueload.deadline import seconds_left
from trueload.engines.clock import Comparison, Offset, Reading
from trueload.engines.engine import Engine, EngineError
from trueload.protocol.fleet import AskClock, Clock

COMPARED_AT_START = 8  # questions before anything is agreed: the quickest of them counts
COMPARE_S = 5.0


class Questions:
    """The questions to an engine; ``ask`` and ``answer`` may be called by different threads."""

    def __init__(self) -> None:
        self._comparison = Comparison()
        self._asked_ns: dict[int, int] = {}
        self._ids = itertools.count(1)

    def ask(self, engine: Engine) -> None:
        """Ask for its time, which also says that the front is alive. Raises ``EngineError``."""
        number = next(self._ids)
        self._asked_ns[number] = time.monotonic_ns()
        engine.send(AskClock(id=number))

    def answer(self, clock: Clock, at_ns: int) -> None:
        """Note an answer, received at ``at_ns`` of the front's clock."""
        asked_ns = self._asked_ns.pop(clock.id, None)
        if asked_ns is not None:
            self._comparison.add(Reading(asked_ns, at_ns, clock.at_ns))

    def compare(self, engine: Engine) -> None:
        """Ask an engine that has just started until its clock is known. Raises ``EngineError``."""
        deadline_s = time.monotonic() + COMPARE_S
        while len(self._comparison) < COMPARED_AT_START:
            self.ask(engine)
            answer = engine.receive(seconds_left(deadline_s))
            if not isinstance(answer, Clock):
                received = (
                    f"said '{answer.type}'" if answer else f"said nothing for {COMPARE_S:g} s"
                )
                raise EngineError("start", f"the engine {received} when asked for its clock")
            self.answer(answer, time.monotonic_ns())

    @property
    def offset(self) -> Offset:
        """The offset of its clock from the front's, now."""
        offset = self._comparison.offset(time.monotonic_ns())
        assert offset is not None, "clocks are compared before anything else"
        return offset
