"""The CPUs of generator and server on this machine: how far apart, and how fast the server's are.

The engine looks (``ask_distance``, ``ask_speeds``). Engines of several hosts do not.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable

from trueload.assemble.observation import Observation
from trueload.engines.engine import Engine, EngineError, ask_distance, ask_speeds
from trueload.engines.fleet import Fleet
from trueload.protocol.plan import AskSpeeds, FromEngine
from trueload.record.distance import distance_of, pair_of

WATCHED_MAX = 16  # the engine takes no more
Note = Callable[[FromEngine], None]


class CpuWatch:
    """Looks at how far the CPUs of generator and server are apart, and how fast the server's are.

    At none where nothing is known of these, or the generator is not on this machine.
    """

    def __init__(self, generator: Iterable[int], server: Iterable[int], is_here: bool) -> None:
        theirs = sorted(server)
        self._pair = pair_of(generator, theirs) if is_here else None
        self._cpus = tuple(theirs[:WATCHED_MAX]) if is_here else ()
        self._apart_ns: float | None = None

    def before(self, engine: Engine | Fleet, note: Note) -> None:
        """How far they are apart while nothing is sent. Raises ``EngineError``."""
        if self._pair is not None and not isinstance(engine, Fleet):
            self._apart_ns = ask_distance(engine, self._pair, note)

    def begin(self, engine: Engine | Fleet) -> None:
        """Look at their speed from now on; the answer tells nothing yet."""
        if self._cpus and not isinstance(engine, Fleet):
            engine.send(AskSpeeds(cpus=self._cpus))

    def end(self, engine: Engine | Fleet, seen: Observation, note: Note) -> None:
        """What was seen of them, and whether they are still as far apart as before the window."""
        if seen.interrupted or isinstance(engine, Fleet):
            return
        before_ns, self._apart_ns = self._apart_ns, None
        with contextlib.suppress(EngineError):  # everything that was needed has been said
            if self._cpus:
                seen.cpu_speeds = ask_speeds(engine, (), note)
            if seen.cpu_speeds is not None:  # an engine that is silent is not asked again
                self.before(engine, note)
        seen.cpu_distance = distance_of(self._pair, before_ns, self._apart_ns)
