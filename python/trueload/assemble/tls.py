"""The record's account of TLS, from what was observed. Pure.

Handshakes are counted over the whole trial, as a connection that is kept is set up before the
window. Must not know: how TLS was asked for on a command line.
"""

from __future__ import annotations

from trueload.protocol.plan import Generate, Measurement, Ready, TrustAnybody
from trueload.record.schema import Tls


def make_tls_record(
    generate: Generate, ready: Ready | None, measured: tuple[Measurement, ...]
) -> Tls | None:
    """Return TLS for the record; None without TLS. ``measured`` has the phases that ended."""
    every = [generate.tls, *(origin.tls for origin in generate.origins)]
    secure = [tls for tls in every if tls is not None]
    if not secure:
        return None
    asked = secure[0]
    agreed = ready.tls if ready is not None else None
    return Tls(
        server_name=", ".join(dict.fromkeys(tls.server_name for tls in secure)),
        verification="off" if isinstance(asked.trust, TrustAnybody) else "on",
        client_certificate=asked.certificate_sha256 is not None,
        resumption=asked.resumption,
        version=agreed.version if agreed else None,
        cipher=agreed.cipher if agreed else None,
        alpn=agreed.alpn if agreed else None,
        handshakes_full=sum(phase.connections.handshakes_full for phase in measured),
        handshakes_resumed=sum(phase.connections.handshakes_resumed for phase in measured),
    )
