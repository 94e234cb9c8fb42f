"""What a server answered beside the load. Must not know how that is judged."""

from __future__ import annotations

from trueload.protocol.model import Model


class Probes(Model):
    """What a subject was asked under load beside the load's own request: other paths and forms that
    its contract fixes. How many were answered, how many of them wrongly, and the first fault."""

    asked: int
    wrong: int
    fault: str | None
