"""Whether a server that was found on this machine may open a file for each connection.

How: before anything is sent, the limits of the processes that hold the listening socket are read
from /proc. A server may need fewer files (io_uring has direct descriptors), so a low limit is only
reported. When connections are left waiting, the number of open files tells whether the limit was
the cause.
"""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from trueload.machine.listeners import listeners
from trueload.machine.open_files import written_limit
from trueload.request.route import is_loopback
from trueload.trial.spec import TrialSpec
from trueload.units import format_count

MEANINGFUL_CONNECTIONS = 200
"""Below this many connections the default file limit is never reached."""
SPARE = 100
"""Files that a server has open beside its connections."""
RING = "anon_inode:[io_uring]"
KEPT_BACK = 8
"""A server may stop accepting this many files below its limit, as some keep a few in reserve."""


def files_note(spec: TrialSpec) -> str | None:
    """One line about a server whose limit is below the connections of a trial, with what to set.

    None if there is nothing to say.
    """
    connections = spec.load.most
    if connections < MEANINGFUL_CONNECTIONS:
        return None
    limits = read_limits(spec.addresses)
    return make_note(limits, connections, has_ring=any(map(_has_ring, limits)))


def make_note(limits: Mapping[int, int], connections: int, *, has_ring: bool = False) -> str | None:
    """The line about limits, given by process id; the processes share the connections. Pure.

    A process with an io_uring (``has_ring``) may keep connections in its table, and needs no files
    for them.
    """
    needed = connections + SPARE
    if not limits or sum(limits.values()) >= needed:
        return None
    pid = max(limits, key=lambda pid: (limits[pid], -pid))
    many = f" and {len(limits) - 1} more" if len(limits) > 1 else ""
    unless = ", unless it keeps them in io_uring's table" if has_ring else ""
    return (
        f"note: the server (process {pid}{many}) may open {format_count(sum(limits.values()))}"
        f" files, too few for {format_count(connections)} connections{unless}:"
        f" start it after `ulimit -n {needed}`"
    )


def read_limits(addresses: Sequence[str]) -> dict[int, int]:
    """Return the limit of open files of each process that listens on one of these addresses.

    Holds only the processes that can be seen. Empty if one of them has no limit.
    """
    found: dict[int, int] = {}
    for pid in _holders(addresses):
        limit = _soft_limit(pid)
        if limit is None:
            return {}
        found[pid] = limit
    return found


def reached_limit(addresses: Sequence[str]) -> int | None:
    """Return the limit of a listening process that has about as many files open (``KEPT_BACK``).

    None if there is no such process, or none can be seen.
    """
    for pid in _holders(addresses):
        limit, count = _soft_limit(pid), _count_files(pid)
        if limit is not None and count is not None and count + KEPT_BACK >= limit:
            return limit
    return None


def _holders(addresses: Sequence[str]) -> Iterator[int]:
    """Yield the processes that listen on these addresses, if all are IP addresses of loopback."""
    if any(not is_loopback(address) or address.startswith("unix:") for address in addresses):
        return
    for address in addresses:
        host, _, port = address.rpartition(":")
        yield from listeners(host.strip("[]").partition("%")[0], int(port))


def _count_files(pid: int) -> int | None:
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return None


def _has_ring(pid: int) -> bool:
    folder = Path(f"/proc/{pid}/fd")
    with contextlib.suppress(OSError):
        return any(os.readlink(file) == RING for file in folder.iterdir())
    return False


def _soft_limit(pid: int) -> int | None:
    soft, _ = written_limit(pid)
    return None if soft == resource.RLIM_INFINITY else soft
