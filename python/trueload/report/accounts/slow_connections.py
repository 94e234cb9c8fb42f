"""Slow clients: how slow they were, and what each costs the server."""

from __future__ import annotations

from trueload.protocol.engine_options import show_byte_rate
from trueload.record.schema import Record
from trueload.report.account import AccountView, Lines
from trueload.units import NS_PER_S, format_size, format_span

TIMEOUTS = ("timeout.first_byte", "timeout.total")


def _lines(record: Record) -> Lines:
    asked = record.plan.generate
    ways = [("reads", asked.read_rate_per_s), ("writes", asked.write_rate_per_s)]
    paces = [f"{way} {show_byte_rate(per_s)}" for way, per_s in ways if per_s is not None]
    if not paces:
        return []
    text = f"each {' and '.join(paces)}"
    memory = "; ".join(filter(None, [_memory(record)]))
    lines = [("slow clients", f"{text}; {memory}" if memory else text)]
    if any(record.counts.failed.get(name) for name in TIMEOUTS):
        lines.append(("too slow", too_slow_text(record)))
    return lines


def too_slow_text(record: Record) -> str:
    """What the clients had no time for, in words: that is no fault of the server."""
    asked = record.plan.generate
    ways = [("an answer", asked.read_rate_per_s), ("a request", asked.write_rate_per_s)]
    # Requests that are under way on a connection share its rate.
    each_ns = asked.timeout_ns / asked.pipeline
    limits = [
        f"{what} of more than {format_size(per_s * each_ns / NS_PER_S)}"
        for what, per_s in ways
        if per_s is not None
    ]
    timeout = format_span(asked.timeout_ns)
    return f"{' or '.join(limits)} takes longer than --timeout {timeout}; raise it"


def _memory(record: Record) -> str:
    server = record.server
    if server is None or server.rss_after_bytes is None:
        return ""
    each = server.bytes_per_connection
    of = "" if each is None else f", {format_size(each)} for each connection"
    return f"the server's memory is {format_size(server.rss_after_bytes)}{of}"


SLOW_CONNECTIONS = AccountView(name="slow_connections", after="idle", lines=_lines)
