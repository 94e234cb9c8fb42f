"""Messages of conversations over WebSocket (crates/meter/src/messages.rs)."""

from __future__ import annotations

from trueload.protocol.model import Model


class Messages(Model):
    """Messages that came in conversations over WebSocket. Times are in ns, as HdrHistogram V2
    compressed, base64; null if empty."""

    received: int
    unexpected: int
    """Messages that no step of their conversation expected."""
    gap: str | None = None
    """From one message to the next on a connection."""
    delivery: str | None = None
    """From the send of a message with a stamp to each of its deliveries."""
