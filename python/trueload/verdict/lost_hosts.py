"""The check `hosts-lost`: did all hosts send the load to its end?

How: the figures of a run that went on are those of the hosts that stayed. What the others were to
send is missing, and nobody has sent it in their place. Pure.
"""

from __future__ import annotations

from trueload.record.schema import Record, Status
from trueload.verdict.common import Definition, Finding, not_applicable
from trueload.verdict.hosts import NAMED


def check_hosts_lost(record: Record) -> Finding:
    """Say which hosts were lost, and which share of the load was left."""
    count = len(record.hosts)
    if count < 2:
        return not_applicable("the load came from one host")
    if record.trouble is not None and record.trouble.kind == "paused":
        return not_applicable("all hosts ended, because trueload itself was paused")
    lost = [host for host in record.hosts if host.lost is not None]
    if not lost:
        return Finding("pass", f"all {count} hosts sent to the end", 0.0, 0.0)
    status: Status = "fail" if record.trouble is not None else "warn"
    guilty = [host for host in lost if not host.way_lost]
    whys = list(dict.fromkeys(f"{host.lost}" for host in lost if host.way_lost))
    if guilty:
        names = ", ".join(host.place for host in guilty[:NAMED])
        more = f" and {len(guilty) - NAMED} more" if len(guilty) > NAMED else ""
        whys.append(f"{names}{more}" + (f" ({guilty[0].lost})" if status == "warn" else ""))
    why = f"{len(lost)} of {count} hosts lost: {'; '.join(whys)}"
    asked = record.plan.generate.connections
    if status == "warn":
        left = record.connections.requested
        why += f"; the figures are those of the others, with {left} of {asked} connections"
    return Finding(status, why, float(len(lost)), 0.0)


def _remedy(record: Record) -> str | None:
    if any(host.way_lost for host in record.hosts):
        return "Look at what all of these hosts are reached through; measure again."
    return None


HOSTS_LOST = Definition(
    name="hosts-lost",
    order=205,
    compute=check_hosts_lost,
    of_client="a client runs on one host",
    fault="hosts",
    meaning="A host that was lost no longer sends its part of the load, and no other sends it.",
    remedy=(
        "Look at that host and at its network; measure again, or leave the host out of the run."
    ),
    remedy_where=_remedy,
)
