"""What a load can come to lack before its server is at its limit: open files, or local ports.

How: a record tells it by its failure classes, or, of a server on this machine, by the limit that
was seen to be reached as clients got no connection. Pure. Must not know loads, searches, or how a
record is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trueload.record import Record
from trueload.units import format_count

Lacking = Literal["files", "ports"]

HINTS = {
    "local.fds": "raise the limit: `ulimit -n`, or `nofile` in /etc/security/limits.conf",
    "local.ports": "spread them over more addresses of this machine:"
    " --local-address 127.0.0.2 --local-address 127.0.0.3 …",
}
"""What helps where the generator has too little of something, by the failure class."""
_OF: dict[str, tuple[Lacking, str]] = {
    "local.fds": ("files", "the generator's open-file limit"),
    "local.ports": ("ports", "the local ports of this machine"),
}


@dataclass(frozen=True)
class Shortage:
    """``limit`` names it, as a subject of a sentence; ``why`` is what it was seen by; ``hint`` is
    what to set."""

    of: Lacking
    limit: str
    why: str
    hint: str


def find_shortage(record: Record) -> Shortage | None:
    """What a trial had too little of to be of the load that was asked for."""
    connections = record.connections
    for name, (of, limit) in _OF.items():
        if connections.failed.get(name) or record.counts.failed.get(name):
            why = connections.reasons.get(name, f"{limit} allowed no more connections")
            return Shortage(of, limit, why, HINTS[name])
    files = connections.server_files
    if files is None:
        return None
    missing = connections.requested - connections.established
    got = f"{format_count(missing)} of {format_count(connections.requested)}"
    why = f"{got} got no connection" if missing else "connections that it had no file for waited"
    return Shortage(
        "files",
        f"the server's open-file limit of {format_count(files)}",
        why,
        "start the server after a larger `ulimit -n`",
    )
