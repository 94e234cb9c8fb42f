"""Recorded traffic in a plan, mirrored from the engine's protocol/replay.rs."""

from __future__ import annotations

from trueload.protocol.model import Model


class ReplayPlan(Model):
    """Recorded traffic, sent by an open loop whose arrivals are ``recorded``. ``about`` is for
    people. ``requests`` and ``entries`` are the SHA-256 of blobs: lines of JSON, one for each
    request that differs, and 12 bytes for each entry, its time in ns and its request's index."""

    about: str
    count: int
    requests: tuple[str, ...]
    entries: tuple[str, ...]
