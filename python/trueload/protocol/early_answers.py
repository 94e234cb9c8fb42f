"""Answers that came before their requests can have been read, mirrored from
crates/meter/src/early.rs."""

from __future__ import annotations

from trueload.protocol.model import Model


class Early(Model):
    """Answers about which the kernel was asked, on a sample of the connections. ``asked``: how
    many. ``unacknowledged``: not a byte of their request was acknowledged when they came.
    ``too_soon``: they came sooner than the connection's shortest round trip in the kernel."""

    asked: int = 0
    unacknowledged: int = 0
    too_soon: int = 0
