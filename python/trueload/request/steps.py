"""The steps of a scenario as values, and in the form of a plan. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trueload.protocol.scenario import (
    FromPlan,
    MessagePlan,
    MessagesPlan,
    StepPlan,
    TakePlan,
    ThinkPlan,
    UsersPlan,
)
from trueload.request.plans import expect_plan, request_plan
from trueload.request.values import ANY_ANSWER, Expect, Request


@dataclass(frozen=True, kw_only=True)
class Messages:
    """What a step of a conversation sends, as text or as binary data, and what it waits for;
    ``endless``: one message after the other, until the load ends."""

    text: bool
    expected: MessagePlan | None
    within_ns: int | None = None
    endless: bool = False


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
    upgrade: bool = False
    """The request upgrades its connection to a WebSocket."""
    messages: Messages | None = None
    """Messages are exchanged; the request's body is what is sent."""
    users: UsersPlan | None = None
    """The users that have this step; None for all."""

    @property
    def texts(self) -> Iterator[str]:
        """The texts that may have places for values."""
        yield from (self.request.path, *(value for _, value in self.request.headers))
        yield (self.request.body or b"").decode("latin-1")
        if self.messages is not None:
            yield getattr(self.messages.expected, "text", None) or ""


def step_plan(step: StepSpec) -> StepPlan:
    """A step in the form of a plan. The engine fills in values, and sets the Content-Length."""
    least_ns, most_ns = step.think_ns
    of_messages = None
    if step.messages is not None:
        of_messages = MessagesPlan(**vars(step.messages))
    return StepPlan(
        name=step.name,
        request=request_plan(step.request, close=False, template=True),
        upgrade=step.upgrade,
        messages=of_messages,
        expect=expect_plan(step.expect),
        take=tuple(
            TakePlan.model_validate({"value": value, "from": found}) for value, found in step.take
        ),
        think=ThinkPlan(least_ns=least_ns, most_ns=most_ns),
        repeat=step.repeat,
        users=step.users,
    )
