"""When an engine did not run although there was work for it, as the engine reports it."""

from __future__ import annotations

from trueload.protocol.model import Model


class Stalls(Model):
    """``count`` stalls that took at least ``at_least_ns`` and less than twice that, ``ns`` in all,
    over all threads. ``requests`` were outstanding, or came due, meanwhile."""

    at_least_ns: int
    count: int
    ns: int
    requests: int


class Lateness(Model):
    """``waited_ns`` is the total wait for a CPU of the thread that waited longest. ``stopped`` are
    stalls in which a thread was stopped, ``queued`` in which it waited for a CPU, by length."""

    waited_ns: int = 0
    stopped: tuple[Stalls, ...] = ()
    queued: tuple[Stalls, ...] = ()
