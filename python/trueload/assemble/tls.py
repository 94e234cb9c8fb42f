"""The part of a record that is about TLS, from what was observed: pure.

Handshakes are those of the whole trial: a connection that is kept is set up before the window.
Must not know how TLS was asked for on a command line.
"""

from __future__ import annotations

from trueload.protocol.plan import Generate, Measurement, Ready, TrustAnybody
from trueload.record.schema import Tls
from trueload.stats import Buckets, decode_histogram, encode_histogram


def make_tls_record(
    generate: Generate, ready: Ready | None, measured: tuple[Measurement, ...]
) -> Tls | None:
    """TLS in the record; None without it. ``measured`` are the phases that there were."""
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


def handshake_histogram(measured: tuple[Measurement, ...]) -> str | None:
    """The handshakes of all phases as one histogram."""
    found = [each.histograms.handshake for each in measured if each.histograms.handshake]
    if len(found) < 2:
        return found[0] if found else None
    parts = [decode_histogram(each) for each in found]
    return encode_histogram(
        Buckets(
            lows=tuple(low for part in parts for low in part.lows),
            highs=tuple(high for part in parts for high in part.highs),
            counts=tuple(count for part in parts for count in part.counts),
        )
    )
