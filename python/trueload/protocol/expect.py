"""What counts as a good answer to a request, in a plan."""

from __future__ import annotations

from trueload.protocol.model import Model


class ExpectPlan(Model):
    """What counts as a good answer; null means any 2xx, and any body."""

    statuses: tuple[int, ...] | None
    body_sha256: str | None
