"""What became of the requests of one target or step, and how many have no time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueload.protocol.model import Model, left_out
from trueload.protocol.tick import Counts

if TYPE_CHECKING:
    from trueload.protocol.plan import TargetCounts


class Outcomes(Model):
    """Requests of one target or step: the fields as in ``counts``, and the redirects followed."""

    issued: int
    ok: int
    stale: int
    cancelled: int
    skipped: int = 0
    redirects: int = left_out(0)
    failed: dict[str, int]
    statuses: dict[str, int]

    @classmethod
    def of(cls, found: TargetCounts) -> Outcomes:
        """The outcomes that the engine counted."""
        return cls(**found.model_dump(exclude={"latency", "kinds"}))


def failed(counts: Counts | Outcomes) -> int:
    """Requests that failed, of whatever class."""
    return sum(counts.failed.values())


def without_time(counts: Counts | Outcomes) -> int:
    """Requests that failed, were left open, were skipped, or were never sent. For targets the last
    are missing, since nobody knows which target an unsent request was meant for."""
    unsent = counts.unsent if isinstance(counts, Counts) else 0
    return without_service(counts) + counts.skipped + unsent


def without_service(counts: Counts | Outcomes) -> int:
    """Requests that were sent and have no service time."""
    return failed(counts) + counts.cancelled
