"""The use of the machine over a window, and both ends' waits for it, from two samples. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from trueload.assemble.observation import HostSample, Observation
from trueload.assemble.server import tree_throttled_share
from trueload.machine.accounting import TreeSample, machine_usage, usage
from trueload.machine.noise import CpuUse, beside, cpu_use, wait_of
from trueload.protocol.fleet import CpuLooks
from trueload.record.schema import CpuSpeed, CpuWait
from trueload.units import NS_PER_S


@dataclass(frozen=True)
class MachineUse:
    """The use of a machine over the window, and how long both ends waited for a CPU.

    ``idle``, ``others`` and ``stolen`` are shares of the time of all CPUs. None for what is not
    known.
    """

    idle: float | None
    others: float | None
    stolen: float | None
    generator: CpuWait | None = None
    server: CpuWait | None = None


@dataclass(frozen=True)
class RunProcesses:
    """What on a machine belongs to the run: its processes, and the CPUs of both ends.

    The descendants of the processes count, too. ``hidden``: the server may be on this machine, and
    was not found.
    """

    pids: Collection[int]
    generator_cpus: Collection[int]
    server_cpus: Collection[int]
    hidden: bool = False


def machine_use(
    first: HostSample, last: HostSample, ours: RunProcesses, *, see_all: bool
) -> MachineUse:
    """Return the use of the machine between two samples.

    If we may see every process (``see_all``), a hidden server is none of the processes here.
    Otherwise it may be among the others, and it is not known whom the ends waited for.
    """
    used = machine_usage(first.machine, last.machine)
    if first.processes is None or last.processes is None:
        return MachineUse(used.idle_share, None, used.stolen_share)
    by_whom = cpu_use(first.processes, last.processes, ours.pids, all_seen=not ours.hidden)
    ends = _waits(first, last, ours, by_whom) if see_all or not ours.hidden else (None, None)
    return MachineUse(used.idle_share, by_whom.others_share, used.stolen_share, *ends)


def cpu_speeds(seen: Observation) -> tuple[CpuSpeed, ...]:
    """The speeds of the CPUs during the window."""
    window = seen.phase(seen.window.id)
    if seen.cpu_speeds is None or window.started_ns is None or window.stopped_ns is None:
        return ()
    after_ns = window.started_ns - seen.cpu_speeds.from_ns
    lasts_ns = window.stopped_ns - window.started_ns
    return tuple(_within(each, after_ns, lasts_ns) for each in seen.cpu_speeds.cpus)


def _within(seen: CpuLooks, after_ns: int, lasts_ns: int) -> CpuSpeed:
    """Cut the samples to those from ``after_ns`` on, for ``lasts_ns``."""
    skipped, end = -(-after_ns // seen.every_ns), -(-(after_ns + lasts_ns) // seen.every_ns)
    return CpuSpeed(
        cpu=seen.cpu,
        from_ns=skipped * seen.every_ns - after_ns,
        every_ns=seen.every_ns,
        work_ns=seen.work_ns[skipped:end],
    )


def _waits(
    first: HostSample, last: HostSample, ours: RunProcesses, used: CpuUse
) -> tuple[CpuWait | None, CpuWait | None]:
    """The times that the generator and the server waited for a CPU."""
    apart = not set(ours.generator_cpus) & set(ours.server_cpus)
    trees = (first.engine, last.engine), (first.server, last.server)
    cpus = ours.generator_cpus, ours.server_cpus
    found: list[CpuWait | None] = []
    for (before, after), theirs, (other, later) in zip(trees, cpus, reversed(trees), strict=True):
        elsewhere_ns = _cpu_ns(other, later) if apart else 0
        if before is None or after is None:
            found.append(None)
            continue
        wait = wait_of(
            before,
            after,
            used,
            elsewhere_ns=elsewhere_ns,
            beside_ns=beside(first.machine, last.machine, theirs, before, after),
            throttled_ns=int((tree_throttled_share(before, after) or 0) * used.wall_ns),
        )
        found.append(CpuWait(share=wait.share, for_others=wait.for_others) if wait else None)
    return found[0], found[1]


def _cpu_ns(before: TreeSample | None, after: TreeSample | None) -> int:
    return int(usage(before, after).cpu_s * NS_PER_S) if before and after else 0
