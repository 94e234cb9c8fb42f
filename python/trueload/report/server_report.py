"""What a reference server saw of its clients, in a few lines of text. Pure."""

from __future__ import annotations

from trueload.protocol.server_report import Concurrent, Quantiles, ServerReport
from trueload.stats import is_too_few
from trueload.units import counted, format_bound, format_duration, largest_text


def seen_lines(seen: ServerReport) -> list[str]:
    """Return lines with one fact each; what did not happen is left out."""
    connections, requests = seen.connections, seen.open_requests
    lines = [f"at once: {_most(connections, 'connections')}; {_most(requests, 'open requests')}"]
    per_s = seen.throughput_per_s
    if per_s is not None:
        lines.append(f"by its clock: {per_s:,.0f} answers/s, {seen.ok:,} of {seen.answered:,} ok")
    each = seen.requests_per_connection
    if each is not None:
        lines.append(
            f"requests per connection: {each.min:,} to {each.max:,}, median {each.p50:,};"
            f" {seen.used_once:,} of {counted(each.count, 'connection')} had one"
        )
    for name, found in (
        ("between an answer and the next request", seen.gap_ns),
        ("delayed answers were late by", seen.delay_error_ns),
    ):
        if found is not None:
            lines.append(f"{name}: {_quantiles(found)}")
    if seen.aborted or seen.half_sent or seen.dropped:
        lines.append(
            f"not answered: {seen.aborted:,} aborted by the client, {seen.dropped:,} dropped by the"
            f" server; {counted(seen.half_sent, 'connection')} ended in the middle of a request"
        )
    if seen.faults:
        shown = ", ".join(f"{count:,} {fault}" for fault, count in seen.faults.items())
        lines.append(f"on purpose: {shown}")
    return lines


def _quantiles(found: Quantiles) -> str:
    parts = [
        f"{name} {format_bound(ns, too_few=is_too_few(name, found.count))}"
        for name, ns in (("p50", found.p50), ("p99", found.p99))
    ]
    largest_of = found.count if is_too_few("p999", found.count) else None
    parts.append(f"max {largest_text(format_duration(found.max), largest_of)}")
    return ", ".join(parts)


def _most(found: Concurrent, what: str) -> str:
    return f"{found.peak:,} {what}, {found.mean:,.1f} on average"
