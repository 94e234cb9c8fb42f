"""Checks of HTTP/2: was it spoken, were all streams in flight, and who had to wait?

Pure functions of a record.
"""

from __future__ import annotations

from trueload.protocol.plan import Duration
from trueload.record import figures
from trueload.record.accounts.http2 import Http2, WaitShares
from trueload.record.schema import Record
from trueload.units import format_count, format_share
from trueload.verdict.common import (
    Definition,
    Finding,
    in_one_line,
    is_closed,
    is_staged,
    not_applicable,
    times,
    too_short,
)

ALPN = "tls.alpn"
STREAMS_WARN = 0.95  # of what was asked for: below this it is another concurrency
FLOW_WARN = 0.10  # of the time in flight: a figure that is off by more is another figure
# A returned request costs its client a second try, as a stale one does.
RETURNED_WARN = 0.01

NOT_HTTP2 = "HTTP/2 is not spoken"
NOT_A_GENERATOR = "it is about our generator's connections"

WINDOWS: dict[str, str] = {
    "receive_connection": "answers waited for our window of the connection (--connection-window)",
    "receive_stream": "answers waited for our window of their stream (--window)",
    "send_connection": "our bodies waited for the server's window of the connection",
    "send_stream": "our bodies waited for the server's window of their stream",
}
"""For each field of `WaitShares` about a window: who waited, and for whose window."""


def check_protocol(record: Record) -> Finding:
    """Check for connections that did not speak the version that was asked for."""
    if record.plan.generate.http2 is None:
        return not_applicable("HTTP/2 was not asked for")
    found = record.http2
    if found is None:
        return not_applicable("nothing was measured")
    if is_chosen(record):
        return Finding("pass", f"{versions_text(found)}, as the server chose", 0, 0)
    by_alpn = sum(
        failed.get(ALPN, 0)
        for failed in (
            record.connections.failed,
            record.counts.failed,
            record.warmup.counts.failed,
        )
    )
    others = found.http1 + by_alpn
    spoke = f"{times(found.connections, 'connection')} spoke HTTP/2"
    if not others:
        if not found.connections:
            return not_applicable("no connection became usable")
        return Finding("pass", spoke, 0, 0)
    parts = [
        spoke,
        f"to {times(found.http1, 'attempt')} the server answered in HTTP/1" if found.http1 else "",
        f"{times(by_alpn, 'handshake')} did not agree on it (ALPN)" if by_alpn else "",
    ]
    return Finding("fail", in_one_line(parts), others, 0)


PROTOCOL = Definition(
    name="protocol",
    order=17,
    compute=check_protocol,
    of_client=NOT_A_GENERATOR,
    fault="subject",
    meaning=(
        "All connections must use the version of HTTP that was asked for, or the figure"
        " mixes two protocols."
    ),
    remedy=(
        "Look at what lies behind the address: a balancer may have servers that do not speak"
        " HTTP/2. `--http 1.1` asks for HTTP/1.1 instead."
    ),
)


def check_streams(record: Record) -> Finding:
    """Compare the mean number of streams in flight with the number that a closed loop asks for."""
    found, generate = record.http2, record.plan.generate
    if found is None:
        return not_applicable(NOT_HTTP2)
    if is_chosen(record) and found.http1:
        return not_applicable("connections of HTTP/1.1 are among those measured")
    if not is_closed(record):
        return not_applicable("the load does not ask for a number at once (no closed loop)")
    if is_staged(record):
        return not_applicable("the load itself changes (--stages)")
    if generate.close:
        return not_applicable("each request has a connection of its own (--close)")
    if found.streams is None or record.slots is None:
        return not_applicable("nothing was measured")
    if short := too_short(record):
        return not_applicable(short)
    asked = _asked_at_once(record)
    if asked <= 0:
        return not_applicable("nothing was asked for")
    share = found.streams / asked
    count = f"{found.streams:.1f} streams in flight on average, {asked:,.1f} asked for"
    streams_text = f"{count}; {permitted_text(found)}"
    if share >= STREAMS_WARN:
        return Finding("pass", streams_text, share, STREAMS_WARN)
    ended = f"the server ended {times(found.goaways, 'connection')} (GOAWAY)"
    parts = [streams_text, ended if found.goaways else "", _waited_text(found)]
    return Finding("warn", in_one_line(parts), share, STREAMS_WARN)


def _asked_at_once(record: Record) -> float:
    """Return the number of streams asked for: connections x streams.

    If the window ends by count, requests run out on one connection before others, and the users of
    a scenario pause. Then it is the mean number that the load permitted, without the time that the
    generator took to send it.
    """
    window, generate = record.plan.window, record.plan.generate
    if isinstance(window.stop, Duration) and not generate.scenario:
        connections = window.connections or generate.connections
        return (connections - window.idle) * generate.pipeline
    permitted_ns = record.slots.permitted_ns if record.slots is not None else 0
    lag = figures.complete(record.histograms.send_lag).figures
    return max(permitted_ns - (lag.mean or 0) * lag.count, 0) / record.window.window_ns


def is_chosen(record: Record) -> bool:
    """Whether the server chooses the protocol on each connection."""
    http2 = record.plan.generate.http2
    return http2 is not None and http2.is_chosen


def versions_text(found: Http2) -> str:
    """Return a text such as ``2 connections spoke HTTP/2, 1 connection spoke HTTP/1.1``."""
    by_version = (("HTTP/2", found.connections), ("HTTP/1.1", found.http1))
    parts = [f"{times(count, 'connection')} spoke {name}" for name, count in by_version if count]
    return ", ".join(parts) or "no request was sent on any connection"


def permitted_text(found: Http2) -> str:
    """Return a text such as ``the server permits 100 on each connection``."""
    limit = found.max_concurrent_streams
    if limit.least is None:
        return "the server sets no limit to them"
    if limit.most == limit.least:
        return f"the server permits {limit.least:,} on each connection (MAX_CONCURRENT_STREAMS)"
    most = "any number" if limit.most is None else f"{limit.most:,}"
    return (
        f"the server permits {limit.least:,} to {most} on each connection (MAX_CONCURRENT_STREAMS)"
    )


def _waited_text(found: Http2) -> str:
    if found.waited is None or not found.waited.stream:
        return ""
    share = format_share(found.waited.stream)
    return (
        f"requests waited {share} of their time for a free stream, and this wait is part of"
        " their latency"
    )


STREAMS = Definition(
    name="streams",
    order=45,
    compute=check_streams,
    of_client=NOT_A_GENERATOR,
    fault="subject",
    meaning=(
        "With fewer streams in flight than asked for, the figure is that of a lower concurrency."
    ),
    remedy=(
        "Raise the server's limit of streams, ask for as many as it permits with --streams, or"
        " use more --connections. Where it permits enough, look at GOAWAYs and reconnects."
    ),
)


def check_flow_control(record: Record) -> Finding:
    """Grade the share of the time in flight in which a window was used up."""
    found = record.http2
    if found is None:
        return not_applicable(NOT_HTTP2)
    if found.waited is None:
        return not_applicable("nothing was in flight")
    if short := too_short(record):
        return not_applicable(short)
    share = sum(getattr(found.waited, name) for name in WINDOWS)
    if share < FLOW_WARN:
        why = f"requests waited {format_share(share)} of their time for a flow-control window"
        return Finding("pass", why, share, FLOW_WARN)
    return Finding("warn", window_text(found.waited), share, FLOW_WARN)


def window_text(waited: WaitShares) -> str:
    """Return whose windows requests waited for, the costliest first."""
    shares = {name: getattr(waited, name) for name in WINDOWS}
    worst = sorted((name for name in shares if shares[name] > 0), key=lambda name: -shares[name])
    return in_one_line(f"{format_share(shares[name])}: {WINDOWS[name]}" for name in worst)


FLOW_CONTROL = Definition(
    name="flow-control",
    order=47,
    compute=check_flow_control,
    of_client=NOT_A_GENERATOR,
    fault="either",
    meaning=(
        "When a flow-control window is used up, the figure depends on the window and the"
        " round trip instead of the server."
    ),
    remedy=(
        "Raise the generator's windows with --window and --connection-window, if your"
        " clients have larger ones. If the server's window is used up, raise that one, or"
        " find out why the server does not read."
    ),
)


def check_goaway(record: Record) -> Finding:
    """Grade the requests that the server gave back unprocessed ÷ issued."""
    found, counts = record.http2, record.counts
    if found is None:
        return not_applicable(NOT_HTTP2)
    if counts.issued == 0:
        return not_applicable("no request was issued")
    share = found.returned / counts.issued
    why = (
        f"{format_count(found.returned)} of {times(counts.issued, 'request was', 'requests were')}"
        " returned unprocessed (GOAWAY, REFUSED_STREAM); the server ended"
        f" {times(found.goaways, 'connection')}"
    )
    return Finding("warn" if share >= RETURNED_WARN else "pass", why, share, RETURNED_WARN)


GOAWAY = Definition(
    name="goaway",
    order=32,
    compute=check_goaway,
    of_client="what a client sends again is in both-ends",
    fault="subject",
    meaning=(
        "A server that returns requests unprocessed makes its clients send them a second time."
    ),
    remedy=(
        "Raise the server's limit of requests per connection, and its limit of streams"
        " if it refuses streams that it announced."
    ),
    per_host=True,
)
