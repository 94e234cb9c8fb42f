"""Idle connections beside those that send: the steps, and the server's memory on each."""

from __future__ import annotations

from collections.abc import Sequence

from trueload.protocol.model import Model
from trueload.protocol.plan import Ready
from trueload.protocol.sums import add_counts
from trueload.record.account import Account, Step, TrialFacts
from trueload.units import NS_PER_S


class IdleStep(Model):
    """A number of idle connections beside the others."""

    idle: int
    connections: int
    established: int | None
    """How many of all connections were ever there."""
    failed: dict[str, int]
    """What the rest met, by class."""
    connect_rate_per_s: float | None
    """The rate at which this step's new connections were opened."""
    server_rss_bytes: int | None
    """Resident memory of the server's tree while they were held; null if it could not be seen."""


class Idle(Model):
    """Idle connections beside those that send."""

    connections: int
    held: int | None
    """Still open at the end of the window; null without a measurement."""
    server_bytes_per_connection: float | None
    """Growth of the server's memory from the first step to the last, for each connection added;
    null if none was, or without growth."""
    steps: tuple[IdleStep, ...]


def make_idle(_: None, facts: TrialFacts) -> Idle | None:
    """What the record keeps; None if there were no steps."""
    if not facts.steps:
        return None
    made: list[IdleStep] = []
    before = 0
    for step in facts.steps:
        made.append(_step(step, before))
        before = made[-1].established or before
    return Idle(
        connections=facts.steps[-1].idle,
        held=facts.window.connections.idle_open if facts.complete else None,
        server_bytes_per_connection=bytes_per_connection(made),
        steps=tuple(made),
    )


def _step(step: Step, established_before: int) -> IdleStep:
    """One step; ``established_before`` is the number of connections before it."""
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
        server_rss_bytes=(step.server.rss_bytes or None) if step.server is not None else None,
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


def in_the_middle(some: Sequence[Idle]) -> Idle:
    """The staircase whose cost is the median, so that its steps belong together."""
    known = [idle for idle in some if idle.server_bytes_per_connection is not None]
    known.sort(key=lambda idle: idle.server_bytes_per_connection or 0.0)
    return known[(len(known) - 1) // 2] if known else some[0]


IDLE = Account("idle", None, make_idle, in_suites=True, middle=in_the_middle)
