"""The blobs that a plan refers to by name: bodies, messages, certificates, keys, data, and recorded
traffic.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator

from trueload.errors import UserError
from trueload.protocol.plan import Blob, Generate
from trueload.request.plans import digest
from trueload.trial.spec import TrialSpec


def blobs(spec: TrialSpec) -> Iterator[Blob]:
    """Yield each blob that the plan of a trial names once: bodies, messages, certificates, keys."""
    asked = [(target.request, target.expect) for target in spec.targets]
    asked += [(step.request, step.expect) for step in spec.scenario]
    if spec.request is not None:
        asked.append((spec.request, spec.expect))
    named = {body for request, expect in asked for body in (request.body, expect.body)}
    for tls in spec.every_tls:
        named |= {tls.issuers, tls.certificate, tls.key, tls.tunnel}
    if spec.exchange is not None and spec.exchange.messages is not None:
        named.add(spec.exchange.messages.payload)
    for data in sorted(named - {None}, key=lambda data: data or b""):
        assert data is not None
        yield _blob(data)


def pieces(spec: TrialSpec, plan: Generate) -> Iterator[Blob]:
    """Yield the pieces of recorded traffic that a plan names, and those of data if its engines
    cannot read the file. Raises ``UserError``."""
    if spec.replay is not None:
        yield from map(_blob, spec.replay.pieces(close=spec.load.close))
    if spec.data is None or plan.data is None or not plan.data.blobs:
        return
    names = list(plan.data.blobs)
    for number, piece in enumerate(spec.data.pieces()):
        if digest(piece) != (names[number] if number < len(names) else None):
            raise UserError(f"{spec.data.shown} has changed meanwhile", "start again")
        if names[number] not in names[:number]:
            yield _blob(piece)


def _blob(data: bytes) -> Blob:
    return Blob(sha256=digest(data), base64=base64.b64encode(data).decode())
