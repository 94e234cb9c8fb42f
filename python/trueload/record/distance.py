"""How far apart the CPUs of generator and server are, and whether a host moved them.

The CPUs of a virtual machine are moved about by its host. On cores that share no cache all that two
programs hand over to each other costs more: a request by a third, measured on a machine of two CPUs
(docs/method.md, "Where the CPUs are"). What is measured here and what is measured there cannot be
compared, and nothing else tells the one from the other. Pure; the engine measures it
(``engine.ask_distance``).
"""

from __future__ import annotations

from collections.abc import Iterable

from trueload.record.schema import CpuDistance
from trueload.units import format_duration

# Two cores of one cache are 55 to 132 ns apart from one moment to the next, mostly 85 to 110, cores
# of two caches of one processor 360 to 480 ns (an AMD EPYC), the threads of one core some 20 ns.
MOVED_FACTOR = 3.0

Distances = Iterable[CpuDistance | None]


def pair_of(generator: Iterable[int], server: Iterable[int]) -> tuple[int, int] | None:
    """The first CPU of the one, and the first other one of the other; None where there is none."""
    mine = min(generator, default=None)
    theirs = min((cpu for cpu in server if cpu != mine), default=None)
    return None if mine is None or theirs is None else (mine, theirs)


def distance_of(
    pair: tuple[int, int] | None, before_ns: float | None, after_ns: float | None
) -> CpuDistance | None:
    """What a record has of two looks; None where there is no pair to look at."""
    return pair and CpuDistance(cpus=pair, before_ns=before_ns, after_ns=after_ns)


def have_moved(looks_ns: Iterable[float]) -> bool:
    """Whether the CPUs were further apart at some looks (each in ns) than at others."""
    seen_ns = list(looks_ns)
    return bool(seen_ns) and max(seen_ns) > MOVED_FACTOR * min(seen_ns)


def looks_of(distances: Distances) -> list[float]:
    """Everything that was seen of them, in ns; empty where nothing was."""
    looks = ((each.before_ns, each.after_ns) for each in distances if each is not None)
    return [ns for pair in looks for ns in pair if ns is not None]


def moved_text(distances: Distances) -> str:
    """``the host moved the CPUs of generator and server: …``; empty where it did not."""
    looks_ns = looks_of(distances)
    return f"{MOVED}: {HANDED} {span_text(looks_ns)}" if have_moved(looks_ns) else ""


def moved_between_text(base: Distances, new: Distances) -> str:
    """The same of two sides that are compared, each by itself."""
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
