"""Reasons of failures as text, and a hint if no TLS handshake succeeds.

Pure. Reasons may quote the peer's certificate, so they are shown as plain text.
"""

from __future__ import annotations

from collections.abc import Mapping

from trueload.record.schema import Record
from trueload.text import plain

NO_TRUST = "--cacert FILE trusts its issuer, --insecure trusts anybody (the record says so)"

_HINTS = {
    "tls.protocol": "does it speak TLS there? without it write {plain}://",
    "tls.eof": "does it speak TLS there? without it write {plain}://",
    "timeout.tls": "does it speak TLS there? without it write {plain}://; or a longer --timeout",
    "tls.version": "trueload speaks TLS 1.2 and 1.3",
    "tls.alpn": "the server must speak HTTP/1.1",
    "tls.alert": "the server's log says more; if it wants a certificate, --cert FILE --key FILE",
}


def reasons_text(reasons: Mapping[str, str]) -> str:
    """Return reasons as text: ``tls.cert: its certificate has expired``."""
    return "; ".join(f"{plain(name)}: {plain(why)}" for name, why in sorted(reasons.items()))


def failure_reasons(record: Record) -> str:
    """Return the reasons of failures that requests met.

    A failed attempt to connect before the first request is no loss.
    """
    met = record.counts.failed.keys() | record.warmup.counts.failed.keys()
    found = record.connections.reasons
    return reasons_text({name: why for name, why in found.items() if name in met})


def tls_hint(failed: Mapping[str, int], reasons: Mapping[str, str], unsealed: str) -> str | None:
    """Return what to do about the most frequent TLS failure; None if there is none.

    `unsealed` is the scheme of the same protocol without TLS.
    """
    met = [name for name in failed if name.startswith("tls.") or name == "timeout.tls"]
    if not met:
        return None
    name = max(met, key=lambda each: failed[each])
    if name != "tls.cert":
        hint = _HINTS.get(name)
        return hint and hint.format(plain=unsealed)
    why = reasons.get(name, "")
    if " is not for " in why:
        return "ask for it by a name of its certificate, or --insecure (the record says so)"
    if any(part in why for part in ("expired", "not valid yet", "X.509")):
        return "renew it, or --insecure measures anyway (the record says so)"
    return NO_TRUST
