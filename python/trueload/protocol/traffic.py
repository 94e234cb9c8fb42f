"""What is sent, in the form of a plan, and what counts as a good answer."""

from __future__ import annotations

from pydantic import Field

from trueload.protocol.data import DataPlan
from trueload.protocol.exchange import ExchangePlan, RequestPlan, WindowsPlan
from trueload.protocol.expect import ExpectPlan
from trueload.protocol.model import Model
from trueload.protocol.origins import OriginPlan
from trueload.protocol.replay import ReplayPlan
from trueload.protocol.request_options import DialogueOptions
from trueload.protocol.scenario import StepPlan
from trueload.protocol.streams import StreamPlan
from trueload.protocol.tls import TlsPlan


class TargetPlan(Model):
    """One of several requests, which take turns by ``weight``; ``origin`` is its origin's index."""

    name: str | None
    weight: int
    origin: int = Field(default=0, exclude_if=lambda value: value == 0)
    request: RequestPlan
    expect: ExpectPlan


class TrafficPlan(DialogueOptions):
    """What is sent: one of ``request``, ``targets``, ``scenario``, ``replay`` and ``exchange``."""

    request: RequestPlan | None
    expect: ExpectPlan
    targets: tuple[TargetPlan, ...] = ()
    """Sent in turns."""
    scenario: tuple[StepPlan, ...] = Field(default=(), exclude_if=lambda value: value == ())
    """Sent in sessions."""
    replay: ReplayPlan | None = Field(default=None, exclude_if=lambda value: value is None)
    """Recorded requests."""
    exchange: ExchangePlan | None = Field(default=None, exclude_if=lambda value: value is None)
    """The protocol, if it is not HTTP."""
    data: DataPlan | None = Field(default=None, exclude_if=lambda value: value is None)
    """Rows that fill the requests' placeholders."""
    http2: WindowsPlan | None = Field(default=None, exclude_if=lambda value: value is None)
    """Requests go over HTTP/2, with ``pipeline`` streams at once on each connection."""
    stream: StreamPlan | None = Field(default=None, exclude_if=lambda value: value is None)
    """The parts of answers are timed."""
    local_addresses: tuple[str, ...]
    tls: TlsPlan | None = None
    origins: tuple[OriginPlan, ...] = Field(default=(), exclude_if=lambda value: value == ())
    """Each has its own addresses and TLS."""
