"""The deliveries of a broadcast, and how engines that share one settle it; ``plan`` has the rest of
the protocol.

Settling a phase: each engine says ``PhaseSent`` when its own messages are over. All are told what
all have sent (``Settle``). Each says ``Settled`` when the messages of the others are over at its
receivers. All are told what failed at any of them (``Charge``), and say ``phase_done``.
"""

from __future__ import annotations

from typing import Literal

from trueload.protocol.model import Model, left_out

Sent = dict[int, int]
"""The number of the last message of each sender by the end of a phase, if it sent any in the phase.
Senders are numbered over all engines, the messages of each from 1 over all phases."""


class DeliveryHistograms(Model):
    """When deliveries came, encoded as in ``Histograms``. All but ``delivery`` and ``spread`` have
    one value for each message and engine."""

    delivery: str | None
    """From the send of a message to each delivery that is timed."""
    first: str | None
    """When the first receiver of the engine had the message."""
    median: str | None
    """When half of its receivers had it."""
    p95: str | None
    """When 95 % of its receivers had it."""
    last: str | None
    """When all of its receivers had it."""
    spread: str | None = left_out()
    """From the first receiver here to the last, of messages of other engines."""


class Deliveries(Model):
    """Outcomes of broadcast messages."""

    expected: int
    """Messages times the receivers that had joined."""
    delivered: int
    lost: int
    duplicate: int
    out_of_order: int
    untimed: int = left_out(0)
    """Deliveries from other engines with a send time that cannot be right."""
    negative: int = left_out(0)
    """Deliveries from other engines that seem to have come before they were sent."""
    negative_max_ns: int = left_out(0)
    """By how much such a delivery was too early, at most."""
    histograms: DeliveryHistograms


class FailedMessage(Model):
    """A message that did not reach everybody exactly once."""

    sender: int
    sequence: int
    fault: Literal["lost", "duplicate"]


class PhaseSent(Model):
    """An engine's own messages of a phase are over."""

    type: Literal["phase_sent"]
    id: str
    sent: Sent


class Settle(Model):
    """What all have sent; follows when all have said ``PhaseSent``."""

    type: Literal["settle"] = "settle"
    id: str
    sent: Sent
    until_ns: int | None
    """What has not come by then, on the engine's clock, is lost; null means the timeout from now
    on."""


class Settled(Model):
    """The other engines' messages of a phase are over here."""

    type: Literal["settled"]
    id: str
    failed: tuple[FailedMessage, ...]
    """The messages that failed."""


class Charge(Model):
    """What failed at any engine; follows when all have said ``Settled``. Each engine takes the
    failures of its own messages."""

    type: Literal["charge"] = "charge"
    id: str
    failed: tuple[FailedMessage, ...]
