"""TLS: what was agreed, and the handshakes of the whole trial, as a connection that is kept is set
up before the window."""

from __future__ import annotations

from typing import Literal

from trueload.protocol.model import Model
from trueload.protocol.tls import TrustAnybody
from trueload.record.account import Account, TrialFacts


class Tls(Model):
    """TLS of a trial."""

    server_name: str
    verification: Literal["on", "off"]
    """``off`` under ``--insecure``: nobody vouches for the identity of the server then."""
    client_certificate: bool
    resumption: bool
    version: str | None
    """TLS version of the first handshake, as are ``cipher`` and ``alpn``; null without a
    handshake."""
    cipher: str | None
    alpn: str | None
    handshakes_full: int
    handshakes_resumed: int


def make_tls(_: None, facts: TrialFacts) -> Tls | None:
    """What the record keeps; None without TLS."""
    every = [facts.generate.tls, *(origin.tls for origin in facts.generate.origins)]
    secure = [tls for tls in every if tls is not None]
    if not secure:
        return None
    asked, agreed = secure[0], facts.ready.tls if facts.ready is not None else None
    return Tls(
        server_name=", ".join(dict.fromkeys(tls.server_name for tls in secure)),
        verification="off" if isinstance(asked.trust, TrustAnybody) else "on",
        client_certificate=asked.certificate_sha256 is not None,
        resumption=asked.resumption,
        version=agreed.version if agreed else None,
        cipher=agreed.cipher if agreed else None,
        alpn=agreed.alpn if agreed else None,
        handshakes_full=sum(phase.connections.handshakes_full for phase in facts.phases),
        handshakes_resumed=sum(phase.connections.handshakes_resumed for phase in facts.phases),
    )


TLS = Account("tls", None, make_tls)
