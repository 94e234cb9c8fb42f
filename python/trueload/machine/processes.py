"""The processes of this machine: their names, identities and parents, from /proc.

Linux only. What has gone is left out.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

PROC = Path("/proc")


def proc_text(path: str, errors: str = "replace") -> str:
    """The whole of a file below /proc. Raises ``OSError``.

    It takes 9 us where ``Path.read_text`` takes 14, and a sample reads hundreds of files, just when
    a window begins or ends.
    """
    with open(f"{PROC}/{path}", "rb", buffering=0) as file:
        return file.readall().decode(errors=errors)


def table_lines(path: str, errors: str = "replace") -> list[str]:
    """The lines of a table below /proc without its heading; none if it cannot be read."""
    try:
        return proc_text(path, errors).splitlines()[1:]
    except OSError:
        return []


def process_name(pid: int) -> str:
    """The process's name in the kernel, up to 15 characters; empty if the process has gone."""
    try:
        return proc_text(f"{pid}/comm").rstrip("\n")
    except OSError:
        return ""


def identity(pid: int) -> tuple[int, int] | None:
    """(pid, start time) of a process; None if it has gone."""
    try:
        return (pid, int(stat_fields(pid)[19]))
    except (OSError, IndexError, ValueError):
        return None


def stat_fields(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the third (state) on. The second, the process's name, may
    contain spaces and brackets."""
    return proc_text(f"{pid}/stat").rpartition(")")[2].split()


def all_pids() -> list[int]:
    return [int(name) for name in os.listdir(PROC) if name.isdigit()]


def read_parents() -> dict[int, int]:
    parents: dict[int, int] = {}
    for pid in all_pids():
        with contextlib.suppress(OSError, IndexError, ValueError):
            parents[pid] = int(stat_fields(pid)[1])
    return parents


def descendants(root: int) -> set[int]:
    """Pids of the children of `root`, their children, and so on, without `root` itself.

    Orphaned descendants count only if `root` is their sub-reaper.
    """
    return family(read_parents(), {root}) - {root}


def family(parents: Mapping[int, int], roots: set[int]) -> set[int]:
    """The roots, their children, and so on, given the parent of each process. Pure."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    found = set(roots)
    pending = list(roots)
    while pending:
        for pid in children.get(pending.pop(), ()):
            if pid not in found:
                found.add(pid)
                pending.append(pid)
    return found
