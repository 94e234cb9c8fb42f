"""How many files a process may have open here. Must not know who asks.

A sandbox may forbid the system call that tells it (``prlimit``); a file of the kernel
tells it, too.
"""

from __future__ import annotations

import resource
from pathlib import Path

PROC = Path("/proc")
_LINE = "Max open files"


def open_files_limit() -> tuple[int, int]:
    """The soft and the hard limit of this process; ``resource.RLIM_INFINITY`` for none, and where
    nobody tells."""
    try:
        return resource.getrlimit(resource.RLIMIT_NOFILE)
    except OSError:
        return written_limit("self")


def written_limit(pid: int | str) -> tuple[int, int]:
    """The same of any process, as a file of the kernel has it."""
    try:
        lines = (PROC / str(pid) / "limits").read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith(_LINE):
            soft, hard, *_ = line.removeprefix(_LINE).split()
            return _number(soft), _number(hard)
    return resource.RLIM_INFINITY, resource.RLIM_INFINITY


def _number(text: str) -> int:
    return int(text) if text.isdigit() else resource.RLIM_INFINITY
