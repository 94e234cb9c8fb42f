"""What the engine is told to send: requests with the headers that they need, and what it needs for
them by name, which is the SHA-256: bodies, and certificates and keys, which so get into no record.

Pure. Must not know where anything is sent, or when.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator

from trueload.protocol.plan import (
    Blob,
    ExchangePlan,
    ExpectPlan,
    OriginPlan,
    RequestPlan,
    TargetPlan,
    TcpEchoPlan,
    TlsPlan,
    TrustAnybody,
    TrustGiven,
    TrustPlan,
    TrustSystem,
    UdpEchoPlan,
    WsBroadcastPlan,
    WsEchoPlan,
)
from trueload.request.message import Messages
from trueload.request.values import (
    Exchange,
    Expect,
    OriginSpec,
    Request,
    TargetSpec,
    TcpEcho,
    Tls,
    UdpEcho,
    WsEcho,
)
from trueload.trial.spec import TrialSpec

PLACES = ("{counter}", "{random}")
"""What each sending fills in, in a path, header values and a body."""
RANDOM = PLACES[1]


def request_plan(request: Request, close: bool) -> RequestPlan:
    """A request as it goes into a plan. One with places to fill in gets its Content-Length from the
    engine."""
    template = has_place(request)
    return RequestPlan(
        method=request.method,
        path=request.path,
        headers=_full_headers(request, close=close, length=not template),
        body_sha256=_sha256(request.body),
        template=template,
    )


def expect_plan(expect: Expect) -> ExpectPlan:
    """What counts as a good answer, as it goes into a plan."""
    return ExpectPlan(statuses=expect.statuses, body_sha256=_sha256(expect.body))


def target_plan(target: TargetSpec, close: bool) -> TargetPlan:
    """One of several requests, as it goes into a plan."""
    return TargetPlan(
        name=target.name,
        weight=target.weight,
        origin=target.origin,
        request=request_plan(target.request, close),
        expect=expect_plan(target.expect),
    )


def exchange_plan(exchange: Exchange) -> ExchangePlan:
    """What is exchanged over another protocol than HTTP, as it goes into a plan."""
    if isinstance(exchange, TcpEcho):
        return TcpEchoPlan(
            payload_sha256=_digest(exchange.messages.payload),
            size=exchange.messages.size_bytes,
            half_close=exchange.half_close,
        )
    if isinstance(exchange, UdpEcho):
        return UdpEchoPlan(
            payload_sha256=_digest(exchange.messages.payload), size=exchange.messages.size_bytes
        )
    # It is sent as it stands: a handshake has no places to fill in.
    request = exchange.opening
    opening = RequestPlan(
        method=request.method,
        path=request.path,
        headers=_full_headers(request, close=False, length=False),
        body_sha256=None,
    )
    if isinstance(exchange, WsEcho):
        return WsEchoPlan(
            opening=opening,
            payload_sha256=_digest(exchange.messages.payload),
            size=exchange.messages.size_bytes,
            text=exchange.text,
            dialect=exchange.dialect,
        )
    return WsBroadcastPlan(opening=opening, dialect=exchange.dialect, padding=exchange.padding)


def messages(spec: TrialSpec) -> Messages | None:
    """The messages of an echo; None where there are none."""
    exchange = spec.exchange
    return exchange.messages if isinstance(exchange, TcpEcho | UdpEcho | WsEcho) else None


def blobs(spec: TrialSpec) -> Iterator[Blob]:
    """Everything that the plan of a trial names, once: bodies, messages, certificates and keys."""
    asked = [(target.request, target.expect) for target in spec.targets]
    if spec.request is not None:
        asked.append((spec.request, spec.expect))
    named = {body for request, expect in asked for body in (request.body, expect.body)}
    named |= {text for tls in spec.every_tls for text in (tls.issuers, tls.certificate, tls.key)}
    echoed = messages(spec)
    named.add(echoed.payload if echoed else None)
    for data in sorted(named - {None}, key=lambda data: data or b""):
        assert data is not None
        yield Blob(sha256=_digest(data), base64=base64.b64encode(data).decode())


def origin_plan(origin: OriginSpec) -> OriginPlan:
    """One of several origins as it goes into a plan."""
    return OriginPlan(addresses=origin.addresses, tls=tls_plan(origin.tls))


def tls_plan(tls: Tls | None) -> TlsPlan | None:
    """TLS as it goes into a plan, which names certificates and keys only."""
    if tls is None:
        return None
    return TlsPlan(
        server_name=tls.server_name,
        alpn=tls.alpn,
        trust=_trust(tls),
        certificate_sha256=_sha256(tls.certificate),
        key_sha256=_sha256(tls.key),
        resumption=tls.resumption,
    )


def _trust(tls: Tls) -> TrustPlan:
    if tls.issuers is not None:
        return TrustGiven(sha256=_digest(tls.issuers))
    return TrustAnybody() if tls.trust == "anybody" else TrustSystem()


def has_place(request: Request, places: tuple[str, ...] = PLACES) -> bool:
    """Whether a request has places to fill in."""
    texts = (request.path, *(value for _, value in request.headers))
    body = request.body or b""
    return any(place in text for place in places for text in texts) or any(
        place.encode() in body for place in places
    )


def _full_headers(request: Request, *, close: bool, length: bool) -> tuple[tuple[str, str], ...]:
    names = {name.lower() for name, _ in request.headers}
    first = () if "host" in names else (("Host", request.host),)
    last: list[tuple[str, str]] = []
    if request.body is not None and length:
        last.append(("Content-Length", str(len(request.body))))
    if close:
        last.append(("Connection", "close"))
    return (*first, *request.headers, *last)


def _sha256(body: bytes | None) -> str | None:
    return None if body is None else _digest(body)


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
