"""The steps of a scenario as values, and in the form of a plan. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from trueload.protocol.scenario import FromPlan, StepPlan, TakePlan, ThinkPlan
from trueload.request.plans import expect_plan, request_plan
from trueload.request.values import ANY_ANSWER, Expect, Request


@dataclass(frozen=True, kw_only=True)
class StepSpec:
    """One step of every session. ``url`` and ``name`` are shown and stored, and hold no secret.
    ``take`` has, for each value, where it is in the answer. Before each of the ``repeat`` requests
    the user pauses for a time drawn between the two of ``think_ns``."""

    name: str
    url: str
    request: Request
    expect: Expect = ANY_ANSWER
    take: tuple[tuple[str, FromPlan], ...] = ()
    think_ns: tuple[int, int] = (0, 0)
    repeat: int = 1


def step_plan(step: StepSpec) -> StepPlan:
    """A step in the form of a plan. The engine fills in values, and sets the Content-Length."""
    least_ns, most_ns = step.think_ns
    return StepPlan(
        name=step.name,
        request=request_plan(step.request, close=False, template=True),
        expect=expect_plan(step.expect),
        take=tuple(
            TakePlan.model_validate({"value": value, "from": found}) for value, found in step.take
        ),
        think=ThinkPlan(least_ns=least_ns, most_ns=most_ns),
        repeat=step.repeat,
    )
