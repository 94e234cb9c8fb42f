"""The outcomes of a scenario in a record: each step's, and those of whole sessions. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from trueload.protocol.plan import Sessions, StepPlan, TargetCounts
from trueload.record.schema import Outcomes, SessionsRecord, TargetRecord
from trueload.request.redact import redact_url
from trueload.stats import Distribution

NOTHING_TIMED = Distribution()
"""The figures are made from the histograms later, by one rule for all."""


def step_records(
    steps: Sequence[StepPlan], urls: Sequence[str], measured: Sequence[TargetCounts]
) -> tuple[TargetRecord, ...]:
    """The outcomes of each step."""
    return tuple(
        TargetRecord(
            name=step.name,
            method=step.request.method,
            url=redact_url(url),
            weight=step.repeat,
            counts=Outcomes(**found.model_dump(exclude={"latency", "kinds"})),
            latency_ns=NOTHING_TIMED,
            latency=found.latency,
        )
        for step, url, found in zip(steps, urls, measured, strict=True)
    )


def make_sessions(found: Sessions | None) -> SessionsRecord | None:
    """The outcomes of whole sessions; None without a scenario."""
    if found is None:
        return None
    return SessionsRecord(**found.model_dump(), latency_ns=NOTHING_TIMED)
