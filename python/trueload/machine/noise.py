"""What processes that have nothing to do with a measurement did to it.

How: /proc is read before and after. The CPU time of the others has two lower bounds, and the larger
one counts. The first is the CPU time of every visible process that is not ours. The second is the
user and system time in /proc/stat, less that of ours. The first misses processes that came and went
unseen. The second misses interrupts, because kernels differ in whether the interrupted process is
charged with them. So the traffic that we cause ourselves is never taken for noise. Kernel threads
work for all processes and are in neither.

The kernel says how long a thread waited for a CPU, but not for whom. It waited while something else
was on its CPU. So the others' part of the wait is their part of everything that ran there: the
others, ours (the other end of the measurement, unless it has CPUs of its own) and the kernel.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from trueload.machine.accounting import (
    NS_PER_S,
    TICK_NS,
    MachineSample,
    TreeSample,
    cpu_clock_ns,
    machine_sample,
    threads_between,
    tick_doubt_ns,
    usage,
)
from trueload.machine.processes import all_pids, family, stat_fields

KERNEL_THREAD = 0x0020_0000  # PF_KTHREAD, include/linux/sched.h


@dataclass(frozen=True)
class ProcessUse:
    """CPU time of a process so far, and that of its ended children that it has waited for."""

    parent_pid: int
    cpu_ns: int
    waited_ns: int


@dataclass(frozen=True)
class NoiseSample:
    """Every process by its identity (pid and start time), the user and system time of all CPUs, and
    the CPU time of the kernel's own threads."""

    at_ns: int
    processes: Mapping[tuple[int, int], ProcessUse]
    programs_ns: int
    cpus: int
    kernel_ns: int = 0


@dataclass(frozen=True)
class CpuUse:
    """CPU time between two samples, in ns: of our processes, of others, and of the kernel."""

    wall_ns: int
    cpus: int
    ours_ns: int
    others_ns: int
    kernel_ns: int

    @property
    def others_share(self) -> float:
        """The others' share of the time of all CPUs, from 0 to 1."""
        return min(1.0, self.others_ns / (self.wall_ns * self.cpus))


@dataclass(frozen=True)
class Wait:
    """Wait for a CPU of the tree's thread that waited longest, as a share (0 to 1) of the time
    between two samples. ``for_others`` is the part of it that was due to unrelated processes."""

    share: float
    for_others: float


def noise_sample() -> NoiseSample:
    """Sample every process, at about 12 us each, without their threads."""
    processes, kernel_ns = {}, 0
    for pid in all_pids():
        found = _process(pid)
        if isinstance(found, int):
            kernel_ns += found
        elif found is not None:
            processes[found[0]] = found[1]
    cpus = machine_sample().cpus.values()
    programs_ns = sum(cpu.programs_ns for cpu in cpus)
    return NoiseSample(time.monotonic_ns(), processes, programs_ns, len(cpus), kernel_ns)


def cpu_use(
    before: NoiseSample, after: NoiseSample, ours: Iterable[int], *, all_seen: bool = True
) -> CpuUse:
    """CPU time used by ``ours`` (pids) with their descendants, and by others. If not all of ours
    can be seen (``all_seen``), unaccounted time may be ours, and is charged to nobody. Pure."""
    roots = set(ours)
    mine = _family(before, roots) | _family(after, roots)
    wall_ns, cpus = max(1, after.at_ns - before.at_ns), max(1, after.cpus)
    ours_ns = others_ns = 0
    for identity, used in after.processes.items():
        was = before.processes.get(identity)
        used_ns = used.cpu_ns - (was.cpu_ns if was else 0)
        if identity in mine:
            ours_ns += used_ns + used.waited_ns - (was.waited_ns if was else 0)
        else:
            others_ns += used_ns
    programs_ns = after.programs_ns - before.programs_ns - tick_doubt_ns(wall_ns, cpus)
    unseen_ns = programs_ns - ours_ns if all_seen else 0
    kernel_ns = max(0, after.kernel_ns - before.kernel_ns)
    return CpuUse(wall_ns, cpus, max(0, ours_ns), max(0, others_ns, unseen_ns), kernel_ns)


def wait_of(
    before: TreeSample,
    after: TreeSample,
    used: CpuUse,
    *,
    elsewhere_ns: int = 0,
    beside_ns: int | None = None,
    throttled_ns: int = 0,
) -> Wait | None:
    """How long a tree waited for CPUs between two samples; None if the kernel does not say.

    ``elsewhere_ns`` is CPU time of ours on CPUs other than the tree's. ``beside_ns`` is what the
    tree's CPUs did apart from the tree, if known. ``throttled_ns`` is how long a CPU limit stopped
    the tree, which is not due to other processes. Pure.
    """
    longest = max(threads_between(before, after), key=lambda each: each.wait_ns, default=None)
    if longest is None:
        return None
    others_ns = used.others_ns
    rest_ns = used.ours_ns + used.kernel_ns - longest.run_ns - elsewhere_ns
    if beside_ns is not None:
        others_ns = min(others_ns, max(0, beside_ns))
        rest_ns = min(rest_ns, beside_ns - others_ns)
    part = others_ns / (others_ns + max(0, rest_ns)) if others_ns > 0 else 0.0
    waited_ns = max(0, longest.wait_ns - throttled_ns)
    for_others_ns = min(others_ns, waited_ns * part)
    wall_ns = max(1, after.at_ns - before.at_ns)
    return Wait(min(1.0, longest.wait_ns / wall_ns), min(1.0, for_others_ns / wall_ns))


def beside(
    before: MachineSample,
    after: MachineSample,
    cpus: Collection[int],
    first: TreeSample,
    last: TreeSample,
) -> int | None:
    """User and system time of these CPUs, less that of a tree that runs only there, in ns; None if
    the interval was too short to be counted in ticks."""
    named = set(cpus) & before.cpus.keys() & after.cpus.keys()
    if not named or after.at_ns - before.at_ns < NS_PER_S:
        return None
    programs_ns = sum(after.cpus[cpu].programs_ns - before.cpus[cpu].programs_ns for cpu in named)
    return max(0, programs_ns - int(usage(first, last).cpu_s * NS_PER_S))


def _family(sample: NoiseSample, roots: set[int]) -> set[tuple[int, int]]:
    parents = {pid: used.parent_pid for (pid, _), used in sample.processes.items()}
    pids = family(parents, roots)
    return {identity for identity in sample.processes if identity[0] in pids}


def _process(pid: int) -> tuple[tuple[int, int], ProcessUse] | int | None:
    """A process with what it has used; only the CPU time if it is a kernel thread."""
    try:
        fields = stat_fields(pid)
    except OSError:
        return None
    user, system, waited_user, waited_system = (int(field) * TICK_NS for field in fields[11:15])
    cpu_ns = cpu_clock_ns(pid, user + system)
    if int(fields[6]) & KERNEL_THREAD:
        return cpu_ns
    return (pid, int(fields[19])), ProcessUse(int(fields[1]), cpu_ns, waited_user + waited_system)
