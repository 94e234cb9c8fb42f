"""Converts what is to be sent into the form of a plan. Pure.

Requests get the headers that they need. Bodies, certificates and keys appear only as their SHA-256,
so that no record contains them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from trueload.protocol.exchange import ExpectPlan, RequestPlan
from trueload.protocol.origins import OriginPlan
from trueload.protocol.tls import TlsPlan, TrustAnybody, TrustGiven, TrustPlan, TrustSystem
from trueload.protocol.traffic import TargetPlan
from trueload.request.environment import BEGIN
from trueload.request.values import Expect, OriginSpec, Request, TargetSpec, Tls

NUMBERS = ("counter", "random")
"""Numbers that each sending fills in, in a path, header values and a body."""
_HAS_CONTENT = ("POST", "PUT", "PATCH")
"""Methods whose requests say so if they have no body (RFC 9110, 8.6)."""


def request_plan(
    request: Request, close: bool, columns: Sequence[str] = (), *, template: bool = False
) -> RequestPlan:
    """A request in the form of a plan. If it has placeholders, as every ``template`` may, the
    engine sets its Content-Length. ``columns`` are those of data."""
    template = template or has_place(request, (*places_of((*NUMBERS, *columns)), BEGIN))
    return RequestPlan(
        method=request.method,
        path=request.path,
        headers=full_headers(request, close=close, length=not template),
        body_sha256=_sha256(request.body),
        template=template,
    )


def expect_plan(expect: Expect) -> ExpectPlan:
    """What counts as a good answer, in the form of a plan."""
    return ExpectPlan(statuses=expect.statuses, body_sha256=_sha256(expect.body))


def target_plan(target: TargetSpec, close: bool, columns: Sequence[str] = ()) -> TargetPlan:
    """One of several requests, in the form of a plan."""
    return TargetPlan(
        name=target.name,
        weight=target.weight,
        origin=target.origin,
        request=request_plan(target.request, close, columns),
        expect=expect_plan(target.expect),
    )


def origin_plan(origin: OriginSpec) -> OriginPlan:
    """One of several origins, in the form of a plan."""
    return OriginPlan(addresses=origin.addresses, tls=tls_plan(origin.tls))


def tls_plan(tls: Tls | None) -> TlsPlan | None:
    """TLS in the form of a plan, which names certificates and keys only."""
    if tls is None:
        return None
    return TlsPlan(
        server_name=tls.server_name,
        alpn=tls.alpn,
        alpn_required=tls.alpn_required,
        trust=_trust(tls),
        certificate_sha256=_sha256(tls.certificate),
        key_sha256=_sha256(tls.key),
        resumption=tls.resumption,
        tunnel_sha256=_sha256(tls.tunnel),
    )


def _trust(tls: Tls) -> TrustPlan:
    if tls.issuers is not None:
        return TrustGiven(sha256=digest(tls.issuers))
    return TrustAnybody() if tls.trust == "anybody" else TrustSystem()


def places_of(columns: Sequence[str]) -> tuple[str, ...]:
    """How the placeholders of values begin."""
    begins = (f"{{{plus}{name}" for name in columns for plus in ("", "+"))
    return tuple(f"{begin}{end}" for begin in begins for end in "}|")


def has_place(request: Request, places: tuple[str, ...]) -> bool:
    """Whether a request has placeholders to fill in."""
    texts = (request.path, *(value for _, value in request.headers))
    body = request.body or b""
    return any(place in text for place in places for text in texts) or any(
        place.encode() in body for place in places
    )


def full_headers(request: Request, *, close: bool, length: bool) -> tuple[tuple[str, str], ...]:
    """The user's headers, with Host, Content-Length and Connection where they are needed."""
    names = {name.lower() for name, _ in request.headers}
    first = () if "host" in names else (("Host", request.host),)
    last: list[tuple[str, str]] = []
    if request.body is not None and length:
        last.append(("Content-Length", str(len(request.body))))
    elif request.body is None and request.method in _HAS_CONTENT:
        last.append(("Content-Length", "0"))
    headers = request.headers
    if close:
        headers = tuple(pair for pair in headers if pair[0].lower() != "connection")
        last.append(("Connection", "close"))
    return (*first, *headers, *last)


def _sha256(body: bytes | None) -> str | None:
    return None if body is None else digest(body)


def digest(body: bytes) -> str:
    """The name of a blob in a plan: its SHA-256."""
    return hashlib.sha256(body).hexdigest()
