"""How much CPU time went to processes that have nothing to do with a measurement.

How: two looks at /proc, and two lower bounds of what the others used, of which the larger counts:
the CPU time of every process that can be seen and is not ours, and what /proc/stat says user and
system code used, less what ours did. The first misses what came and went unseen; the second misses
what interrupts took, as kernels differ in whether the interrupted process is charged with it. So
the traffic that we cause ourselves is never taken for noise. Kernel threads work for all of us and
are in neither. Must not know trials or records.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trueload.machine.accounting import (
    TICK_NS,
    all_pids,
    cpu_clock_ns,
    family,
    machine_sample,
    stat_fields,
)

KERNEL_THREAD = 0x0020_0000  # PF_KTHREAD, include/linux/sched.h


@dataclass(frozen=True)
class Used:
    """CPU time of a process up to now, and of its ended children that it has waited for."""

    parent_pid: int
    cpu_ns: int
    waited_ns: int


@dataclass(frozen=True)
class NoiseSample:
    """Every process by its identity (pid and start time), and all CPUs' user and system time."""

    at_ns: int
    processes: Mapping[tuple[int, int], Used]
    programs_ns: int
    cpus: int


def noise_sample() -> NoiseSample:
    """Looks at every process, some 20 us each, and nothing of their threads."""
    processes = {}
    for pid in all_pids():
        found = _process(pid)
        if found is not None:
            processes[found[0]] = found[1]
    cpus = machine_sample().cpus.values()
    programs_ns = sum(cpu.programs_ns for cpu in cpus)
    return NoiseSample(time.monotonic_ns(), processes, programs_ns, len(cpus))


def others_share(before: NoiseSample, after: NoiseSample, ours: Iterable[int]) -> float:
    """The share (0 to 1) of all CPUs' time that went to processes other than ``ours`` (pids) and
    their descendants. Pure."""
    roots = set(ours)
    mine = _family(before, roots) | _family(after, roots)
    wall_ns = max(1, after.at_ns - before.at_ns) * max(1, after.cpus)
    ours_ns = others_ns = 0
    for identity, used in after.processes.items():
        was = before.processes.get(identity)
        used_ns = used.cpu_ns - (was.cpu_ns if was else 0)
        if identity in mine:
            ours_ns += used_ns + used.waited_ns - (was.waited_ns if was else 0)
        else:
            others_ns += used_ns
    programs_ns = after.programs_ns - before.programs_ns
    return min(1.0, max(0, others_ns, programs_ns - ours_ns) / wall_ns)


def _family(sample: NoiseSample, roots: set[int]) -> set[tuple[int, int]]:
    parents = {pid: used.parent_pid for (pid, _), used in sample.processes.items()}
    pids = family(parents, roots)
    return {identity for identity in sample.processes if identity[0] in pids}


def _process(pid: int) -> tuple[tuple[int, int], Used] | None:
    try:
        fields = stat_fields(pid)
    except OSError:
        return None
    if int(fields[6]) & KERNEL_THREAD:
        return None
    user, system, waited_user, waited_system = (int(field) * TICK_NS for field in fields[11:15])
    used = Used(int(fields[1]), cpu_clock_ns(pid, user + system), waited_user + waited_system)
    return (pid, int(fields[19])), used
