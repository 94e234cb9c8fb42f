"""Properties of a machine that matter to a measurement: facts, no judgement.

How: ``observe`` reads /proc, /sys and the process's own limits, and watches the CPUs for a moment.
What is in files can as well be read from the files of another machine (``describe``). A fact that
cannot be read is None, never a guess.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from trueload.machine.accounting import machine_sample, machine_usage
from trueload.machine.open_files import open_files_limit
from trueload.machine.wakeups import WakeupLatency, measure_wakeups

_CPU = Path("/sys/devices/system/cpu")
_SIBLINGS, _GOVERNOR = "topology/thread_siblings_list", "cpufreq/scaling_governor"
_NET = Path("/proc/sys/net")
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_QUOTA_V1 = Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")
_PERIOD_V1 = Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us")
_PORTS = _NET / "ipv4/ip_local_port_range"
_REUSE = _NET / "ipv4/tcp_tw_reuse"
_BACKLOG = _NET / "core/somaxconn"
_SOCKETS = Path("/proc/net/sockstat")
_MEMORY = Path("/proc/meminfo")
_CLOCK_SOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
FILES = (
    *(_QUOTA, _QUOTA_V1, _PERIOD_V1, _PORTS, _REUSE, _BACKLOG, _SOCKETS, _MEMORY, _CLOCK_SOURCE),
    *(_CPU / "cpu[0-9]*" / name for name in (_SIBLINGS, _GOVERNOR)),
)
"""The files that ``describe`` reads, as patterns of a shell."""
_CLOCK_READS = 20_000

Read = Callable[[Path], str | None]
"""Returns the content of a file of the kernel; None if it cannot be read."""


@dataclass(frozen=True, kw_only=True)
class MachineProbes:
    """What is in no file of a machine, but has to be tried. Shares are 0 to 1, of all CPUs; None
    means that it is not known."""

    open_files_soft: int
    open_files_hard: int
    can_pin: bool | None
    clock_resolution_ns: float | None
    clock_read_ns: float | None
    """Time that one reading of the clock takes."""
    watched_s: float
    busy_share: float | None
    """Share that processes other than this one used."""
    stolen_share: float | None
    wakeups: WakeupLatency | None


@dataclass(frozen=True, kw_only=True)
class Machine(MachineProbes):
    """One machine at one time. None means "not visible here"."""

    cpus: int
    """CPUs that a process may use."""
    cores: int | None
    """Physical cores behind them: two hardware threads of one core count as one."""
    cpu_quota: float | None
    """CPU time that a cgroup allows, as a number of CPUs; None for no limit."""
    governors: tuple[str, ...]
    """The frequency governors of the CPUs, each once; empty when not visible."""
    ports: int | None
    """Local ports that outgoing connections may use."""
    time_wait: int | None
    """Sockets in TIME_WAIT."""
    time_wait_reuse: int | None
    """tcp_tw_reuse: 0 never, 1 always, 2 on loopback."""
    backlog: int | None
    """somaxconn: the most connections that may wait to be accepted."""
    clock_source: str | None
    memory_available_bytes: int | None


def observe(watch_s: float) -> Machine:
    """Read everything of this machine; takes ``watch_s`` seconds, during which the CPUs are
    watched."""
    cpus = sorted(os.sched_getaffinity(0))
    before, own_before_s = machine_sample(), time.process_time()
    wakeups = measure_wakeups(watch_s, cpus)
    used = machine_usage(before, machine_sample(), cpus)
    own_share = (time.process_time() - own_before_s) / (used.wall_s * len(cpus))
    soft, hard = open_files_limit()
    watched = MachineProbes(
        open_files_soft=soft,
        open_files_hard=hard,
        can_pin=_can_pin(cpus),
        clock_resolution_ns=time.clock_getres(time.CLOCK_MONOTONIC) * 1e9,
        clock_read_ns=_time_clock_read(),
        watched_s=used.wall_s,
        busy_share=max(0.0, 1.0 - used.idle_share - used.stolen_share - own_share),
        stolen_share=used.stolen_share,
        wakeups=wakeups,
    )
    return describe(read_text, cpus, watched)


def describe(read: Read, cpus: Sequence[int], watched: MachineProbes) -> Machine:
    """A machine by its files, as ``read`` returns them."""
    return Machine(
        **vars(watched),
        cpus=len(cpus),
        cores=_count_cores(read, cpus),
        cpu_quota=_read_quota(read),
        governors=_read_governors(read, cpus),
        ports=count_ports(read),
        time_wait=_count_time_wait(read),
        time_wait_reuse=_number(read(_REUSE)),
        backlog=_number(read(_BACKLOG)),
        clock_source=read(_CLOCK_SOURCE),
        memory_available_bytes=read_memory("MemAvailable", read),
    )


def read_text(path: Path) -> str | None:
    """Content of a file of the kernel; None if it cannot be read."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None


def read_number(path: Path) -> int | None:
    """Content of a file of the kernel as a whole number; None if it is not one."""
    return _number(read_text(path))


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.lstrip("-").isdigit() else None


def _field(text: str | None, name: str) -> str | None:
    # The value of the first line "NAME : VALUE".
    for line in (text or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None


def read_cpu_model() -> str | None:
    """Model name of the CPUs; None if the kernel has none."""
    return _field(read_text(Path("/proc/cpuinfo")), "model name")


def is_virtual_machine() -> bool:
    """Whether the CPUs say that a hypervisor runs them; False where they do not tell."""
    return "hypervisor" in (_field(read_text(Path("/proc/cpuinfo")), "flags") or "").split()


def read_siblings(cpu: int, read: Read = read_text) -> str | None:
    """Hardware threads of a CPU's physical core, as the kernel lists them."""
    return read(_CPU / f"cpu{cpu}" / _SIBLINGS)


def _count_cores(read: Read, cpus: Sequence[int]) -> int | None:
    siblings = {read_siblings(cpu, read) for cpu in cpus}
    return None if None in siblings else len(siblings)


def _can_pin(cpus: Sequence[int]) -> bool:
    try:
        os.sched_setaffinity(0, {cpus[0]})
    except OSError:
        return False
    os.sched_setaffinity(0, cpus)
    return True


def _read_quota(read: Read) -> float | None:
    # cgroup v2 states "QUOTA PERIOD" or "max PERIOD" (kernel, cgroup-v2.rst), v1 in two files.
    v2 = (read(_QUOTA) or "").split()
    if len(v2) == 2 and v2[0].isdigit():
        return int(v2[0]) / int(v2[1])
    quota, period = _number(read(_QUOTA_V1)), _number(read(_PERIOD_V1))
    return quota / period if quota and period and quota > 0 else None


def _read_governors(read: Read, cpus: Sequence[int]) -> tuple[str, ...]:
    found = {read(_CPU / f"cpu{cpu}" / _GOVERNOR) for cpu in cpus}
    return tuple(sorted(governor for governor in found if governor))


def count_ports(read: Read = read_text) -> int | None:
    """Number of ports for connections from one address; None if the kernel does not say."""
    words = (read(_PORTS) or "").split()
    return int(words[1]) - int(words[0]) + 1 if len(words) == 2 else None


def _count_time_wait(read: Read) -> int | None:
    # "TCP: inuse 5 orphan 0 tw 3 alloc 7 mem 1"
    words = (_field(read(_SOCKETS), "TCP") or "").split()
    return int(words[words.index("tw") + 1]) if "tw" in words else None


def read_memory(name: str, read: Read = read_text) -> int | None:
    """One of the kernel's sizes of memory in bytes, such as ``MemTotal``; None if it has none."""
    words = (_field(read(_MEMORY), name) or "").split()
    return int(words[0]) * 1024 if words else None


def _time_clock_read() -> float:
    # About 50 ns of this is the interpreter's own; a clock without vDSO costs 300 ns and more.
    began_ns = time.monotonic_ns()
    for _ in range(_CLOCK_READS):
        time.monotonic_ns()
    return (time.monotonic_ns() - began_ns) / _CLOCK_READS
