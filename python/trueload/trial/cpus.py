"""The CPUs of generator and server on this machine: the core latency, and the server's speed.

The engine measures both (``ask_core_latency``, ``ask_speeds``). A load from several hosts has
neither.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from trueload.assemble.observation import Observation
from trueload.engines.engine import Engine, EngineError, ask_core_latency, ask_speeds
from trueload.protocol.fleet import AskSpeeds
from trueload.protocol.plan import FromEngine
from trueload.record.core_latency import core_latency_of, pair_of

if TYPE_CHECKING:
    from trueload.engines.fleet import Fleet

WATCHED_MAX = 16  # the engine takes no more
Note = Callable[[FromEngine], None]


class CpuWatch:
    """Watches the core latency between generator and server, and the speed of the server's CPUs.

    Watches nothing where these CPUs are not known, or the generator is not on this machine.
    """

    def __init__(self, generator: Iterable[int], server: Iterable[int], is_here: bool) -> None:
        theirs = sorted(server)
        self._pair = pair_of(generator, theirs) if is_here else None
        self._cpus = tuple(theirs[:WATCHED_MAX]) if is_here else ()
        self._latency_ns: float | None = None

    def before(self, engine: Engine | Fleet, note: Note) -> None:
        """Measure the core latency while nothing is sent. Raises ``EngineError``."""
        if self._pair is not None and isinstance(engine, Engine):
            self._latency_ns = ask_core_latency(engine, self._pair, note)

    def begin(self, engine: Engine | Fleet) -> None:
        """Start watching the speeds; ``end`` reads the result."""
        if self._cpus and isinstance(engine, Engine):
            engine.send(AskSpeeds(cpus=self._cpus))

    def end(self, engine: Engine | Fleet, seen: Observation, note: Note) -> None:
        """Store the speeds that were seen, and the core latency before and after the window."""
        if seen.interrupted or not isinstance(engine, Engine):
            return
        before_ns, self._latency_ns = self._latency_ns, None
        with contextlib.suppress(EngineError):  # the engine has sent all that the record needs
            if self._cpus:
                seen.cpu_speeds = ask_speeds(engine, (), note)
            if seen.cpu_speeds is not None:  # do not ask an engine that gave no answer before
                self.before(engine, note)
        seen.cpu_distance = core_latency_of(self._pair, before_ns, self._latency_ns)
