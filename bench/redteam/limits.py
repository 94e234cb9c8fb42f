"""A limit of CPU time: a control group with a quota, like a container's. Needs root.

Uses version 1 of cgroups where its CPU controller is mounted, else version 2.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from process import BenchError

ROOT = Path("/sys/fs/cgroup")
OLD = ROOT / "cpu"


@contextmanager
def limited(share: float, period_ms: float) -> Iterator[Callable[[int], None]]:
    """Create a group that may use this share of one CPU in each period.

    Yields a function that puts a process into it. Raises `BenchError` with the reason if it cannot.
    """
    period_us, name = round(period_ms * 1000), f"redteam-{os.getpid()}"
    quota_us = round(period_us * share)
    old = (OLD / "cpu.cfs_quota_us").exists() or (OLD / "cpu.stat").exists()
    path = (OLD if old else ROOT) / name
    try:
        if not old:
            (ROOT / "cgroup.subtree_control").write_text("+cpu")
        path.mkdir()
    except OSError as error:
        raise BenchError(f"no control group with a quota can be made: {error}") from None
    try:
        if old:
            (path / "cpu.cfs_period_us").write_text(str(period_us))
            (path / "cpu.cfs_quota_us").write_text(str(quota_us))
        else:
            (path / "cpu.max").write_text(f"{quota_us} {period_us}")
        yield lambda pid: _put(path, pid)
    except OSError as error:
        raise BenchError(f"no control group with a quota can be made: {error}") from None
    finally:
        for pid in (path / "cgroup.procs").read_text().split():
            _put(path.parent, int(pid))
        path.rmdir()


def _put(path: Path, pid: int) -> None:
    (path / "cgroup.procs").write_text(str(pid))
