"""The connections of a phase, and how the work was spread over them, as an engine reports it;
``plan`` has the rest of the protocol.
"""

from __future__ import annotations

from pydantic import Field

from trueload.protocol.model import Model


class IdleClosed(Model):
    """Connections that the peer ended while they were idle; see crates/meter/src/idle.rs."""

    count: int = 0
    after_ns: int = 0


class Connections(Model):
    """Connections of a phase; see protocol/connections.rs for each."""

    requested: int
    established: int
    failed: dict[str, int] = Field(default_factory=dict)
    set_up_ns: int = 0
    idle_open: int = 0
    reconnects: int
    dropped: int = 0
    unended: int = 0
    idle_closed: IdleClosed = IdleClosed()
    down: int
    outage_ns: int
    outages: int
    family: str
    handshakes_full: int = 0
    handshakes_resumed: int = 0
    reasons: dict[str, str] = Field(default_factory=dict)


class Slots(Model):
    """How the work was spread over the slots; see crates/meter/src/slots.rs for each."""

    asked: int
    never_answered: int
    answers_sum: int
    answers_sum_squares: int
    answers_min: int
    answers_max: int
    means: tuple[tuple[int, int, int], ...] = ()
    long_waits_ns: tuple[int, ...]
    long_waits: tuple[tuple[int, ...], ...] = ()
    permitted_ns: int
