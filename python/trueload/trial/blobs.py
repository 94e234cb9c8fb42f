"""The blobs that a plan refers to by name: bodies, messages, certificates, keys, data, and recorded
traffic.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator

from trueload.errors import UserError
from trueload.protocol.plan import Blob, Generate
from trueload.request.plans import digest
from trueload.request.traffic import Traffic


def blobs(traffic: Traffic) -> Iterator[Blob]:
    """Yield each blob that a plan names once: bodies, messages, certificates, keys."""
    named = {body for request, expect in traffic.pairs for body in (request.body, expect.body)}
    for tls in traffic.every_tls:
        named |= {tls.issuers, tls.certificate, tls.key, tls.tunnel}
    if traffic.exchange is not None and traffic.exchange.messages is not None:
        named.add(traffic.exchange.messages.payload)
    for data in sorted(named - {None}, key=lambda data: data or b""):
        assert data is not None
        yield _blob(data)


def pieces(traffic: Traffic, plan: Generate) -> Iterator[Blob]:
    """Yield the pieces of recorded traffic that a plan names, and those of data if its engines
    cannot read the file. Raises ``UserError``."""
    if traffic.replay is not None:
        yield from map(_blob, traffic.replay.pieces(close=plan.close))
    if traffic.data is None or plan.data is None or not plan.data.blobs:
        return
    names = list(plan.data.blobs)
    for number, piece in enumerate(traffic.data.pieces()):
        if digest(piece) != (names[number] if number < len(names) else None):
            raise UserError(f"{traffic.data.shown} has changed meanwhile", "start again")
        if names[number] not in names[:number]:
            yield _blob(piece)


def _blob(data: bytes) -> Blob:
    return Blob(sha256=digest(data), base64=base64.b64encode(data).decode())
