"""Whether a server that was found on this machine may open a file for each connection.

How: the limits of the processes that hold the listening socket are read from /proc before anything
is sent. A server may do with fewer (io_uring's direct descriptors), so that it is only said; when
connections are left waiting, the files that it has open tell whether that was why.

Must not know how a trial is run.
"""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from trueload.machine.accounting import listeners
from trueload.machine.open_files import written_limit
from trueload.trial.spec import TrialSpec
from trueload.units import format_count
from trueload.verdict import is_loopback

TELLING_CONNECTIONS = 200
"""With fewer nobody's usual limit is in question."""
SPARE = 100
"""Files of a server that are none of its connections."""
RING = "anon_inode:[io_uring]"
KEPT_BACK = 8
"""So many files below its limit a server may already take no more: some keep one or the other."""


def files_note(spec: TrialSpec) -> str | None:
    """One line on a server whose limit is below the connections of a trial, with what to set."""
    connections = spec.load.most
    if connections < TELLING_CONNECTIONS:
        return None
    limits = read_limits(spec.addresses)
    return make_note(limits, connections, has_ring=any(map(_has_ring, limits)))


def make_note(limits: Mapping[int, int], connections: int, *, has_ring: bool = False) -> str | None:
    """The same of limits by process, which share the connections; one that has a ring of io_uring
    may keep them in its table, and need no files. Pure."""
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
    """Open files at most, of each process that listens on one of these addresses, as far as it can
    be seen; those without a limit make it empty."""
    found: dict[int, int] = {}
    for pid in _holders(addresses):
        limit = _soft_limit(pid)
        if limit is None:
            return {}
        found[pid] = limit
    return found


def reached_limit(addresses: Sequence[str]) -> int | None:
    """The limit of a process that listens on one of these addresses and has as many files open;
    None if none has, or nothing can be seen of them."""
    for pid in _holders(addresses):
        limit, count = _soft_limit(pid), _count_files(pid)
        if limit is not None and count is not None and count + KEPT_BACK >= limit:
            return limit
    return None


def _holders(addresses: Sequence[str]) -> Iterator[int]:
    """Processes that listen on one of these addresses, if all are of this machine's loopback."""
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
