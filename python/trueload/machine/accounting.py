"""CPU time, saturation and memory of process trees, and of the machine.

How: /proc is read before and after a window, and the difference is the usage. Nothing runs in
between, so measuring costs the measured processes nothing. A tree is given by its root pid, by a
function that returns its pids, or by a cgroup. A cgroup also accounts for processes that started
and ended between the two samples.

Linux only. A process that has gone raises no error here:
what is known of its CPU time still counts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from trueload.machine.processes import PROC, descendants, proc_text, process_name, stat_fields
from trueload.machine.throttling import ThrottleCounters, read_throttled

NS_PER_S = 1_000_000_000
TICK_NS = NS_PER_S // os.sysconf("SC_CLK_TCK")
TICKS_OFF = 2  # /proc/stat may be off by one tick per CPU at each end

# The clock id of another process's CPU time: ~pid << 3 | CPUCLOCK_SCHED
# (include/linux/posix-timers.h). It is exact, and includes the time of threads that have ended.
_CPUCLOCK_SCHED = 2


@dataclass(frozen=True)
class ThreadSample:
    """One thread: its time on a CPU and its time waiting for one, both since it started."""

    run_ns: int
    wait_ns: int


@dataclass(frozen=True)
class ProcessSample:
    """One process. `waited_*` is the CPU time of ended children that it has waited for."""

    pid: int
    parent_pid: int
    start_ticks: int
    cpu_ns: int
    user_ns: int
    system_ns: int
    waited_user_ns: int
    waited_system_ns: int
    peak_rss_bytes: int
    threads: Mapping[int, ThreadSample]
    cpus: frozenset[int]
    rss_bytes: int = 0
    name: str = ""

    @property
    def identity(self) -> tuple[int, int]:
        """(pid, start time). The kernel may reuse a pid, but not together with its start time."""
        return (self.pid, self.start_ticks)

    @property
    def waited_ns(self) -> int:
        """CPU time of ended children."""
        return self.waited_user_ns + self.waited_system_ns


@dataclass(frozen=True)
class GroupCpu:
    """CPU time that a cgroup has used since it was created, ended processes included."""

    user_ns: int
    system_ns: int


@dataclass(frozen=True)
class TreeSample:
    """A process tree at one time of the monotonic clock. ``throttled`` has the counters of its
    cgroups' CPU limits so far, by cgroup."""

    at_ns: int
    processes: Mapping[tuple[int, int], ProcessSample]
    group: GroupCpu | None
    throttled: Mapping[str, ThrottleCounters] = field(default_factory=dict)

    @property
    def pids(self) -> frozenset[int]:
        """The processes that were alive."""
        return frozenset(process.pid for process in self.processes.values())

    @property
    def rss_bytes(self) -> int:
        """The resident memory of all processes; shared pages count once per process."""
        return sum(process.rss_bytes for process in self.processes.values())


@dataclass(frozen=True)
class ServerUsage:
    """Resource usage of a tree between two samples: the record's `server` fields.

    `saturation` (0 to 1) is the time that the busiest thread was on a CPU or in the run queue,
    divided by wall time. If larger, it is the tree's CPU time / (wall time x CPUs it may use),
    because a runtime may move its work between threads. None if the kernel keeps no scheduler
    statistics. `peak_rss_bytes` is the sum of VmHWM over the processes alive at the second sample;
    pages shared between them count in each. None if no process was alive. `lifetime_*` counts from
    the start of the tree's processes.
    """

    wall_s: float
    cpu_s: float
    user_s: float
    system_s: float
    saturation: float | None
    peak_rss_bytes: int | None
    threads: int
    lifetime_user_s: float
    lifetime_system_s: float


class Membership(Protocol):
    """A group that knows its processes, such as a cgroup."""

    def pids(self) -> set[int]:
        """Pids of the processes that are alive."""
        ...

    def cpu(self) -> GroupCpu | None:
        """CPU time of the group since it was created; None if the group does not count it."""
        ...


class ProcessTree:
    """A set of processes to sample: a root pid with its descendants, a function, or a cgroup."""

    def __init__(self, members: int | Callable[[], Iterable[int]] | Membership) -> None:
        self._members = members

    def pids(self) -> set[int]:
        """Pids of the tree's processes that are alive now."""
        if isinstance(self._members, int):
            return descendants(self._members) | {self._members}
        if callable(self._members):
            return set(self._members())
        return self._members.pids()

    def sample(self) -> TreeSample:
        """Read the whole tree; processes that vanish meanwhile are left out."""
        members = self._members
        group = None if isinstance(members, int) or callable(members) else members.cpu()
        found = (read_process(pid) for pid in self.pids())
        processes = {process.identity: process for process in found if process is not None}
        throttled = read_throttled(pid for pid, _ in processes)
        return TreeSample(time.monotonic_ns(), processes, group, throttled)


def sample_json(sample: TreeSample) -> dict[str, Any]:
    """A sample as JSON values, as an agent on another host sends it to the front."""
    return {
        "at_ns": sample.at_ns,
        "group": None if sample.group is None else asdict(sample.group),
        "throttled": {name: asdict(each) for name, each in sample.throttled.items()},
        "processes": [
            {
                **asdict(each),
                "cpus": sorted(each.cpus),
                "threads": [[tid, one.run_ns, one.wait_ns] for tid, one in each.threads.items()],
            }
            for each in sample.processes.values()
        ],
    }


def parse_sample(sample: dict[str, Any]) -> TreeSample:
    """The inverse of ``sample_json``. Times are on the host's clock: compare them only with each
    other. Raises ``KeyError``, ``TypeError`` or ``ValueError`` if ``sample`` is not a sample."""
    processes = [
        ProcessSample(
            **{
                **each,
                "cpus": frozenset(each["cpus"]),
                "threads": {tid: ThreadSample(run, wait) for tid, run, wait in each["threads"]},
            }
        )
        for each in sample["processes"]
    ]
    return TreeSample(
        at_ns=sample["at_ns"],
        processes={each.identity: each for each in processes},
        group=None if sample["group"] is None else GroupCpu(**sample["group"]),
        throttled={name: ThrottleCounters(**each) for name, each in sample["throttled"].items()},
    )


def covers(before_ns: int, after_ns: int, window_ns: int) -> bool:
    """Whether samples at these times cover a window, except for a tenth of it or 0.1 s, whichever
    is more. On an overloaded machine the first sample may come too late to describe the window."""
    return window_ns - (after_ns - before_ns) <= max(window_ns // 10, NS_PER_S // 10)


def accounts_for_all(before: TreeSample, after: TreeSample) -> bool:
    """Whether these samples account for all CPU time that the tree used between them. The time of a
    process that has ended is known only from its parent or its cgroup. Pure."""
    if before.group is not None and after.group is not None:
        return True
    alive = after.pids
    ended = [p for identity, p in before.processes.items() if identity not in after.processes]
    return all(process.parent_pid in alive for process in ended)


def usage(before: TreeSample, after: TreeSample) -> ServerUsage:
    """Resource usage of the tree between the samples. Pure."""
    wall_ns = max(after.at_ns - before.at_ns, 1)
    cpu_ns, user_ns, system_ns = _cpu_between(before, after)
    peaks = [process.peak_rss_bytes for process in after.processes.values()]
    lifetime = after.group or GroupCpu(
        user_ns=sum(p.user_ns + p.waited_user_ns for p in after.processes.values()),
        system_ns=sum(p.system_ns + p.waited_system_ns for p in after.processes.values()),
    )
    return ServerUsage(
        wall_s=wall_ns / NS_PER_S,
        cpu_s=cpu_ns / NS_PER_S,
        user_s=user_ns / NS_PER_S,
        system_s=system_ns / NS_PER_S,
        saturation=_saturation(before, after, cpu_ns, wall_ns),
        peak_rss_bytes=sum(peaks) if peaks else None,
        threads=sum(len(process.threads) for process in after.processes.values()),
        lifetime_user_s=lifetime.user_ns / NS_PER_S,
        lifetime_system_s=lifetime.system_ns / NS_PER_S,
    )


def _cpu_between(before: TreeSample, after: TreeSample) -> tuple[int, int, int]:
    """(total, user, system) in ns. The total is exact; its split is the kernel's, by tick."""
    if before.group is not None and after.group is not None:
        user = after.group.user_ns - before.group.user_ns
        system = after.group.system_ns - before.group.system_ns
        return (user + system, user, system)
    own = user = system = waited = 0
    for identity, process in after.processes.items():
        earlier = before.processes.get(identity)
        own += process.cpu_ns - (earlier.cpu_ns if earlier else 0)
        user += process.user_ns - (earlier.user_ns if earlier else 0)
        user += process.waited_user_ns - (earlier.waited_user_ns if earlier else 0)
        system += process.system_ns - (earlier.system_ns if earlier else 0)
        system += process.waited_system_ns - (earlier.waited_system_ns if earlier else 0)
        waited += process.waited_ns - (earlier.waited_ns if earlier else 0)
    # A child that ended in the window adds its whole life's CPU time to its parent's. Subtract what
    # it had used before the window.
    ended = [p for identity, p in before.processes.items() if identity not in after.processes]
    waited = max(0, waited - sum(p.cpu_ns + p.waited_ns for p in ended))
    total = max(0, own) + waited
    ticks = user + system
    user_ns = total * user // ticks if ticks > 0 else 0
    return (total, user_ns, total - user_ns)


def _saturation(before: TreeSample, after: TreeSample, cpu_ns: int, wall_ns: int) -> float | None:
    busy_ns = [each.run_ns + each.wait_ns for each in threads_between(before, after)]
    if not busy_ns:
        return None
    cpus = {cpu for process in after.processes.values() for cpu in process.cpus}
    share = cpu_ns / (wall_ns * len(cpus)) if cpus else 0.0
    return min(1.0, max(0.0, max(busy_ns) / wall_ns, share))


def threads_between(before: TreeSample, after: TreeSample) -> list[ThreadSample]:
    """Run and wait time of each thread between two samples."""
    found = []
    for identity, process in after.processes.items():
        earlier = before.processes.get(identity)
        for tid, thread in process.threads.items():
            was = (earlier.threads.get(tid) if earlier else None) or ThreadSample(0, 0)
            found.append(ThreadSample(thread.run_ns - was.run_ns, thread.wait_ns - was.wait_ns))
    return found


def read_process(pid: int) -> ProcessSample | None:
    """Read one process from /proc; None if it has gone."""
    try:
        fields = stat_fields(pid)
        cpus = frozenset(os.sched_getaffinity(pid))
    except OSError:
        return None
    user_ns, system_ns, waited_user_ns, waited_system_ns = (
        int(field) * TICK_NS for field in fields[11:15]
    )
    rss_bytes, peak_rss_bytes = _memory(pid)
    return ProcessSample(
        pid=pid,
        parent_pid=int(fields[1]),
        start_ticks=int(fields[19]),
        cpu_ns=cpu_clock_ns(pid, user_ns + system_ns),
        user_ns=user_ns,
        system_ns=system_ns,
        waited_user_ns=waited_user_ns,
        waited_system_ns=waited_system_ns,
        peak_rss_bytes=peak_rss_bytes,
        threads=_threads(pid),
        cpus=cpus,
        rss_bytes=rss_bytes,
        name=process_name(pid),
    )


def cpu_clock_ns(pid: int, otherwise_ns: int) -> int:
    """CPU time of a process so far, in ns; ``otherwise_ns`` if its clock cannot be read."""
    try:
        return time.clock_gettime_ns((~pid << 3) | _CPUCLOCK_SCHED)
    except OSError:
        return otherwise_ns


def used_since(sample: TreeSample) -> int:
    """CPU time in ns that the processes of a tree on this machine have used by now, without
    processes that began after the sample. It reads one clock per process, which costs those
    processes nothing."""
    return sum(cpu_clock_ns(each.pid, each.cpu_ns) for each in sample.processes.values())


def _memory(pid: int) -> tuple[int, int]:
    """(resident memory now, its peak) in bytes; 0 for a process that has none, or has gone."""
    # Not ru_maxrss, which inherits the launcher's memory across fork.
    found = {"VmRSS:": 0, "VmHWM:": 0}
    try:
        for line in proc_text(f"{pid}/status").splitlines():
            name, _, rest = line.partition("\t")
            if name in found:
                found[name] = int(rest.split()[0]) * 1024
    except OSError:
        pass
    return found["VmRSS:"], found["VmHWM:"]


def _threads(pid: int) -> dict[int, ThreadSample]:
    """Run and wait times by thread id; empty if the kernel keeps no scheduler statistics."""
    samples = {}
    try:
        tids = os.listdir(f"{PROC}/{pid}/task")
    except OSError:
        return {}
    for tid in tids:
        try:
            run, wait, *_ = proc_text(f"{pid}/task/{tid}/schedstat").split()
        except (OSError, ValueError):
            continue
        samples[int(tid)] = ThreadSample(run_ns=int(run), wait_ns=int(wait))
    return samples


@dataclass(frozen=True)
class CpuTimes:
    """Times of one CPU since boot, in ns; ``programs_ns`` is the time of user and system code."""

    idle_ns: int
    stolen_ns: int
    programs_ns: int


@dataclass(frozen=True)
class MachineSample:
    """Times of every CPU at one time of the monotonic clock."""

    at_ns: int
    cpus: Mapping[int, CpuTimes]


@dataclass(frozen=True)
class MachineUsage:
    """The machine between two samples, as shares (0 to 1) of the time of all its CPUs."""

    wall_s: float
    cpus: int
    idle_share: float
    stolen_share: float


def machine_sample() -> MachineSample:
    """Read the times of every CPU from /proc/stat."""
    text = proc_text("stat")
    return parse_machine_sample(text, time.monotonic_ns())


def parse_machine_sample(text: str, at_ns: int) -> MachineSample:
    """The times of every CPU in the text of /proc/stat, as read at ``at_ns``. Pure."""
    cpus = {}
    for line in text.splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name[3:].isdigit():
            # user nice system idle iowait irq softirq steal; guest times are within user.
            ticks = [int(field) * TICK_NS for field in fields[:8]]
            cpus[int(name[3:])] = CpuTimes(
                idle_ns=ticks[3] + ticks[4], stolen_ns=ticks[7], programs_ns=sum(ticks[:3])
            )
    return MachineSample(at_ns=at_ns, cpus=cpus)


def tick_doubt_ns(wall_ns: int, cpus: int) -> int:
    """Return the error of a difference of counts in /proc/stat, in ns; 0 where it is negligible.

    In a window of 50 ms a single stolen tick would look like a tenth of two CPUs.
    """
    return TICKS_OFF * TICK_NS * cpus if wall_ns < NS_PER_S else 0


def machine_usage(
    before: MachineSample, after: MachineSample, cpus: Iterable[int] | None = None
) -> MachineUsage:
    """Shares over the window, for the CPUs in ``cpus`` or for all. Pure.

    Idle and stolen shares are relative to the wall clock: on some kernels a CPU that stops its tick
    when idle counts no time at all in /proc/stat.
    """
    wall_ns = max(after.at_ns - before.at_ns, 1)
    named = set(after.cpus) & set(before.cpus)
    if cpus is not None:
        named &= set(cpus)
    idle = sum(after.cpus[cpu].idle_ns - before.cpus[cpu].idle_ns for cpu in named)
    doubt_ns = tick_doubt_ns(wall_ns, len(named))
    stolen = sum(after.cpus[cpu].stolen_ns - before.cpus[cpu].stolen_ns for cpu in named) - doubt_ns
    total = wall_ns * max(len(named), 1)
    return MachineUsage(
        wall_s=wall_ns / NS_PER_S,
        cpus=len(named),
        idle_share=min(1.0, max(0.0, idle / total)),
        stolen_share=min(1.0, max(0.0, stolen / total)),
    )
