"""Properties of this machine that matter to a measurement: facts, no judgement.

How: ``observe`` reads /proc, /sys and the process's own limits, and watches the CPUs for a moment.
A fact that cannot be read is None, never a guess. Must not know: what is good or bad (``doctor``).
"""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path

from trueload.machine.accounting import machine_sample, machine_usage
from trueload.machine.open_files import open_files_limit
from trueload.machine.wakeups import WakeupLatency, measure_wakeups

_CPU = Path("/sys/devices/system/cpu")
_NET = Path("/proc/sys/net")
_CLOCK_SOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
_CLOCK_READS = 20_000


@dataclass(frozen=True)
class Machine:
    """One machine at one time. Shares are 0 to 1, of all CPUs; None means "not visible here"."""

    kernel: str
    cpu_model: str | None
    cpus: int
    """CPUs that this process may use."""
    cores: int | None
    """Physical cores behind them: two hardware threads of one core count as one."""
    can_pin: bool
    cpu_quota: float | None
    """CPU time that a cgroup allows, as a number of CPUs; None for no limit."""
    governors: tuple[str, ...]
    """The frequency governors of the CPUs, each once; empty when not visible."""
    open_files_soft: int
    open_files_hard: int
    ports: int | None
    """Local ports that outgoing connections may use."""
    time_wait: int | None
    """Sockets in TIME_WAIT."""
    time_wait_reuse: int | None
    """tcp_tw_reuse: 0 never, 1 always, 2 on loopback."""
    backlog: int | None
    """somaxconn: the most connections that may wait to be accepted."""
    clock_source: str | None
    clock_resolution_ns: float
    clock_read_ns: float
    """Time that one reading of the clock takes."""
    memory_available_bytes: int | None
    watched_s: float
    busy_share: float
    """Share that processes other than this one used."""
    stolen_share: float
    wakeups: WakeupLatency


def observe(watch_s: float) -> Machine:
    """Read everything; takes ``watch_s`` seconds, during which the CPUs are watched."""
    cpus = sorted(os.sched_getaffinity(0))
    before, own_before_s = machine_sample(), time.process_time()
    wakeups = measure_wakeups(watch_s, cpus)
    used = machine_usage(before, machine_sample(), cpus)
    own_share = (time.process_time() - own_before_s) / (used.wall_s * len(cpus))
    soft, hard = open_files_limit()
    return Machine(
        kernel=platform.release(),
        cpu_model=read_cpu_model(),
        cpus=len(cpus),
        cores=_count_cores(cpus),
        can_pin=_can_pin(cpus),
        cpu_quota=_read_quota(),
        governors=_read_governors(cpus),
        open_files_soft=soft,
        open_files_hard=hard,
        ports=count_ports(),
        time_wait=_count_time_wait(),
        time_wait_reuse=read_number(_NET / "ipv4/tcp_tw_reuse"),
        backlog=read_number(_NET / "core/somaxconn"),
        clock_source=read_text(_CLOCK_SOURCE),
        clock_resolution_ns=time.clock_getres(time.CLOCK_MONOTONIC) * 1e9,
        clock_read_ns=_time_clock_read(),
        memory_available_bytes=_read_memory_available(),
        watched_s=used.wall_s,
        busy_share=max(0.0, 1.0 - used.idle_share - used.stolen_share - own_share),
        stolen_share=used.stolen_share,
        wakeups=wakeups,
    )


def read_text(path: Path) -> str | None:
    """Content of a file of the kernel; None if it cannot be read."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None


def read_number(path: Path) -> int | None:
    """Content of a file of the kernel as a whole number; None if it is not one."""
    text = read_text(path)
    return int(text) if text is not None and text.lstrip("-").isdigit() else None


def _field(path: Path, name: str) -> str | None:
    # The value of the first line "NAME : VALUE" of the file.
    for line in (read_text(path) or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None


def read_cpu_model() -> str | None:
    """Model name of the CPUs; None if the kernel has none."""
    return _field(Path("/proc/cpuinfo"), "model name")


def is_virtual_machine() -> bool:
    """Whether the CPUs say that a hypervisor runs them; False where they do not tell."""
    return "hypervisor" in (_field(Path("/proc/cpuinfo"), "flags") or "").split()


def read_siblings(cpu: int) -> str | None:
    """Hardware threads of a CPU's physical core, as the kernel lists them."""
    return read_text(_CPU / f"cpu{cpu}/topology/thread_siblings_list")


def _count_cores(cpus: list[int]) -> int | None:
    siblings = set(map(read_siblings, cpus))
    return None if None in siblings else len(siblings)


def _can_pin(cpus: list[int]) -> bool:
    try:
        os.sched_setaffinity(0, {cpus[0]})
    except OSError:
        return False
    os.sched_setaffinity(0, cpus)
    return True


def _read_quota() -> float | None:
    # cgroup v2 states "QUOTA PERIOD" or "max PERIOD" (kernel, cgroup-v2.rst), v1 in two files.
    v2 = (read_text(Path("/sys/fs/cgroup/cpu.max")) or "").split()
    if len(v2) == 2 and v2[0].isdigit():
        return int(v2[0]) / int(v2[1])
    quota = read_number(Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"))
    period = read_number(Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us"))
    return quota / period if quota and period and quota > 0 else None


def _read_governors(cpus: list[int]) -> tuple[str, ...]:
    found = {read_text(_CPU / f"cpu{cpu}/cpufreq/scaling_governor") for cpu in cpus}
    return tuple(sorted(governor for governor in found if governor))


def count_ports() -> int | None:
    """Number of ports for connections from one address; None if the kernel does not say."""
    words = (read_text(_NET / "ipv4/ip_local_port_range") or "").split()
    return int(words[1]) - int(words[0]) + 1 if len(words) == 2 else None


def _count_time_wait() -> int | None:
    # "TCP: inuse 5 orphan 0 tw 3 alloc 7 mem 1"
    words = (_field(Path("/proc/net/sockstat"), "TCP") or "").split()
    return int(words[words.index("tw") + 1]) if "tw" in words else None


def _read_memory_available() -> int | None:
    words = (_field(Path("/proc/meminfo"), "MemAvailable") or "").split()
    return int(words[0]) * 1024 if words else None


def _time_clock_read() -> float:
    # About 50 ns of this is the interpreter's own; a clock without vDSO costs 300 ns and more.
    began_ns = time.monotonic_ns()
    for _ in range(_CLOCK_READS):
        time.monotonic_ns()
    return (time.monotonic_ns() - began_ns) / _CLOCK_READS
