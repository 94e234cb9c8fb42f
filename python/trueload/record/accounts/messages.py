"""Messages that came in conversations over WebSocket: how many, how far apart, and how soon."""

from __future__ import annotations

from collections.abc import Sequence

from trueload import hdr
from trueload.protocol import messages as protocol
from trueload.protocol.model import Model
from trueload.protocol.sums import add_up
from trueload.record.account import Account, TrialFacts
from trueload.record.sample import complete
from trueload.stats import Distribution
from trueload.units import NS_PER_S

MESSAGE_GAP, DELIVERY = "message_gap_", "delivery_"
"""Prefixes of the percentiles of its times."""


class Messages(Model):
    """The messages of the window."""

    received: int
    unexpected: int
    """Messages that no step of their conversation expected."""
    received_per_s: float | None
    gap_ns: Distribution
    """From one message to the next on a connection."""
    delivery_ns: Distribution
    """From the send of a message with a ``{stamp}`` to each of its deliveries."""
    histograms: dict[str, str | None]
    """The times of ``gap_ns`` and ``delivery_ns``."""


def add_messages(parts: Sequence[protocol.Messages]) -> protocol.Messages:
    gaps, deliveries = ([getattr(part, name) for part in parts] for name in ("gap", "delivery"))
    return add_up(parts, gap=hdr.added(gaps), delivery=hdr.added(deliveries))


def make_messages(found: protocol.Messages, facts: TrialFacts) -> Messages:
    """What the record keeps of the window."""
    window_ns = facts.window.window_ns
    return Messages(
        received=found.received,
        unexpected=found.unexpected,
        received_per_s=found.received * NS_PER_S / window_ns if window_ns else None,
        gap_ns=complete(found.gap).figures,
        delivery_ns=complete(found.delivery).figures,
        histograms={"gap": found.gap, "delivery": found.delivery},
    )


MESSAGES = Account(
    "messages",
    "messages",
    make_messages,
    add_messages,
    in_suites=True,
    samples={
        MESSAGE_GAP: lambda kept, _: complete(kept.histograms["gap"]),
        DELIVERY: lambda kept, _: complete(kept.histograms["delivery"]),
    },
)
