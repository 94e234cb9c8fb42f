"""Recorded traffic in a plan, mirrored from the engine's protocol/replay.rs."""

from __future__ import annotations

from trueload.protocol.model import Model


class ReplayPlan(Model):
    """Recorded traffic, sent by an open loop whose arrivals are ``recorded``."""

    about: str
    """What was recorded, for people."""
    count: int
    """The number of entries."""
    requests: tuple[str, ...]
    """The SHA-256 of blobs of JSON lines, one line for each request that differs."""
    entries: tuple[str, ...]
    """The SHA-256 of blobs with 12 bytes for each entry: its time in ns, and its request's index.
    """
