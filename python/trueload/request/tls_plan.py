"""What the engine is told of TLS: certificates and keys as blobs, named in the plan by SHA-256.

Pure. The plan and the record hold names only, so that a key gets into neither. Must not know how
files are read or what a handshake agreed on.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence

from trueload.protocol.plan import (
    Blob,
    OriginPlan,
    TlsPlan,
    TrustAnybody,
    TrustGiven,
    TrustPlan,
    TrustSystem,
)
from trueload.request.values import OriginSpec, Tls


def tls_plan(tls: Tls | None) -> TlsPlan | None:
    """TLS as it goes into a plan."""
    if tls is None:
        return None
    return TlsPlan(
        server_name=tls.server_name,
        alpn=tls.alpn,
        trust=_trust(tls),
        certificate_sha256=_name(tls.certificate),
        key_sha256=_name(tls.key),
        resumption=tls.resumption,
    )


def origin_plan(origin: OriginSpec) -> OriginPlan:
    """One of several origins as it goes into a plan."""
    return OriginPlan(addresses=origin.addresses, tls=tls_plan(origin.tls))


def tls_blobs(every: Sequence[Tls]) -> Iterator[Blob]:
    """Every PEM text that the plan names, once."""
    texts = {text for tls in every for text in (tls.issuers, tls.certificate, tls.key)}
    for text in texts - {None}:
        assert text is not None
        yield Blob(sha256=_name(text) or "", base64=base64.b64encode(text).decode())


def _trust(tls: Tls) -> TrustPlan:
    if tls.issuers is not None:
        return TrustGiven(sha256=hashlib.sha256(tls.issuers).hexdigest())
    return TrustAnybody() if tls.trust == "anybody" else TrustSystem()


def _name(text: bytes | None) -> str | None:
    return None if text is None else hashlib.sha256(text).hexdigest()
