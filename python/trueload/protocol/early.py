"""Answers that came before their requests can have been read, mirrored from
crates/engine/src/protocol/early.rs."""

from __future__ import annotations

from trueload.protocol.model import Model


class Early(Model):
    """Answers about which the kernel was asked, on a sample of the connections: how many, those
    that came while not a byte of their request was acknowledged, and those that came sooner than
    the shortest round trip that the kernel had seen on their connection."""

    asked: int = 0
    unacknowledged: int = 0
    too_soon: int = 0
