"""Answers that came before their requests can have been read, mirrored from
crates/meter/src/early.rs."""

from __future__ import annotations

from trueload.protocol.model import Model


class EarlyAnswers(Model):
    """Answers about which the kernel was asked, on a sample of the connections."""

    asked: int = 0
    """The number of answers about which the kernel was asked."""
    unacknowledged: int = 0
    """Answers that came before any byte of their request was acknowledged."""
    too_soon: int = 0
    """Answers that came sooner than the connection's shortest round trip (the kernel's figure)."""
