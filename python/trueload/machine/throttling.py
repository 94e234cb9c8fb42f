"""How long a CPU limit kept processes from running, as their cgroups count it.

How: a quota of a cgroup, or of any cgroup above it, stops its processes for the rest of a period
once it is used up. The kernel counts those periods and their time in ``cpu.stat``, in version 1 of
the interface as in version 2. In a container the topmost group that can be seen is the container's,
with its limit. Facts, no judgement. Must not know whose processes they are.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True)
class Throttled:
    """What a cgroup has seen since it was made, in ns, summed over the CPUs: ``stopped_ns``, while
    its limit kept processes from running, and ``used_ns``, while they ran; None if not counted."""

    stopped_ns: int
    used_ns: int | None


@dataclass(frozen=True)
class _Mount:
    """A hierarchy that counts CPU time: where it is mounted, and which of its groups is there.
    ``controllers`` are those that it is called by in /proc/PID/cgroup; empty for version 2."""

    at: Path
    root: str
    controllers: str


def read_throttled(pids: Iterable[int], proc: Path = PROC) -> dict[str, Throttled]:
    """The counters of every cgroup that these processes are in, and of those above, by folder.
    Empty where no group counts."""
    folders = {folder for pid in pids for folder in _folders(pid, proc)}
    found = ((folder, _read(folder)) for folder in sorted(folders))
    return {str(folder): counted for folder, counted in found if counted is not None}


def throttled_share(
    before: Mapping[str, Throttled], after: Mapping[str, Throttled], wall_ns: int, cpu_ns: int
) -> float | None:
    """For which share of the time (0 to 1) the limit that cost most kept processes from running;
    None where no group was there both times. ``cpu_ns`` is what the processes used, for a group
    that does not count that. Pure.

    The kernel sums over CPUs. n busy CPUs that are all stopped for a share t of the time stand
    still for n·t of it and run for n·(1 - t), so that t is the one divided by the sum of both.
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
    """The groups of a process from its own up to the topmost that can be seen."""
    try:
        lines = (proc / str(pid) / "cgroup").read_text(errors="replace").splitlines()
    except OSError:
        return
    own = {line.split(":", 2)[1]: line.split(":", 2)[2] for line in lines if line.count(":") >= 2}
    for mount in _mounts(proc):
        path = own.get(mount.controllers)
        if path is None or ".." in path.split("/"):  # of a namespace that is not ours
            continue
        inside = os.path.relpath(path, mount.root)
        if inside.startswith(".."):
            continue
        folder = mount.at / inside
        yield folder
        yield from folder.parents[: len(Path(inside).parts)]


@functools.lru_cache(maxsize=4)
def _mounts(proc: Path) -> tuple[_Mount, ...]:
    """The mounts of version 2, and of version 1's ``cpu`` controller."""
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


def _read(folder: Path) -> Throttled | None:
    """The counters of one group; None where it has none, as the topmost of a machine."""
    stat = _numbers(folder / "cpu.stat")
    if "throttled_usec" in stat:
        return Throttled(stat["throttled_usec"] * 1000, stat["usage_usec"] * 1000)
    if "throttled_time" not in stat:
        return None
    # Version 1 counts use elsewhere, in the same folder if the two controllers are mounted as one.
    return Throttled(stat["throttled_time"], _numbers(folder / "cpuacct.usage").get(""))


def _numbers(path: Path) -> dict[str, int]:
    """The lines ``name number`` of a file; a number alone is named ``""``."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return {}
    pairs = (("", *line.split())[-2:] for line in lines)
    return {name: int(number) for name, number in pairs if number.isdigit()}
