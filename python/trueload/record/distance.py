"""How far apart the CPUs of generator and server are, and whether a host moved them.

The host of a virtual machine may move its CPUs. On cores that share no cache everything that two
programs hand over to each other costs more: a request by a third, measured on a machine of two CPUs
(docs/method.md, "Where the CPUs are"). Figures measured before and after cannot be compared, and
nothing else tells them apart. Pure; the engine measures it (``engine.ask_distance``).
"""

from __future__ import annotations

from collections.abc import Iterable

from trueload.record.schema import CpuDistance
from trueload.units import format_duration

# Two cores of one cache are 55 to 132 ns apart, mostly 85 to 110, changing from moment to moment.
# Cores of two caches of one processor are 360 to 480 ns apart (an AMD EPYC), the threads of one
# core some 20 ns.
MOVED_FACTOR = 3.0

Distances = Iterable[CpuDistance | None]


def pair_of(generator: Iterable[int], server: Iterable[int]) -> tuple[int, int] | None:
    """The generator's first CPU, and the server's first other one; None if there is none."""
    mine = min(generator, default=None)
    theirs = min((cpu for cpu in server if cpu != mine), default=None)
    return None if mine is None or theirs is None else (mine, theirs)


def distance_of(
    pair: tuple[int, int] | None, before_ns: float | None, after_ns: float | None
) -> CpuDistance | None:
    """What a record has of the two measurements; None if there is no pair of CPUs."""
    return pair and CpuDistance(cpus=pair, before_ns=before_ns, after_ns=after_ns)


def have_moved(looks_ns: Iterable[float]) -> bool:
    """Whether some distances (in ns) are more than ``MOVED_FACTOR`` times the smallest."""
    seen_ns = list(looks_ns)
    return bool(seen_ns) and max(seen_ns) > MOVED_FACTOR * min(seen_ns)


def looks_of(distances: Distances) -> list[float]:
    """All distances that were measured, in ns; empty if none was."""
    looks = ((each.before_ns, each.after_ns) for each in distances if each is not None)
    return [ns for pair in looks for ns in pair if ns is not None]


def moved_text(distances: Distances) -> str:
    """``the host moved the CPUs of generator and server: …``; empty if it did not."""
    looks_ns = looks_of(distances)
    return f"{MOVED}: {HANDED} {span_text(looks_ns)}" if have_moved(looks_ns) else ""


def moved_between_text(base: Distances, new: Distances) -> str:
    """The same text for two sides that are compared, each with its own distances."""
    base_ns, new_ns = looks_of(base), looks_of(new)
    if not base_ns or not new_ns or not have_moved([*base_ns, *new_ns]):
        return ""
    return f"{MOVED}: {HANDED} {span_text(base_ns)} in base, {span_text(new_ns)} in new"


MOVED = "the host moved the CPUs of generator and server"
HANDED = "handing a cache line over and back took"


def span_text(looks_ns: list[float]) -> str:
    """``88 ns to 428 ns``."""
    low, high = format_duration(min(looks_ns)), format_duration(max(looks_ns))
    return low if low == high else f"{low} to {high}"
