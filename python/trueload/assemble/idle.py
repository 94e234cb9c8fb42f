"""The record's account of idle connections: the steps, and the server's memory on each.

Pure. Must not know: processes, or how anything is judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trueload.assemble.broadcast import rss_bytes
from trueload.engines.merge import add_counts
from trueload.machine.accounting import TreeSample
from trueload.protocol.plan import Measurement, Ready
from trueload.record.schema import Idle, IdleStep
from trueload.units import NS_PER_S


@dataclass
class Step:
    """What was seen of one step so far."""

    idle: int
    server: TreeSample | None = None
    measurement: Measurement | None = None


def make_idle(steps: Sequence[Step], held: int | None) -> Idle | None:
    """Return the steps for the record; None if there were none."""
    if not steps:
        return None
    made = []
    before = 0
    for step in steps:
        one = make_step(step, before)
        made.append(one)
        before = one.established or before
    return Idle(
        connections=steps[-1].idle,
        held=held,
        server_bytes_per_connection=bytes_per_connection(made),
        steps=tuple(made),
    )


def make_step(step: Step, established_before: int) -> IdleStep:
    """Return one step; ``established_before`` is the number of connections before it."""
    found = step.measurement.connections if step.measurement is not None else None
    rate = None
    if found is not None and found.set_up_ns > 0 and found.established > established_before:
        rate = (found.established - established_before) * NS_PER_S / found.set_up_ns
    return IdleStep(
        idle=step.idle,
        connections=found.requested if found is not None else step.idle,
        established=found.established if found is not None else None,
        failed=found.failed if found is not None else {},
        connect_rate_per_s=rate,
        server_rss_bytes=(rss_bytes(step.server) or None) if step.server is not None else None,
    )


def bytes_per_connection(steps: Sequence[IdleStep]) -> float | None:
    """The growth of memory from the first step to the last, in bytes per added connection."""
    first, last = steps[0], steps[-1]
    if first.server_rss_bytes is None or last.server_rss_bytes is None:
        return None
    added = (last.established or 0) - (first.established or 0)
    grown = last.server_rss_bytes - first.server_rss_bytes
    return grown / added if added > 0 and grown > 0 else None


def merged_failed(ready: Ready | None, steps: Sequence[Step]) -> dict[str, int]:
    """The failed first attempts to connect, by class, over all connections that were set up."""
    found = [step.measurement.connections.failed for step in steps if step.measurement is not None]
    return add_counts([*([] if ready is None else [ready.failed]), *found])
