"""When an engine did not run although there was work for it, as the engine reports it."""

from __future__ import annotations

from trueload.protocol.model import Model


class Stalls(Model):
    """Stalls of a length, over all threads."""

    at_least_ns: int
    """They took at least this, and less than twice as long."""
    count: int
    ns: int
    """Their time in all."""
    requests: int
    """Requests that were outstanding, or came due, meanwhile."""


class Lateness(Model):
    """When threads that had something to do did not run."""

    waited_ns: int = 0
    """The total wait for a CPU of the thread that waited longest."""
    stopped: tuple[Stalls, ...] = ()
    """Stalls in which a thread was stopped."""
    queued: tuple[Stalls, ...] = ()
    """Stalls in which a thread waited for a CPU."""
