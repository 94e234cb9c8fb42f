"""Connections that are opened when their requests are due, as the engine timed them
(crates/meter/src/openings.rs)."""

from __future__ import annotations

from trueload.protocol.model import Model


class Openings(Model):
    """HdrHistogram V2 compressed, base64; null if empty. Each step of a connection counts from when
    its request was due: ``connect`` to the established connection, before any TLS; the two kinds of
    TLS handshake to their end; ``first_byte`` to that of a good answer."""

    connect: str | None = None
    full_handshake: str | None = None
    resumed_handshake: str | None = None
    first_byte: str | None = None
