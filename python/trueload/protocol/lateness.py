"""What an engine says of when it did not run although there was work for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trueload.protocol.model import Model


class Stalls(Model):
    """``count`` stalls that were at least so long and less than twice, of ``ns`` in all, over all
    threads; ``requests`` were outstanding, or came due, meanwhile."""

    at_least_ns: int
    count: int
    ns: int
    requests: int


class Lateness(Model):
    """``waited_ns`` is for how long in all the thread waited for a CPU that did so longest;
    ``stopped`` are stalls in which a thread was stopped, ``queued`` those in which it waited for a
    CPU, both by length."""

    waited_ns: int = 0
    stopped: tuple[Stalls, ...] = ()
    queued: tuple[Stalls, ...] = ()


def merge_lateness(parts: Sequence[Lateness]) -> Lateness:
    """That of several engines together."""
    return Lateness(
        waited_ns=max(part.waited_ns for part in parts),
        stopped=_merged(each for part in parts for each in part.stopped),
        queued=_merged(each for part in parts for each in part.queued),
    )


def _merged(stalls: Iterable[Stalls]) -> tuple[Stalls, ...]:
    sums: dict[int, Stalls] = {}
    for each in stalls:
        known = sums.get(each.at_least_ns)
        sums[each.at_least_ns] = each if known is None else _sum(known, each)
    return tuple(sums[least_ns] for least_ns in sorted(sums))


def _sum(one: Stalls, other: Stalls) -> Stalls:
    return Stalls(
        at_least_ns=one.at_least_ns,
        count=one.count + other.count,
        ns=one.ns + other.ns,
        requests=one.requests + other.requests,
    )
