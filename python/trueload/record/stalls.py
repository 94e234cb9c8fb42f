"""When the generator was paused, and by how much a percentile of the latency may be too long for
it. Pure functions of a record; ``sample`` has what stalls do to a percentile.

A stall in which a thread was stopped is ours. So is one in which it waited for a CPU, if generator
and server have CPUs of their own. If they share CPUs it is ours in part, as far as others, or our
CPU limit, caused such waits: for the rest generator and server waited for each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from trueload.protocol.lateness import Stalls
from trueload.record.sample import StallGroup
from trueload.record.schema import Record
from trueload.request.route import is_loopback

LIMITED_PART = 0.1
"""The part of our waits from which on a CPU limit is the reason for all of them. Linux 6.18 counts
only 0.2 to 0.7 of such waits as throttled (measured)."""


def our_stalls(record: Record) -> tuple[StallGroup, ...]:
    """The stalls that the server has no part in."""
    return _stalls(record, 1.0 if has_own_cpus(record) else part_of_waits(record))


def caused_stalls(record: Record) -> tuple[StallGroup, ...]:
    """The stalls that somebody else's process, our CPU limit, or a stop of our threads caused."""
    return _stalls(record, part_of_waits(record))


def _stalls(record: Record, part: float) -> tuple[StallGroup, ...]:
    late = record.generator.lateness
    return () if late is None else (*_counted(late.stopped, 1.0), *_counted(late.queued, part))


def _counted(stalls: Sequence[Stalls], part: float) -> tuple[StallGroup, ...]:
    if not part:
        return ()
    return tuple(StallGroup(e.count * part, e.ns * part, e.requests * part) for e in stalls)


def has_own_cpus(record: Record) -> bool:
    """Whether the server cannot be what our threads waited for: it has other CPUs, or is on another
    machine."""
    ours, server = set(record.generator.allowed_cpus), record.server
    if server is not None:
        theirs = set(server.allowed_cpus)
        return bool(ours) and bool(theirs) and not ours & theirs
    addresses = record.plan.generate.every_address
    return bool(addresses) and not any(map(is_loopback, addresses))


def part_of_waits(record: Record) -> float:
    """The part of its waits for a CPU that others or a CPU limit caused; 0 if unknown."""
    waited = record.generator.waited
    if waited is None or not waited.share:
        return 0.0
    if is_limited(record):
        return 1.0
    ours = waited.for_others + (record.generator.throttled_share or 0.0)
    return min(1.0, ours / waited.share)


def is_limited(record: Record) -> bool:
    """Whether our CPU limit is why our threads waited."""
    waited = record.generator.waited
    throttled = record.generator.throttled_share or 0.0
    return waited is not None and throttled > LIMITED_PART * waited.share
