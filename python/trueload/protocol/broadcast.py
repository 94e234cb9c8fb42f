"""What is said of a broadcast's deliveries, and how engines that share one settle it; ``plan`` has
the rest of the protocol.

Settling a phase: each engine says ``PhaseSent`` when its own messages are over; all are told what
all have sent (``Settle``); each says ``Settled`` when the messages of the others are over at its
receivers; all are told what failed at any of them (``Charge``), and say ``phase_done``. Must not
know how it is carried.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from trueload.protocol.model import Model

Sent = dict[int, int]
"""The number of the last message that each sender had sent by the end of a phase, of those that
sent any in it. Senders are numbered over all engines, messages of each from 1 over all phases."""


class DeliveryHistograms(Model):
    """As ``Histograms``. ``delivery`` holds every delivery that is timed, from the send of its
    message; the next ones one value a message: its first, median, 95th and last receiver.
    ``spread`` is of the messages of other engines: from the first receiver here to the last."""

    delivery: str | None
    first: str | None
    median: str | None
    p95: str | None
    last: str | None
    spread: str | None = Field(default=None, exclude_if=lambda value: value is None)


class Deliveries(Model):
    """What became of broadcast messages; ``expected`` is messages x receivers that had joined.
    ``untimed`` of those delivered were sent by other engines, on other clocks."""

    expected: int
    delivered: int
    lost: int
    duplicate: int
    out_of_order: int
    untimed: int = Field(default=0, exclude_if=lambda value: value == 0)
    histograms: DeliveryHistograms


class FailedMessage(Model):
    """A message that did not reach everybody once."""

    sender: int
    sequence: int
    fault: Literal["lost", "duplicate"]


class PhaseSent(Model):
    """An engine's own messages of a phase are over."""

    type: Literal["phase_sent"]
    id: str
    sent: Sent


class Settle(Model):
    """When all have said ``PhaseSent``: what all have sent. What has not come by ``until_ns`` on
    the engine's clock is lost; None for the timeout from now on."""

    type: Literal["settle"] = "settle"
    id: str
    sent: Sent
    until_ns: int | None


class Settled(Model):
    """The other engines' messages of a phase are over here; those that failed."""

    type: Literal["settled"]
    id: str
    failed: tuple[FailedMessage, ...]


class Charge(Model):
    """When all have said ``Settled``: what failed at any of them; each engine takes its own."""

    type: Literal["charge"] = "charge"
    id: str
    failed: tuple[FailedMessage, ...]
