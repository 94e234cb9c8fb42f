"""How much CPU time went to processes that have nothing to do with a measurement.

How: two looks at /proc, and two lower bounds of what the others used, of which the larger counts:
the CPU time of every process that can be seen and is not ours, and what /proc/stat says user and
system code used, less what ours did. The first misses what came and went unseen; the second misses
what interrupts took, as kernels differ in whether the interrupted process is charged with it. So
the traffic that we cause ourselves is never taken for noise. Kernel threads work for all of us and
are in neither. Must not know trials or records.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trueload.machine.accounting import PROC, TICK_NS, cpu_clock_ns

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
    for name in os.listdir(PROC):
        if name.isdigit():
            found = _process(int(name))
            if found is not None:
                processes[found[0]] = found[1]
    programs_ns, cpus = _programs()
    return NoiseSample(time.monotonic_ns(), processes, programs_ns, cpus)


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
    children: dict[int, list[tuple[int, int]]] = {}
    for identity, used in sample.processes.items():
        children.setdefault(used.parent_pid, []).append(identity)
    found = {identity for identity in sample.processes if identity[0] in roots}
    pending = list(found)
    while pending:
        for child in children.get(pending.pop()[0], ()):
            if child not in found:
                found.add(child)
                pending.append(child)
    return found


def _process(pid: int) -> tuple[tuple[int, int], Used] | None:
    try:
        stat = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    if int(fields[6]) & KERNEL_THREAD:
        return None
    user, system, waited_user, waited_system = (int(field) * TICK_NS for field in fields[11:15])
    used = Used(int(fields[1]), cpu_clock_ns(pid, user + system), waited_user + waited_system)
    return (pid, int(fields[19])), used


def _programs() -> tuple[int, int]:
    """(user, nice and system time of all CPUs in ns, number of CPUs)."""
    total_ns = cpus = 0
    for line in (PROC / "stat").read_text().splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name[3:].isdigit():
            cpus += 1
            total_ns += sum(int(field) for field in fields[:3]) * TICK_NS
    return total_ns, cpus
