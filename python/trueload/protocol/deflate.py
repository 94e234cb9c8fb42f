"""Compression of messages over WebSocket (crates/meter/src/deflate.rs)."""

from __future__ import annotations

from trueload.protocol.model import Model


class Deflate(Model):
    """Compression of messages (permessage-deflate). Bytes are those of the payloads of messages, on
    connections that agreed to compression."""

    agreed: int
    """Connections that agreed, since the start: also those opened before the window."""
    declined: int
    """Connections that were opened without compression, likewise."""
    sent_bytes: int
    """Before compression."""
    sent_compressed_bytes: int
    received_bytes: int
    """After decompression."""
    received_compressed_bytes: int
