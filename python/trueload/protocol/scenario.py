"""Sessions in plans and measurements, mirrored from
crates/engine/src/protocol/scenario.rs and crates/meter/src/session.rs.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from trueload.protocol.exchange import ExpectPlan, RequestPlan
from trueload.protocol.model import Model, left_out


class FromJson(Model):
    """The member of a JSON body at a JSON pointer (RFC 6901)."""

    kind: Literal["json"] = "json"
    pointer: str


class FromHeader(Model):
    """The first header of this name."""

    kind: Literal["header"] = "header"
    name: str


class FromCookie(Model):
    """The cookie of this name that the answer sets."""

    kind: Literal["cookie"] = "cookie"
    name: str


class FromRegex(Model):
    """The first group of the first match in the body."""

    kind: Literal["regex"] = "regex"
    pattern: str


FromPlan = Annotated[FromJson | FromHeader | FromCookie | FromRegex, Field(discriminator="kind")]
"""Where a value is in an answer."""


class TakePlan(Model):
    """A value that is taken from an answer."""

    value: str
    from_: FromPlan = Field(alias="from")


class AnyMessage(Model):
    """Any message."""

    kind: Literal["any"] = "any"


class BinaryMessage(Model):
    """Any binary message."""

    kind: Literal["binary"] = "binary"


class TextMessage(Model):
    """This text, which may have placeholders."""

    kind: Literal["text"] = "text"
    text: str


class PrefixMessage(Model):
    """A text that begins so; it may have placeholders."""

    kind: Literal["prefix"] = "prefix"
    text: str


class HasMessage(Model):
    """A message from which a value can be taken."""

    kind: Literal["has"] = "has"
    from_: FromPlan = Field(alias="from")
    text: str | None = left_out()
    """The value, which may have placeholders; None for any."""


MessagePlan = Annotated[
    AnyMessage | BinaryMessage | TextMessage | PrefixMessage | HasMessage,
    Field(discriminator="kind"),
]
"""What an awaited message is like."""


class MessagesPlan(Model):
    """The messages of a step of a conversation over WebSocket."""

    text: bool
    """The body of the request is sent as text, else as binary data."""
    expected: MessagePlan | None = left_out()
    """The message that ends the step; None for a step that ends when its message is sent."""
    within_ns: int | None = left_out()
    """The longest wait for that message; None for the time-out of all requests."""
    endless: bool = left_out(False)
    """Messages are awaited one after the other until the load ends."""


class ThinkPlan(Model):
    """A pause, drawn evenly between two lengths."""

    least_ns: int
    most_ns: int


NO_THINK = ThinkPlan.model_construct(least_ns=0, most_ns=0)


class UsersPlan(Model):
    """Some of the users: of each group of ``of``, ``count`` from place ``first`` (from 0) on."""

    first: int
    count: int
    of: int


class StepPlan(Model):
    """One step of every session."""

    name: str
    request: RequestPlan
    """Where messages are exchanged, its body is what is sent."""
    upgrade: bool = left_out(False)
    """The request upgrades the connection to a WebSocket."""
    messages: MessagesPlan | None = left_out()
    """Messages are exchanged instead of a request."""
    expect: ExpectPlan
    """What a good answer is."""
    take: tuple[TakePlan, ...] = left_out(())
    """What is taken from it."""
    think: ThinkPlan = NO_THINK
    """A pause before each of its requests."""
    repeat: int
    """How often its request is sent in a row."""
    users: UsersPlan | None = left_out()
    """The users that have this step; None for all."""


class Sessions(Model):
    """Whole sessions of a phase, each in the phase in which it ended."""

    begun: int
    ok: int
    failed: int
    unfinished: int
    """Sessions that had not ended when the phase did."""
    latency: dict[int, int]
    """Times of the sessions that ended well, as a sparse histogram. A session's time is the sum of
    its requests' latencies, without pauses."""
    entered: dict[int, int] = Field(default_factory=dict)
    """Ages of the sessions that were under way when the phase began, likewise; empty in older
    records."""
    cut: dict[int, int] = Field(default_factory=dict)
    """Ages of the ``unfinished`` sessions at the phase's end, likewise; empty in older records."""
