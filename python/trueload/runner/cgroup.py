"""A control group for a subject: its members, its CPU time, and a way to kill all at once.

How: version 2 of the interface, even without controllers. A process cannot leave its group by
setsid or a double fork, `cpu.stat` includes ended processes, and `cgroup.kill` is atomic. Where no
group can be made (in a container, or without the right to) there is none, and the supervisor's
descendants serve instead. Groups are named after the process that made them, so the next run
empties and removes one that was left behind by `kill -9`.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import subprocess
import time
from pathlib import Path

from trueload.machine.accounting import GroupCpu
from trueload.machine.processes import identity

PREFIX = "trueload-"
_numbers = itertools.count(1)


class Group:
    """One group. `pids` and `cpu` make it a ``accounting.Membership``."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def pids(self) -> set[int]:
        """Return the processes that are in the group now."""
        try:
            return {int(line) for line in (self.path / "cgroup.procs").read_text().split()}
        except OSError:
            return set()

    def cpu(self) -> GroupCpu | None:
        """Return the CPU time since the group was made; None if the kernel does not count it."""
        try:
            text = (self.path / "cpu.stat").read_text()
        except OSError:
            return None
        values = dict(line.split()[:2] for line in text.splitlines())
        if "user_usec" not in values or "system_usec" not in values:
            return None
        return GroupCpu(int(values["user_usec"]) * 1000, int(values["system_usec"]) * 1000)

    def kill(self) -> None:
        """Send SIGKILL to every process in the group, if the kernel can (5.14)."""
        with contextlib.suppress(OSError):
            (self.path / "cgroup.kill").write_text("1")

    def remove(self) -> None:
        """Kill the group's processes and remove it; if that fails, the next run removes it."""
        for _ in range(100):
            try:
                self.path.rmdir()
                return
            except FileNotFoundError:
                return
            except OSError:
                self.kill()
                time.sleep(0.01)


def make_group() -> Group | None:
    parent = _parent()
    if parent is None:
        return None
    path = parent / f"{owner_prefix()}{next(_numbers)}"
    try:
        path.mkdir()
    except OSError:
        return None
    return Group(path)


def sweep() -> None:
    """End what a killed run left in its groups, and remove the groups."""
    parent = _parent()
    for path in parent.glob(f"{PREFIX}*") if parent else ():
        if is_left_behind(path.name):
            Group(path).remove()


def owner_prefix() -> str:
    """Return the start of the names of what belongs to this process.

    It has the process id and, as another process may get the same id later, its start time.
    """
    pid, start_ticks = identity(os.getpid()) or (os.getpid(), None)
    return f"{PREFIX}{pid}-{start_ticks}-"


def is_left_behind(name: str) -> bool:
    """Whether the process that gave this name has ended."""
    pid, _, rest = name.removeprefix(PREFIX).partition("-")
    if not pid.isdigit():
        return False
    found = identity(int(pid))
    return found is None or str(found[1]) != rest.partition("-")[0]


@functools.cache
def _parent() -> Path | None:
    """Return our own group in the v2 hierarchy, if groups can be made and entered there."""
    own = _own_path()
    mounts = Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
    for line in mounts:
        fields, _, kind = line.partition(" - ")
        root, mount_point = fields.split()[3:5]
        if own is None or kind.split()[0] != "cgroup2":
            continue
        parent = Path(mount_point) / os.path.relpath(own, root)
        if _can_be_used(parent):
            return parent
    return None


def _own_path() -> str | None:
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        if line.startswith("0::"):
            return line[3:]
    return None


def _can_be_used(parent: Path) -> bool:
    probe = parent / f"{owner_prefix()}0"
    try:
        probe.mkdir()
    except OSError:
        return False
    try:
        # A child moves itself, as the supervisor's will; the shell is only a means.
        entered = subprocess.run(
            ["sh", "-c", 'echo 0 > "$0/cgroup.procs"', str(probe)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=5,
            check=False,
        )
        return entered.returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
    finally:
        Group(probe).remove()
