"""What the engine is told to send: requests with the headers that they need, bodies by their name.

Pure. Must not know where anything is sent, or when.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator

from trueload.plan import Blob, ExpectPlan, RequestPlan, TargetPlan
from trueload.spec import Expect, Request, TargetSpec, TrialSpec

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
        request=request_plan(target.request, close),
        expect=expect_plan(target.expect),
    )


def blobs(spec: TrialSpec) -> Iterator[Blob]:
    """Every body that the plan of a trial names, once."""
    asked = [(target.request, target.expect) for target in spec.targets]
    if spec.request is not None:
        asked.append((spec.request, spec.expect))
    bodies = {body for request, expect in asked for body in (request.body, expect.body)}
    for body in sorted(bodies - {None}, key=lambda body: body or b""):
        assert body is not None
        yield Blob(sha256=_sha256(body) or "", base64=base64.b64encode(body).decode())


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
    return None if body is None else hashlib.sha256(body).hexdigest()
