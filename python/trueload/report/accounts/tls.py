"""TLS: what was agreed, and how many handshakes there were."""

from __future__ import annotations

from trueload.record.schema import Record
from trueload.report.account import AccountView
from trueload.text import plain
from trueload.units import format_count, format_duration


def tls_text(record: Record) -> str:
    """Return a text about TLS; empty without TLS.

    Example: ``TLSv1.3, TLS_AES_128_GCM_SHA256, 64 handshakes (12 resumed), verification off``.
    """
    found = record.tls
    if found is None:
        return ""
    parts = [plain(part) for part in (found.version, found.cipher) if part is not None]
    count = found.handshakes_full + found.handshakes_resumed
    if count:
        parts.append(f"{format_count(count)} {'handshake' if count == 1 else 'handshakes'}")
        if found.handshakes_resumed:
            parts[-1] += f" ({format_count(found.handshakes_resumed)} resumed)"
        if (median_ns := record.handshake_ns.known("p50")) is not None:
            parts[-1] += f" p50 {format_duration(median_ns)}"
    if found.verification == "off":
        parts.append("verification off")
    return ", ".join(parts)


TLS = AccountView(name="tls", after="reasons", lines=lambda record: [("TLS", tls_text(record))])
