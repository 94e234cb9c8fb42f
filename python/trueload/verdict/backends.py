"""The check of who does the work: the measured server, or processes behind it?

How: the record lists the processes of this host that the server has connected to, with their CPU
time. Pure.
"""

from __future__ import annotations

from trueload.record.schema import Backend, Record, Server
from trueload.verdict.common import NOTHING, Definition, Finding, is_closed, not_applicable

# A closed loop always has work for its server, so one that is busy for less than half of the time
# waits for others. It counts as waiting for its backends if these use a tenth of its CPU time or
# more; a log or a cache that is seldom asked uses less.
BUSY_MIN, BACKENDS_MIN = 0.5, 0.1


def check_backends(record: Record) -> Finding:
    """Compare the CPU time of the processes behind the server with the server's own."""
    server = record.server
    if server is None:
        return not_applicable("the server's processes are not known")
    if not server.backends:
        return Finding("pass", "the server works with no other process of this host")
    theirs_s = sum(each.cpu_s for each in server.backends)
    share = theirs_s / server.cpu_s if server.cpu_s > 0 else 1.0
    waits = _waits(record, server) and share >= BACKENDS_MIN
    used = f"{server.name or 'the server'} used {server.cpu_s:.2f} s of CPU"
    found = f"{used}, and {_named(server.backends)} behind it used {theirs_s:.2f} s"
    if server.source == "named" or not (share > 1 or waits):
        return Finding("pass", found, share, 1)
    why = f"{found}: part of the work is done by processes whose CPU and memory were not measured"
    return Finding("warn", f"{why}{_offer(server)}", share, 1 if share > 1 else BACKENDS_MIN)


def _waits(record: Record, server: Server) -> bool:
    return is_closed(record) and server.saturation is not None and server.saturation < BUSY_MIN


def _named(backends: tuple[Backend, ...]) -> str:
    first, more = backends[0], len(backends) - 1
    return f"{first.name} (pid {first.pid})" + (f" and {more} more" if more else "")


def _offer(server: Server) -> str:
    if server.source == "started":
        return ""
    return f"; --server-pid {server.backends[0].pid} measures it there"


BACKENDS = Definition(
    name="backends",
    order=175,
    compute=check_backends,
    of_client="the server is the reference server: nothing works behind it",
    fault="load",
    moves=NOTHING,
    meaning="CPU and memory of a proxy say nothing of the server that does the work.",
    remedy=(
        "Use --server-pid to name the process that does the work, or the measured one if"
        " that is the one you mean; or send the load directly to the server behind it."
    ),
)
