"""Checks whether a subject may open as many files as a load has connections. Pure."""

from __future__ import annotations

import resource

from trueload.errors import UserError
from trueload.machine.open_files import open_files_limit
from trueload.units import format_count

SPARE = 100
"""Files of a server beside its connections: libraries, logs, listening sockets."""


def hard_limit() -> int:
    """Return the most open files that a process may be given here."""
    return open_files_limit()[1]


def check_files(connections: int, hard: int) -> None:
    """Raise ``UserError`` if a server could not hold this many connections."""
    needed = connections + SPARE
    if hard != resource.RLIM_INFINITY and needed > hard:
        raise UserError(
            f"{format_count(connections)} connections need {format_count(needed)} open files of"
            f" each server, and the hard limit is {format_count(hard)}",
            f"raise it as root: ulimit -Hn {needed}, or nofile in /etc/security/limits.conf;"
            " or measure fewer with -c",
        )
