"""The open-file limits of a process.

A sandbox may forbid the system call that tells them (``prlimit``); /proc/PID/limits then does.
"""

from __future__ import annotations

import resource
from pathlib import Path

PROC = Path("/proc")
_LINE = "Max open files"


def open_files_limit() -> tuple[int, int]:
    """(soft, hard) limit of this process; ``resource.RLIM_INFINITY`` if there is none, or if it
    cannot be read."""
    try:
        return resource.getrlimit(resource.RLIMIT_NOFILE)
    except OSError:
        return written_limit("self")


def written_limit(pid: int | str) -> tuple[int, int]:
    """(soft, hard) limit of any process, read from /proc/PID/limits; infinite as above."""
    try:
        text = (PROC / str(pid) / "limits").read_text()
    except OSError:
        text = ""
    return parse_limit(text)


def parse_limit(text: str) -> tuple[int, int]:
    """(soft, hard) limit in the text of /proc/PID/limits; infinite as above. Pure."""
    for line in text.splitlines():
        if line.startswith(_LINE):
            soft, hard, *_ = line.removeprefix(_LINE).split()
            return _number(soft), _number(hard)
    return resource.RLIM_INFINITY, resource.RLIM_INFINITY


def _number(text: str) -> int:
    return int(text) if text.isdigit() else resource.RLIM_INFINITY
