"""Answers that are streams: how their parts are told apart, and what the engine saw of them
(crates/meter/src/streams.rs)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from trueload.protocol.model import Model
from trueload.protocol.request_options import StreamKind


class EndContent(Model):
    """The stream ends with a part that has this content and no other."""

    kind: Literal["content"] = "content"
    text: str


class EndEvent(Model):
    """The stream ends with a server-sent event of this type."""

    kind: Literal["event"] = "event"
    name: str


StreamEnd = Annotated[EndContent | EndEvent, Field(discriminator="kind")]
"""What must follow the last part; it is not counted as a part."""


class StreamPlan(Model):
    """How answers are read as streams."""

    kind: StreamKind
    end: StreamEnd | None = None
    """What must follow the last part; null for the end of the body."""
    stall_ns: int | None = None
    """The longest time without a part once the first has come; null for any time."""


class StreamHistograms(Model):
    """HdrHistogram V2 compressed, base64; null if empty."""

    first_part: str | None = None
    """From the scheduled send to the first part, of streams that came to their end."""
    gap: str | None = None
    """From one part to the next, of all streams."""
    parts_per_answer: str | None = None
    """The number of parts, of streams that came to their end."""


class Streams(Model):
    """The parts of a phase."""

    parts: int
    """Also those of streams that failed."""
    together: int
    """Parts that came with the part before them, so that their gaps are 0."""
    whole: int
    """Streams that came to their end."""
    histograms: StreamHistograms
