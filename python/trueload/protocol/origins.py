"""Several origins that share one load, in plans and measurements; ``plan`` has the rest."""

from __future__ import annotations

from trueload.protocol.model import Model
from trueload.protocol.tls import TlsPlan


class OriginPlan(Model):
    """One of several origins. Its weight is that of its targets. Connections are dealt by weight,
    at least one to each origin. So are requests of a fixed number, and arrivals."""

    addresses: tuple[str, ...]
    tls: TlsPlan | None


class OriginConnections(Model):
    """Connections of one origin."""

    requested: int
    established: int
    failed: dict[str, int]
    """Connections that were never established in the set-up before the phase, by class of failure.
    """
