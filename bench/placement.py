"""Where the host keeps this machine's two CPUs: on cores that share a cache, or apart.

A host moves the CPUs of a virtual machine about, within a run too. On cores that share no cache all
that two programs hand over to each other costs more, a request by a third: a turn there and one
here cannot be compared. So turns are taken where they share one, as long as the host lets them;
what could not is told.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

from process import BenchError
from setting import GENERATOR_CPU, SERVER_CPU
from trueload.engines.engine import Engine, EngineError, ask_distance
from trueload.errors import UserError

# A round trip of a cache line. Within the L3 of an AMD EPYC it is 70 to 110 ns, between two of them
# 360 to 400 (on a virtual machine with two CPUs whose host moved them, every minute or so).
NEAR_NS = 200.0
# In all: a machine whose CPUs never share a cache is measured as it is, and soon.
PATIENCE_S = 600.0
FIRST_PATIENCE_S = 60.0
LOOK_EVERY_S = 0.5
TIMES_MOST = 4
# One that others disturb takes 50 ms and comes to nothing.
LOOKS_MOST = 20

T = TypeVar("T")
Look = Callable[[], float]
"""The round trip now, in ns."""


class Placement:
    """Takes turns where the CPUs share a cache, and keeps the books on it."""

    def __init__(self, look: Look, sleep: Callable[[float], None] = time.sleep) -> None:
        self._look = look
        self._sleep = sleep
        self._seen_ns: list[float] = []
        self._waited_s = 0.0
        self._again = 0
        self._apart = 0

    def measured(self, measure: Callable[[], T]) -> T:
        """What `measure` found while the CPUs shared a cache from its beginning to its end; once
        more, a few times at most, when they did not."""
        for taken in range(TIMES_MOST):
            self._again += taken > 0
            self._wait()
            found = measure()
            if self._is_near():
                return found
            if not self._is_patient():
                break
        self._apart += 1
        return found

    def _wait(self) -> None:
        while not self._is_near() and self._is_patient():
            self._sleep(LOOK_EVERY_S)
            self._waited_s += LOOK_EVERY_S

    def _is_patient(self) -> bool:
        seen_near = min(self._seen_ns) <= NEAR_NS
        return self._waited_s < (PATIENCE_S if seen_near else FIRST_PATIENCE_S)

    def _is_near(self) -> bool:
        self._seen_ns.append(self._look())
        return self._seen_ns[-1] <= NEAR_NS

    def __str__(self) -> str:
        near_ns = [ns for ns in self._seen_ns if ns <= NEAR_NS]
        if not near_ns:
            seen = f"a round trip between them {median(self._seen_ns):.0f} ns"
            return f"The two CPUs shared no cache ({seen})."
        all_but = "all turns" if self._apart == 0 else f"all turns but {self._apart}"
        seen = f"a round trip between them {median(near_ns):.0f} ns, else up to"
        return (
            f"The two CPUs shared a cache in {all_but} ({seen} {max(self._seen_ns):.0f}); for that"
            f" {self._waited_s:.0f} s were waited, and {self._again} of them taken once more."
        )


@dataclass(frozen=True)
class Unknown:
    """Nothing is known of it, and why: every turn is as good as another."""

    why: str

    def measured(self, measure: Callable[[], T]) -> T:
        """What `measure` found."""
        return measure()

    def __str__(self) -> str:
        return f"Whether the two CPUs share a cache is not known: {self.why}."


def find_placement() -> Placement | Unknown:
    """How the CPUs of server and generator are placed, if the engine can say it."""

    def look() -> float:
        try:
            with Engine.start() as engine:
                for _ in range(LOOKS_MOST):
                    apart_ns = ask_distance(engine, (SERVER_CPU, GENERATOR_CPU))
                    if apart_ns is not None:
                        return apart_ns
        except (EngineError, UserError) as error:
            raise BenchError(f"where the CPUs are could not be seen: {error}") from error
        raise BenchError("where the CPUs are could not be seen: others take their time")

    try:
        look()
    except BenchError as error:
        return Unknown(str(error))
    return Placement(look)
