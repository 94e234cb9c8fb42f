"""What is sent, and what counts as a good answer: one value from the command line to the plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from trueload.errors import UserError
from trueload.protocol.data import DataPlan
from trueload.protocol.exchange import WindowsPlan
from trueload.protocol.request_options import DialogueOptions
from trueload.protocol.streams import StreamPlan
from trueload.protocol.traffic import TrafficPlan
from trueload.request.data import DataFile
from trueload.request.environment import environment_of
from trueload.request.exchange import Exchange
from trueload.request.plans import (
    expect_plan,
    has_place,
    origin_plan,
    places_of,
    request_plan,
    target_plan,
    tls_plan,
)
from trueload.request.proxy import Proxy
from trueload.request.steps import StepSpec, step_plan
from trueload.request.url import Url
from trueload.request.values import ANY_ANSWER, Expect, OriginSpec, Request, TargetSpec, Tls

if TYPE_CHECKING:
    from trueload.request.replay import Replay

AS_IT_COMES = DialogueOptions()


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """What is sent: one of ``request``, ``targets``, ``scenario``, ``replay`` and ``exchange``."""

    request: Request | None = None
    expect: Expect = ANY_ANSWER
    targets: tuple[TargetSpec, ...] = ()
    """Sent in turns."""
    scenario: tuple[StepSpec, ...] = ()
    """Sent in sessions."""
    ignore_unexpected: bool = False
    """Messages that no step of a conversation expects are allowed."""
    replies: tuple[tuple[str, str], ...] = ()
    """Texts of the server that are answered at once, and their answers."""
    deflate: bool = False
    """Connections over WebSocket offer permessage-deflate."""
    replay: Replay | None = None
    """Recorded requests."""
    exchange: Exchange | None = None
    """The protocol, if it is not HTTP."""
    data: DataFile | None = None
    """Rows that fill the requests' placeholders."""
    http2: WindowsPlan | None = None
    """Requests go over HTTP/2."""
    stream: StreamPlan | None = None
    """The parts of answers are timed."""
    dialogue: DialogueOptions = AS_IT_COMES
    local_addresses: tuple[str, ...] = ()
    tls: Tls | None = None
    origins: tuple[OriginSpec, ...] = ()
    """The origins of the targets, if there are several. Each has its own TLS."""

    @property
    def pairs(self) -> Iterator[tuple[Request, Expect]]:
        """Each request that is sent, and what is a good answer to it."""
        if self.request is not None:
            yield self.request, self.expect
        yield from ((target.request, target.expect) for target in self.targets)
        yield from ((step.request, step.expect) for step in self.scenario)

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the variables that the requests name, with their values. Raises ``UserError``."""
        opening = None if self.exchange is None else self.exchange.opening
        sent = [request for request, _ in self.pairs]
        return environment_of(sent if opening is None else [opening, *sent], environ)

    @property
    def shown_urls(self) -> tuple[str, ...]:
        """The URL of each target, or of each step."""
        targets, steps = self.targets, self.scenario
        return (*(target.url for target in targets), *(step.url for step in steps))

    @property
    def message_bytes(self) -> int | None:
        """The size of one message of an echo; None for another exchange."""
        echoed = self.exchange.messages if self.exchange is not None else None
        return None if echoed is None else echoed.size_bytes

    @property
    def every_tls(self) -> tuple[Tls, ...]:
        """The TLS settings of each origin that has TLS."""
        found = (self.tls, *(origin.tls for origin in self.origins))
        return tuple(each for each in found if each is not None)

    @property
    def has_random(self) -> bool:
        """Whether the requests contain random parts, or random pauses between them."""
        if any(least < most for least, most in (step.think_ns for step in self.scenario)):
            return True
        if self.data is not None and self.data.order == "shuffled":
            return True
        return any(has_place(request, places_of(("random",))) for request, _ in self.pairs)

    def through(self, proxy: Proxy, origins: Sequence[Url]) -> Traffic:
        """Return what goes through a proxy to these origins. Raises ``UserError``."""
        if self.http2 is not None and not all(origin.is_secure for origin in origins):
            raise UserError(
                "HTTP/2 without TLS cannot go through a proxy", "use an https:// URL, or --http 1.1"
            )

        def sent(request: Request, origin: int = 0) -> Request:
            return proxy.through(request, origins[origin])

        return replace(
            self,
            request=self.request and sent(self.request),
            targets=tuple(
                replace(each, request=sent(each.request, each.origin)) for each in self.targets
            ),
            scenario=tuple(replace(step, request=sent(step.request)) for step in self.scenario),
            replay=self.replay and replace(self.replay, through=sent),
            tls=self.tls and replace(self.tls, tunnel=proxy.tunnel(origins[0])),
        )

    def plan(self, *, close: bool, is_here: bool) -> TrafficPlan:
        """Return what is sent in the form of a plan, with the headers that the requests need.

        ``is_here``: all engines are on this machine, and can read its files. Raises ``UserError``
        if data must be sent to others, and cannot be read.
        """
        data: DataPlan | None = None if self.data is None else self.data.plan(is_here=is_here)
        columns = () if data is None else data.columns
        # Not validated: it becomes part of a plan, which is.
        return TrafficPlan.model_construct(
            **self.dialogue.given,
            request=None if self.request is None else request_plan(self.request, close, columns),
            expect=expect_plan(self.expect),
            targets=tuple(target_plan(target, close, columns) for target in self.targets),
            scenario=tuple(step_plan(step) for step in self.scenario),
            ignore_unexpected=self.ignore_unexpected,
            replies=self.replies,
            deflate=self.deflate,
            replay=None if self.replay is None else self.replay.plan(close=close),
            exchange=None if self.exchange is None else self.exchange.plan(),
            data=data,
            http2=self.http2,
            stream=self.stream,
            local_addresses=self.local_addresses,
            tls=None if self.origins else tls_plan(self.tls),
            origins=tuple(origin_plan(origin) for origin in self.origins),
        )
