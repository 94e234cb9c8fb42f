"""The outcomes of each of several origins, from what was measured. Pure.

Must not know: how a load was divided over them.
"""

from __future__ import annotations

from collections.abc import Sequence

from trueload.engines.merge import merge_targets
from trueload.protocol.plan import Measurement, TargetPlan
from trueload.record.schema import OriginRecord, Outcomes
from trueload.request.redact import redact_url


def make_origins(
    urls: Sequence[str], targets: Sequence[TargetPlan], measured: Measurement
) -> tuple[OriginRecord, ...] | None:
    """Return each origin, in the plan's order; None if there is only one.

    The counts of an origin are the sums over its targets.
    """
    if not urls:
        return None
    found = measured.origins or (None,) * len(urls)
    return tuple(
        OriginRecord(
            url=redact_url(url),
            requested=each.requested if each else None,
            established=each.established if each else None,
            connect_failed=each.failed if each else {},
            counts=_outcomes(origin, targets, measured),
        )
        for origin, (url, each) in enumerate(zip(urls, found, strict=True))
    )


def _outcomes(origin: int, targets: Sequence[TargetPlan], measured: Measurement) -> Outcomes | None:
    if measured.targets is None:
        return None
    pairs = zip(targets, measured.targets, strict=True)
    own = merge_targets([(found,) for target, found in pairs if target.origin == origin])
    return None if own is None else Outcomes(**own[0].model_dump(exclude={"latency", "kinds"}))
