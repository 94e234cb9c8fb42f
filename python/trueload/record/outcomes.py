"""What became of the requests of one target or step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueload.protocol.model import Model, left_out

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
