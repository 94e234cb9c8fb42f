"""Where the host keeps this machine's two CPUs: on cores that share a cache, or apart.

A host moves the CPUs of a virtual machine between cores, even within a run. On cores without a
shared cache, everything that two programs exchange costs more (a request costs a third more), so
such a turn cannot be compared with others. Turns are therefore taken while the CPUs share a cache,
as long as the host allows; those that could not be are reported.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

from process import BenchError
from setting import GENERATOR_CPU, SERVER_CPU
from trueload.engines.engine import Engine, EngineError, ask_core_latency
from trueload.errors import UserError

# A round trip of a cache line. Within the L3 of an AMD EPYC it is 70 to 110 ns, between two of them
# 360 to 400 ns. Measured on a virtual machine with two CPUs that the host moved every minute or so.
NEAR_NS = 200.0
# Limits on the total wait. The shorter one applies until the CPUs were seen to share a cache: if
# they never do, the machine is soon measured as it is.
PATIENCE_S = 600.0
FIRST_PATIENCE_S = 60.0
LOOK_EVERY_S = 0.5
TIMES_MOST = 4
# A look that others disturb takes 50 ms and yields nothing.
LOOKS_MOST = 20

T = TypeVar("T")
Look = Callable[[], float]
"""The round trip now, in ns."""


class Placement:
    """Takes turns while the CPUs share a cache, and counts what it waited and repeated for that."""

    def __init__(self, look: Look, sleep: Callable[[float], None] = time.sleep) -> None:
        self._look = look
        self._sleep = sleep
        self._seen_ns: list[float] = []
        self._waited_s = 0.0
        self._again = 0
        self._apart = 0

    def measured(self, measure: Callable[[], T]) -> T:
        """Measure until the CPUs shared a cache both before and after; return the last result.

        Makes at most `TIMES_MOST` attempts, and fewer once the patience is used up.
        """
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
    """The CPUs' placement could not be found out: every turn counts."""

    why: str

    def measured(self, measure: Callable[[], T]) -> T:
        """Return what `measure` found."""
        return measure()

    def __str__(self) -> str:
        return f"Whether the two CPUs share a cache is not known: {self.why}."


def find_placement() -> Placement | Unknown:
    """Return the placement of the server's and generator's CPUs, if the engine can tell it."""

    def look() -> float:
        try:
            with Engine.start() as engine:
                for _ in range(LOOKS_MOST):
                    latency_ns = ask_core_latency(engine, (SERVER_CPU, GENERATOR_CPU))
                    if latency_ns is not None:
                        return latency_ns
        except (EngineError, UserError) as error:
            raise BenchError(f"where the CPUs are could not be seen: {error}") from error
        raise BenchError("where the CPUs are could not be seen: others take their time")

    try:
        look()
    except BenchError as error:
        return Unknown(str(error))
    return Placement(look)
