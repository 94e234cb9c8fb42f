"""Whether a repetition was measured in the state of the machine that most of its run was.

How: on a virtual machine the host moves CPUs between caches, runs others on them, and slows them
down. Where it does, figures of one program differ by up to a factor of two, so that repetitions of
different states are not compared. A repetition whose CPUs were further apart than usual, or nearer,
or that something else disturbed, is *unlike* the others, and says why. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from trueload.record.core_latency import MOVED_FACTOR, latencies_of, span_text
from trueload.record.schema import Record

# Checks that tell of what comes and goes on a machine. Others of its faults, such as too few CPUs,
# would be there in another repetition, too.
PASSING = ("noise", "cpu-speed", "hiccup")

Apart = Literal["near", "far", "moved", "unknown"]


@dataclass(frozen=True)
class State:
    """What a repetition's record tells of the machine: the core latency between generator and
    server at each look, in ns, and what disturbed it, if anything did."""

    latencies_ns: tuple[float, ...] = ()
    disturbed: str = ""


UNKNOWN = State()


def state_of(record: Record) -> State:
    """That of a repetition."""
    disturbances = (
        f"{check.name}: {check.why}"
        for check in record.checks
        if check.name in PASSING and check.status in ("warn", "fail")
    )
    return State(tuple(latencies_of([record.cpu_distance])), next(disturbances, ""))


@dataclass(frozen=True)
class UsualState:
    """The state that most repetitions of a run had. ``nearest_ns``: the nearest look of all."""

    apart: Apart
    nearest_ns: float

    def unlike(self, state: State) -> str:
        """Why a repetition is not like the usual ones; empty where it is."""
        apart = self.apart_of(state)
        if "unknown" not in (apart, self.apart) and apart != self.apart:
            seen = span_text(list(state.latencies_ns))
            return f"its CPUs were {APART[apart]} ({seen}), those of most {APART[self.apart]}"
        return state.disturbed

    def apart_of(self, state: State) -> Apart:
        """How far apart its CPUs were."""
        if not state.latencies_ns:
            return "unknown"
        limit_ns = self.nearest_ns * MOVED_FACTOR
        if max(state.latencies_ns) <= limit_ns:
            return "near"
        return "far" if min(state.latencies_ns) > limit_ns else "moved"


APART = {"near": "near each other", "far": "far apart", "moved": "moved meanwhile"}


def usual_of(states: Sequence[State]) -> UsualState:
    """The state of most repetitions: near where as many were far."""
    nearest_ns = min((ns for state in states for ns in state.latencies_ns), default=0.0)
    classes = UsualState("unknown", nearest_ns)
    counts = Counter(classes.apart_of(state) for state in states)
    if not counts["near"] and not counts["far"]:
        return classes
    return UsualState("far" if counts["far"] > counts["near"] else "near", nearest_ns)
