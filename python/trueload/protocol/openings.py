"""Connections that are opened when their requests are due, as the engine timed them
(crates/meter/src/openings.rs)."""

from __future__ import annotations

from trueload.protocol.model import Model, left_out


class Openings(Model):
    """Steps of connections, each from when its request, or its session, was due: HdrHistogram V2
    compressed, base64; null if empty."""

    sessions: int = left_out(0)
    """Connections that were opened for sessions; 0 if each was for one request."""
    connect: str | None = None
    """To the established connection, before any TLS."""
    full_handshake: str | None = None
    """To the end of a full TLS handshake."""
    resumed_handshake: str | None = None
    """To the end of a TLS handshake that resumed an earlier session."""
    first_byte: str | None = None
    """To the first byte of a good answer."""
