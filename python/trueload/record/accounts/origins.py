"""Each of several origins that share one load."""

from __future__ import annotations

from collections.abc import Sequence

from trueload.protocol.model import Model
from trueload.protocol.origins import OriginConnections
from trueload.protocol.sums import add_up
from trueload.record.account import Account, TrialFacts
from trueload.record.accounts.targets import add_targets
from trueload.record.outcomes import Outcomes
from trueload.request.redact import redact_url

Origins = tuple[OriginConnections, ...]


class OriginRecord(Model):
    """One of several origins. Numbers are null without a measurement."""

    url: str
    requested: int | None
    """Connections that were asked for."""
    established: int | None
    """Connections that were ever established."""
    connect_failed: dict[str, int]
    """What the other connections met, by class."""
    counts: Outcomes | None
    """The requests of its targets."""

    @property
    def is_unreached(self) -> bool:
        """Whether none of its connections was ever established."""
        return bool(self.requested) and self.established == 0


def add_origins(parts: Sequence[Origins]) -> Origins:
    return tuple(map(add_up, zip(*parts, strict=True)))


def make_origins(found: Origins, facts: TrialFacts) -> tuple[OriginRecord, ...] | None:
    """What the record keeps, in the plan's order; None if there is only one origin."""
    urls = facts.origin_urls
    if not urls:
        return None
    return tuple(
        OriginRecord(
            url=redact_url(url),
            requested=each.requested if each else None,
            established=each.established if each else None,
            connect_failed=each.failed if each else {},
            counts=_outcomes(number, facts),
        )
        for number, (url, each) in enumerate(zip(urls, found or (None,) * len(urls), strict=True))
    )


def _outcomes(origin: int, facts: TrialFacts) -> Outcomes | None:
    """The sums over the targets of an origin."""
    if facts.window.targets is None:
        return None
    pairs = zip(facts.generate.targets, facts.window.targets, strict=True)
    own = [(counts,) for target, counts in pairs if target.origin == origin]
    return Outcomes.of(add_targets(own)[0]) if own else None


ORIGINS = Account("origins", "origins", make_origins, add_origins)
