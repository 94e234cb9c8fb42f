"""CPU time as it is reported while a trial runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class CpuTime:
    """CPU time of some processes since they began, at a time of the front's clock."""

    at_ns: int
    cpu_ns: int


def cpus_of(times: Sequence[CpuTime]) -> float | None:
    """The mean number of CPUs used between the first and the last time; None if unknown."""
    if not times or times[-1].at_ns <= times[0].at_ns:
        return None
    first, last = times[0], times[-1]
    return max(0.0, (last.cpu_ns - first.cpu_ns) / (last.at_ns - first.at_ns))
