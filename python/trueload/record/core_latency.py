"""The core latency between generator and server, and whether a host moved their CPUs.

The host of a virtual machine may move its CPUs. On cores that share no cache everything that two
programs hand over to each other costs more: a request by a third, measured on a machine of two CPUs
(docs/method.md, "Where the CPUs are"). Figures measured before and after cannot be compared, and
nothing else tells them apart. Pure; the engine measures it (``engine.ask_core_latency``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from trueload.units import format_duration

if TYPE_CHECKING:
    from trueload.record.schema import CoreLatency

# Two cores of one cache are 55 to 132 ns apart, mostly 85 to 110, changing from moment to moment.
# Cores of two caches of one processor are 360 to 480 ns apart (an AMD EPYC), the threads of one
# core some 20 ns.
MOVED_FACTOR = 3.0

CoreLatencies: TypeAlias = "Iterable[CoreLatency | None]"


def pair_of(generator: Iterable[int], server: Iterable[int]) -> tuple[int, int] | None:
    """The generator's first CPU, and the server's first other one; None if there is none."""
    mine = min(generator, default=None)
    theirs = min((cpu for cpu in server if cpu != mine), default=None)
    return None if mine is None or theirs is None else (mine, theirs)


def core_latency_of(
    pair: tuple[int, int] | None, before_ns: float | None, after_ns: float | None
) -> CoreLatency | None:
    """What a record has of the two measurements; None if there is no pair of CPUs."""
    from trueload.record.schema import CoreLatency  # imported late: the doctor needs no record

    return pair and CoreLatency(cpus=pair, before_ns=before_ns, after_ns=after_ns)


def have_moved(latencies_ns: Iterable[float]) -> bool:
    """Whether some core latencies (in ns) are more than ``MOVED_FACTOR`` times the smallest."""
    seen_ns = list(latencies_ns)
    return bool(seen_ns) and max(seen_ns) > MOVED_FACTOR * min(seen_ns)


def latencies_of(latencies: CoreLatencies) -> list[float]:
    """All core latencies that were measured, in ns; empty if none was."""
    pairs_ns = ((each.before_ns, each.after_ns) for each in latencies if each is not None)
    return [ns for pair in pairs_ns for ns in pair if ns is not None]


def moved_text(latencies: CoreLatencies) -> str:
    """``the host moved the CPUs of generator and server: …``; empty if it did not."""
    latencies_ns = latencies_of(latencies)
    return f"{MOVED}: {HANDED} {span_text(latencies_ns)}" if have_moved(latencies_ns) else ""


def moved_between_text(base: CoreLatencies, new: CoreLatencies) -> str:
    """The same text for two sides that are compared, each with its own core latencies."""
    base_ns, new_ns = latencies_of(base), latencies_of(new)
    if not base_ns or not new_ns or not have_moved([*base_ns, *new_ns]):
        return ""
    return f"{MOVED}: {HANDED} {span_text(base_ns)} in base, {span_text(new_ns)} in new"


MOVED = "the host moved the CPUs of generator and server"
HANDED = "handing a cache line over and back took"


def span_text(latencies_ns: list[float]) -> str:
    """``88 ns to 428 ns``."""
    low, high = format_duration(min(latencies_ns)), format_duration(max(latencies_ns))
    return low if low == high else f"{low} to {high}"
