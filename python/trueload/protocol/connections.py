"""The connections of a phase, and how the work was spread over them, as an engine reports it;
``plan`` has the rest of the protocol.
"""

from __future__ import annotations

from pydantic import Field

from trueload.protocol.model import Model


class IdleClosed(Model):
    """Connections that the peer ended while they were idle."""

    count: int = 0
    after_ns: int = 0
    """The shortest idle time before such a close, in ns; 0 if there was none."""


class Connections(Model):
    """The connections of a phase. A slot is one of the connections that are asked for; it keeps its
    identity when it reconnects."""

    requested: int
    """The number of slots."""
    established: int
    """Slots that were established at least once since the engine began."""
    failed: dict[str, int] = Field(default_factory=dict)
    """Slots that were never established in the set-up before this phase, by class of failure."""
    set_up_ns: int = 0
    """From the first attempt of that set-up to its last established connection."""
    idle_open: int = 0
    """Idle connections that were open when the phase stopped."""
    reconnects: int
    """Connections opened again during the phase."""
    dropped: int = 0
    """Connections that the peer closed soon after accepting them, before any request."""
    unended: int = 0
    """Connections that we half-closed after the last answer and that the peer did not close."""
    idle_closed: IdleClosed = IdleClosed.model_construct()
    """Connections that the peer closed while they were idle."""
    down: int
    """Slots that were without a connection for more than 1 s at a stretch."""
    outage_ns: int
    """The longest time for which an established slot could not reconnect after a loss."""
    outages: int
    """Slots that lost their connection and did not get another one."""
    family: str
    """The kind of address: ``ipv4``, ``ipv6`` or ``unix``."""
    handshakes_full: int = 0
    """Full TLS handshakes; the first phase also counts those before it."""
    handshakes_resumed: int = 0
    """TLS handshakes that resumed a session; the first phase also counts those before it."""
    reasons: dict[str, str] = Field(default_factory=dict)
    """The first failure of each class in words, if more is known than the class."""


class Slots(Model):
    """How the work was spread over the slots."""

    asked: int
    """Slots that sent at least one request."""
    never_answered: int
    """Slots that sent requests and never got a complete answer."""
    answers_sum: int
    """Complete answers of any status, over all slots."""
    answers_sum_squares: int
    """The sum of the squares of each slot's number of answers."""
    answers_min: int
    """The fewest answers of a slot; 0 if no slot sent a request."""
    answers_max: int
    """The most answers of a slot."""
    means: tuple[tuple[int, int, int], ...] = ()
    """The slots by mean service time, as triples: its index in a sparse histogram, how many good
    answers each slot had (rounded down by at most a fifth), and how many such slots there are."""
    long_waits_ns: tuple[int, ...]
    """The longest wait of each slot that waited for 1 s or longer while at least 100 other requests
    were answered; at most 10,000 slots."""
    long_waits: tuple[tuple[int, ...], ...] = ()
    """13 counts for each of these slots. The first is its requests that ended. Six count its waits
    of at least 1, 2, 4, 8, 16 and 32 s. Six count, by the same lengths, its lost connections that
    were never answered."""
    permitted_ns: int
    """The number of requests that the load permitted to be outstanding, summed over time."""
