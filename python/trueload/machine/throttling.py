"""How long a CPU limit kept processes from running, as their cgroups count it.

How: once the quota of a cgroup, or of any cgroup above it, is used up, its processes stop for the
rest of the period. The kernel counts those periods and their time in ``cpu.stat``, in versions 1
and 2 of cgroups. In a container the topmost visible cgroup is the container's, with its limit.
Facts, no judgement.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True)
class ThrottleCounters:
    """Counters of a cgroup since it was created, in ns, summed over the CPUs. ``stopped_ns``: its
    limit kept processes from running; ``used_ns``: they ran, None if that is not counted."""

    stopped_ns: int
    used_ns: int | None


@dataclass(frozen=True)
class _Mount:
    """A hierarchy of cgroups that counts CPU time: where it is mounted, and which cgroup is its
    root. ``controllers`` are its controllers as in /proc/PID/cgroup; empty for version 2."""

    at: Path
    root: str
    controllers: str


def read_throttled(pids: Iterable[int], proc: Path = PROC) -> dict[str, ThrottleCounters]:
    """Counters of every cgroup that contains these processes, and of its ancestors, by folder.
    Empty if no cgroup counts."""
    folders = {folder for pid in pids for folder in _folders(pid, proc)}
    found = ((folder, _read(folder)) for folder in sorted(folders))
    return {str(folder): counted for folder, counted in found if counted is not None}


def throttled_share(
    before: Mapping[str, ThrottleCounters],
    after: Mapping[str, ThrottleCounters],
    wall_ns: int,
    cpu_ns: int,
) -> float | None:
    """Share of the time (0 to 1) for which the most costly limit kept processes from running. None
    if no cgroup was there both times. ``cpu_ns`` is the processes' CPU time, for a cgroup that does
    not count it. Pure.

    The kernel sums over CPUs. If n busy CPUs are all stopped for a share t of the time, they stand
    still for n·t of it and run for n·(1 - t). So t is the first divided by the sum of both.
    """
    shares = []
    for name in after.keys() & before.keys():
        first, last = before[name], after[name]
        stopped_ns = max(0, last.stopped_ns - first.stopped_ns)
        if first.used_ns is None or last.used_ns is None:
            ran_ns = cpu_ns
        else:
            ran_ns = last.used_ns - first.used_ns
        shares.append(stopped_ns / max(1, wall_ns, stopped_ns + ran_ns))
    return max(shares, default=None)


def _folders(pid: int, proc: Path) -> Iterator[Path]:
    """Yield the cgroups of a process, from its own up to the topmost visible one."""
    try:
        lines = (proc / str(pid) / "cgroup").read_text(errors="replace").splitlines()
    except OSError:
        return
    own = {line.split(":", 2)[1]: line.split(":", 2)[2] for line in lines if line.count(":") >= 2}
    for mount in _mounts(proc):
        path = own.get(mount.controllers)
        if path is None or ".." in path.split("/"):  # it is in another cgroup namespace
            continue
        inside = os.path.relpath(path, mount.root)
        if inside.startswith(".."):
            continue
        folder = mount.at / inside
        yield folder
        yield from folder.parents[: len(Path(inside).parts)]


@functools.lru_cache(maxsize=4)
def _mounts(proc: Path) -> tuple[_Mount, ...]:
    """Mounts of cgroup version 2, and of version 1's ``cpu`` controller."""
    try:
        lines = (proc / "self" / "mountinfo").read_text(errors="replace").splitlines()
    except OSError:
        return ()
    return tuple(found for found in map(_mount, lines) if found is not None)


def _mount(line: str) -> _Mount | None:
    fields, _, tail = line.partition(" - ")
    root, at = fields.split()[3:5]
    kind, _, options = tail.split()[:3]
    if kind == "cgroup2":
        return _Mount(Path(at), root, "")
    controllers = [each for each in options.split(",") if each in ("cpu", "cpuacct")]
    if kind == "cgroup" and "cpu" in controllers:
        return _Mount(Path(at), root, ",".join(controllers))
    return None


def _read(folder: Path) -> ThrottleCounters | None:
    """Counters of one cgroup; None if it has none, like the topmost one of a machine."""
    stat = _numbers(folder / "cpu.stat")
    if "throttled_usec" in stat:
        return ThrottleCounters(stat["throttled_usec"] * 1000, stat["usage_usec"] * 1000)
    if "throttled_time" not in stat:
        return None
    # Version 1 counts use in another file, in the same folder if both controllers share a mount.
    return ThrottleCounters(stat["throttled_time"], _numbers(folder / "cpuacct.usage").get(""))


def _numbers(path: Path) -> dict[str, int]:
    """Read the lines ``name number`` of a file; a number alone is named ``""``."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return {}
    pairs = (("", *line.split())[-2:] for line in lines)
    return {name: int(number) for name, number in pairs if number.isdigit()}
