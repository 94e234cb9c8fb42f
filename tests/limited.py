"""A CPU limit of the kernel for what a test puts into it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def limited_group() -> Iterator[Path]:
    """A real group whose processes may use a tenth of a CPU; skips if none can be created."""
    name = f"trueload-test-{os.getpid()}"
    path, limit = Path("/sys/fs/cgroup/cpu") / name, ("cpu.cfs_quota_us", "1000")
    if not path.parent.is_dir():
        path, limit = Path("/sys/fs/cgroup") / name, ("cpu.max", "1000 10000")
    try:
        path.mkdir()
    except OSError:
        pytest.skip("no cgroup can be made here")
    try:
        if limit[0] == "cpu.cfs_quota_us":
            (path / "cpu.cfs_period_us").write_text("10000")
        (path / limit[0]).write_text(limit[1])
    except OSError:
        path.rmdir()
        pytest.skip("no CPU limit can be set here")
    try:
        yield path
    finally:
        path.rmdir()
