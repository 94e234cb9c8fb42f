"""When the generator stood still, and by how much a percentile of the latency may be too long for
it. Pure functions of a record.

A stall in which a thread was stopped is ours. So is one in which it waited for a CPU, if generator
and server have CPUs of their own. If they share CPUs it is ours in part, as far as others, or our
CPU limit, caused such waits: for the rest generator and server waited for each other.

If a share a of all requests waited for us, the true percentile q lies between those of ranks q - a
and q.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trueload.protocol.plan import Stalls
from trueload.record.schema import Record
from trueload.request.route import is_loopback
from trueload.stats import Quantile

WARN_PART = 1 / 4
"""The share of requests beyond a percentile that waited for us, from which it may have moved."""
MARKED_OFF = 0.05  # how much too long a percentile may then be, until it is an upper bound
LEAST_NS = 500_000  # the engine does not see shorter stalls
LEAST_PART = 0.05  # of a percentile: shorter stalls cannot change it by more
LIMITED_PART = 0.1
"""The part of our waits from which on a CPU limit is the reason for all of them. Linux 6.18 counts
only 0.2 to 0.7 of such waits as throttled (measured)."""


@dataclass(frozen=True)
class Stood:
    """Stalls of similar length: their number, total time, and number of requests that waited."""

    count: float
    ns: float
    requests: float

    @property
    def length_ns(self) -> float:
        """The mean length of these stalls, in ns."""
        return self.ns / self.count


@dataclass(frozen=True)
class Late:
    """How far stalls reach up to one percentile: the requests that waited as a share of those
    beyond it, and by how much it may be too long, in ns and as a share."""

    part: float
    ns: float
    off: float

    @property
    def is_overstated(self) -> bool:
        """Whether the percentile is only known to be at most what is shown."""
        return self.part > WARN_PART and self.off >= MARKED_OFF


def our_stalls(record: Record) -> tuple[Stood, ...]:
    """The stalls that the server has no part in."""
    return _stalls(record, 1.0 if has_own_cpus(record) else part_of_waits(record))


def caused_stalls(record: Record) -> tuple[Stood, ...]:
    """The stalls that somebody else's process, our CPU limit, or a stop of our threads caused."""
    return _stalls(record, part_of_waits(record))


def _stalls(record: Record, part: float) -> tuple[Stood, ...]:
    late = record.generator.lateness
    return () if late is None else (*_counted(late.stopped, 1.0), *_counted(late.queued, part))


def _counted(stalls: Sequence[Stalls], part: float) -> tuple[Stood, ...]:
    if not part:
        return ()
    return tuple(Stood(e.count * part, e.ns * part, e.requests * part) for e in stalls)


def lateness_at(
    rank: float,
    percentile: Callable[[float], Quantile],
    count: int,
    stalls: Sequence[Stood],
    least_ns: float = LEAST_NS,
) -> Late | None:
    """What stalls of at least ``least_ns`` may have done to the percentile of ``rank`` (0 to 1) of
    ``count`` requests; None if they do not reach it. ``percentile`` gives that of any rank."""
    found = percentile(rank)
    if found.above or not found.value or rank >= 1:
        return None
    least_ns = max(least_ns, LEAST_PART * found.value)
    reaching = [each for each in stalls if each.length_ns >= least_ns]
    if not reaching:
        return None
    waited = sum(each.requests for each in reaching) / count
    at_least = percentile(max(0.0, rank - waited)).value or 0
    longest_ns = max(each.length_ns for each in reaching)
    ns = min(found.value - at_least, longest_ns)
    return Late(waited / (1 - rank), ns, ns / found.value)


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
