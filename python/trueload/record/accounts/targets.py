"""Each of several requests, or each step of a scenario."""

from __future__ import annotations

from collections.abc import Sequence

from trueload.protocol.model import Model
from trueload.protocol.plan import TargetCounts
from trueload.protocol.scenario import StepPlan
from trueload.protocol.sums import add_up
from trueload.protocol.tick import Sparse
from trueload.protocol.traffic import TargetPlan
from trueload.record.account import Account, TrialFacts
from trueload.record.accounts.answers import add_kinds
from trueload.record.outcomes import Outcomes
from trueload.record.sample import Sample
from trueload.record.untimed import without_time
from trueload.request.redact import redact_url
from trueload.stats import Distribution, merge_sparse

Targets = tuple[TargetCounts, ...]


class TargetRecord(Model):
    """Outcomes of one of several requests, or of a step of a scenario."""

    name: str | None
    method: str
    url: str
    weight: int
    """How often it is sent, relative to the other targets; for a step, how often in a row."""
    counts: Outcomes
    latency_ns: Distribution
    latency: Sparse
    """The times of ``latency_ns`` as a sparse histogram of two digits, as in the series."""


def of_target(target: TargetRecord) -> Sample:
    """The latency of one of several requests."""
    return Sample(merge_sparse([target.latency]), without_time(target.counts))


def renewed(targets: Sequence[TargetRecord]) -> tuple[TargetRecord, ...]:
    """The same, with their times by the rule."""
    return tuple(
        target.model_copy(update={"latency_ns": of_target(target).figures}) for target in targets
    )


def add_targets(parts: Sequence[Targets]) -> Targets:
    return tuple(
        add_up(each, kinds=add_kinds([part.kinds for part in each]))
        for each in zip(*parts, strict=True)
    )


def make_targets(found: Targets, facts: TrialFacts) -> tuple[TargetRecord, ...]:
    """What the record keeps of the window, in the plan's order."""
    planned: Sequence[StepPlan | TargetPlan] = facts.generate.scenario or facts.generate.targets
    return renewed(
        [
            TargetRecord(
                name=each.name,
                method=each.request.method,
                url=redact_url(url),
                weight=each.repeat if isinstance(each, StepPlan) else each.weight,
                counts=Outcomes.of(counts),
                latency_ns=Distribution(),
                latency=counts.latency,
            )
            for each, url, counts in zip(planned, facts.target_urls, found, strict=True)
        ]
    )


TARGETS = Account("targets", "targets", make_targets, add_targets, renew=renewed)
