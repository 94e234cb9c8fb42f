"""Redirects that the engine followed (crates/meter/src/redirects.rs)."""

from __future__ import annotations

from trueload.protocol.model import Model


class Redirects(Model):
    """Redirects of a phase."""

    statuses: dict[str, int]
    """Redirects that were followed, by status code, also if their request failed later."""
    hops: dict[str, int]
    """Requests that ended well, by the number of redirects before their final answers."""
    time: str | None = None
    """How long each redirect took, from the send of its request to its last byte; HdrHistogram V2
    compressed, base64, null if empty."""
