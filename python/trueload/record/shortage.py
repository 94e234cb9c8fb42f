"""What a load can lack before its server is at its limit: open files, local ports, memory.

How: a record shows it by its failure classes, or by how its engine ended. A server on this machine
shows it by its open-file limit, if that was reached while clients got no connection. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from trueload.errors import UserError, out_of_memory
from trueload.record.schema import Environment, Record
from trueload.units import format_count

Lacking = Literal["files", "ports", "memory"]

HINTS = {
    "local.fds": "raise the limit: `ulimit -n`, or `nofile` in /etc/security/limits.conf",
    "local.ports": "spread them over more addresses of this machine:"
    " --local-address 127.0.0.2 --local-address 127.0.0.3 …",
}
"""What helps if the generator has too little of something, by failure class."""
_OF: dict[str, tuple[Lacking, str]] = {
    "local.fds": ("files", "the generator's open-file limit"),
    "local.ports": ("ports", "the local ports of this machine"),
}


_EVEN_PORTS_FIRST = (6, 8)
"""Kernels older than this search half of an address's ports before they try the others."""


@dataclass(frozen=True)
class Shortage:
    """``limit`` names it, as the subject of a sentence. ``why`` is how it was noticed, ``hint``
    what to set."""

    of: Lacking
    limit: str
    why: str
    hint: str


def crowded_ports(connections: int, addresses: int, environment: Environment) -> str:
    """Text to append if connections came slowly, are more than half of the ports of each address
    that they come from, and the kernel is slow to find the other half; else empty."""
    ports = environment.limits.get("local_ports", 0)
    each = -(-connections // max(1, addresses))
    version = re.match(r"Linux (\d+)\.(\d+)", environment.kernel)
    quick = version is None or (int(version[1]), int(version[2])) >= _EVEN_PORTS_FIRST
    if quick or 2 * each <= ports or ports == 0:
        return ""
    return (
        f": {format_count(each)} connections from one address are more than half of its"
        f" {format_count(ports)} ports, and this kernel is slow to find one then;"
        f" {HINTS['local.ports']}"
    )


def memory_fault(record: Record) -> UserError | None:
    """The error to report if the engine of a trial ran out of memory; None if it did not."""
    trouble = record.trouble
    if trouble is None or trouble.kind != "memory":
        return None
    return out_of_memory(trouble.what)


def find_shortage(record: Record) -> Shortage | None:
    """What a trial had too little of to make the load that was asked for; None if nothing."""
    connections = record.connections
    if (spent := memory_fault(record)) is not None:
        return Shortage("memory", "the generator's memory limit", spent.message, spent.hint)
    for name, (of, limit) in _OF.items():
        if connections.failed.get(name) or record.counts.failed.get(name):
            why = connections.reasons.get(name, f"{limit} allowed no more connections")
            return Shortage(of, limit, why, HINTS[name])
    files = connections.server_files
    if files is None:
        return None
    missing = connections.requested - connections.established
    got = f"{format_count(missing)} of {format_count(connections.requested)}"
    why = (
        f"{got} got no connection"
        if missing
        else ("connections waited because the server had no open file left for them")
    )
    return Shortage(
        "files",
        f"the server's open-file limit of {format_count(files)}",
        why,
        "raise the limit with `ulimit -n`, then start the server again",
    )
