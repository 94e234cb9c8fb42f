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
    """Encoded as in ``Histograms``. ``delivery`` has every delivery that is timed, from the send of
    its message. The next four have one value per message and engine: when the first, median, 95th
    and last receiver of that engine had it. ``spread`` is for messages of other engines, from the
    first receiver here to the last."""

    delivery: str | None
    first: str | None
    median: str | None
    p95: str | None
    last: str | None
    spread: str | None = left_out()


class Deliveries(Model):
    """Outcomes of broadcast messages. ``expected`` is messages x receivers that had joined.
    ``untimed`` came from other engines with a send time that cannot be right. ``negative`` came
    from other engines seemingly before their send, by up to ``negative_max_ns``."""

    expected: int
    delivered: int
    lost: int
    duplicate: int
    out_of_order: int
    untimed: int = left_out(0)
    negative: int = left_out(0)
    negative_max_ns: int = left_out(0)
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
    """What all have sent; follows when all have said ``PhaseSent``. What has not come by
    ``until_ns`` on the engine's clock is lost; None means the timeout from now on."""

    type: Literal["settle"] = "settle"
    id: str
    sent: Sent
    until_ns: int | None


class Settled(Model):
    """The other engines' messages of a phase are over here; ``failed`` are those that failed."""

    type: Literal["settled"]
    id: str
    failed: tuple[FailedMessage, ...]


class Charge(Model):
    """What failed at any engine; follows when all have said ``Settled``. Each engine takes the
    failures of its own messages."""

    type: Literal["charge"] = "charge"
    id: str
    failed: tuple[FailedMessage, ...]
