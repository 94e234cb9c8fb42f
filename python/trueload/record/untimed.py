"""How many requests have no time. Must not need the models: lists of runs are read without them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Counted(Protocol):
    """What became of requests: ``Counts``, or ``Outcomes`` of one target or step."""

    @property
    def cancelled(self) -> int: ...
    @property
    def skipped(self) -> int: ...
    @property
    def failed(self) -> Mapping[str, int]: ...


def failed(counts: Counted) -> int:
    """Requests that failed, of whatever class."""
    return sum(counts.failed.values())


def without_time(counts: Counted) -> int:
    """Requests that failed, were left open, were skipped, or were never sent. For targets the last
    are missing, since nobody knows which target an unsent request was meant for."""
    unsent: int = getattr(counts, "unsent", 0)
    return without_service(counts) + counts.skipped + unsent


def without_service(counts: Counted) -> int:
    """Requests that were sent and have no service time."""
    return failed(counts) + counts.cancelled
