"""What a reference server saw of its clients, in a few lines for people. Pure."""

from __future__ import annotations

from trueload.protocol.plan import Concurrent, Seen
from trueload.units import format_duration


def seen_lines(seen: Seen) -> list[str]:
    """Each of them says one thing; what did not happen is left out."""
    connections, requests = seen.connections, seen.open_requests
    lines = [f"at once: {_most(connections, 'connections')}; {_most(requests, 'open requests')}"]
    per_s = seen.throughput_per_s
    if per_s is not None:
        lines.append(f"by its clock: {per_s:,.0f} answers/s, {seen.ok:,} of {seen.answered:,} ok")
    each = seen.requests_per_connection
    if each is not None:
        lines.append(
            f"requests per connection: {each.min:,} to {each.max:,}, median {each.p50:,};"
            f" {seen.used_once:,} of {each.count:,} connections had one"
        )
    for name, found in (
        ("between an answer and the next request", seen.gap_ns),
        ("delayed answers were late by", seen.delay_error_ns),
    ):
        if found is not None:
            figures = (("p50", found.p50), ("p99", found.p99), ("max", found.max))
            shown = ", ".join(f"{rank} {format_duration(ns)}" for rank, ns in figures)
            lines.append(f"{name}: {shown}")
    if seen.aborted or seen.half_sent or seen.dropped:
        lines.append(
            f"not answered: {seen.aborted:,} aborted by the client, {seen.dropped:,} dropped by the"
            f" server; {seen.half_sent:,} connections ended in the middle of a request"
        )
    if seen.faults:
        shown = ", ".join(f"{count:,} {fault}" for fault, count in seen.faults.items())
        lines.append(f"on purpose: {shown}")
    return lines


def _most(found: Concurrent, what: str) -> str:
    return f"{found.peak:,} {what}, {found.mean:,.1f} on average"
