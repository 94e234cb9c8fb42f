"""What an engine says of when it did not run although there was work for it."""

from __future__ import annotations

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
