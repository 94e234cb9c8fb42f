"""The text for one trial of a client: its setup and claim, the server's view, the cost. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trueload.record.client import ClientEnd
from trueload.record.figures import BRIEF
from trueload.record.schema import Record
from trueload.stats import is_too_few
from trueload.text import plain
from trueload.units import (
    NS_PER_MS,
    counted,
    format_bound,
    format_count,
    format_duration,
    format_rate,
    format_share,
    format_size,
    format_span,
)
from trueload.verdict.throttling import throttled_text

NS_PER_US = 1_000


def client_headline(record: Record, client: ClientEnd) -> str:
    """Return the target, the pools and the number of requests."""
    setup, asked = client.asked.setup, client.asked
    parts = [
        f"{counted(setup.pools, 'pool')} of {setup.pool_size}",
        f"{format_count(setup.concurrency)} at once",
        counted(asked.requests, "request"),
    ]
    if asked.warmup_requests:
        parts.append(f"after {format_count(asked.warmup_requests)} of warm-up")
    if asked.files is not None:
        parts.append(f"with {counted(asked.files, 'open file')} at most")
    return f"{plain(record.plan.url)}  {', '.join(parts)}"


def client_lines(record: Record, client: ClientEnd) -> Iterator[tuple[str, str]]:
    """Yield labels and texts; an empty text is left out."""
    seen = client.seen
    yield "throughput", _rate(client.goodput_per_s)
    yield "ceiling", _ceiling(client)
    yield "claims", _claims(client)
    yield (
        "seen",
        f"{counted(seen.requests, 'request')}, {format_count(seen.ok)} answered with 200",
    )
    yield "statuses", by_count(seen.statuses)
    yield "retries", f"{format_count(client.retries)} at least" if client.retries else ""
    yield "aborted", counted(seen.aborted, "request") if seen.aborted else ""
    yield (
        "at once",
        f"{counted(seen.open_requests.peak, 'request')} at most,"
        f" {format_count(seen.open_requests.mean)} on average, over"
        f" {counted(seen.connections.peak, 'connection')}",
    )
    yield "opened", f"{counted(seen.accepted, 'new connection')}" if seen.accepted else ""
    yield "CPU", _cpu(record, client)
    throttled = record.generator.throttled_share
    yield "CPU limit", throttled_text("the client", throttled) if throttled else ""


def _rate(per_s: float | None) -> str:
    return "" if per_s is None else format_rate(per_s, "requests")


def _ceiling(client: ClientEnd) -> str:
    """The ceiling by Little's law."""
    wait = format_span(client.asked.wait_ms * NS_PER_MS)
    shown = f"{format_rate(client.ceiling_per_s, 'requests')} of {wait} each"
    share = client.ceiling_share
    return shown if share is None else f"{shown}, of which {format_share(share)}"


def _claims(client: ClientEnd) -> str:
    claim = client.claim
    parts = [f"{format_count(claim.ok)} ok"]
    if failed := by_count(claim.failed):
        parts.append(f"failed: {failed}")
    if claim.latency_us is not None:
        for name in BRIEF:
            value = getattr(claim.latency_us, name) * NS_PER_US
            few = is_too_few(name, claim.ok)
            parts.append(f"{name} {format_bound(value, too_few=few)}")
    return "; ".join(parts)


def by_count(counts: Mapping[str, int]) -> str:
    """Return counts by name, the largest first: ``status 3, reset 1``."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{plain(name)} {format_count(count)}" for name, count in ordered if count)


def _cpu(record: Record, client: ClientEnd) -> str:
    parts = []
    used, server, each = record.generator, record.server, client.cpu_ns_per_request
    if used.cpu_s is not None:
        per = f", {format_duration(each)} a request" if each is not None else ""
        peak = f", peak {format_size(used.peak_rss_bytes)}" if used.peak_rss_bytes else ""
        parts.append(f"client {used.cpu_s:.2f} s{busy_text(used.saturation)}{per}{peak}")
    if server is not None:
        parts.append(f"server {server.cpu_s:.2f} s{busy_text(server.saturation)}")
    return "   ".join(parts)


def busy_text(saturation: float | None) -> str:
    """Return how busy a program was, to follow its CPU time; empty if it is not known."""
    return "" if saturation is None else f" (busiest thread {format_share(saturation)})"
