"""Slow clients (``--read-rate``, ``--write-rate``): what they exclude, and how long they take."""

from __future__ import annotations

from trueload.commands.job import Workload
from trueload.errors import UserError
from trueload.protocol.engine_options import EngineOptions, show_byte_rate
from trueload.units import NS_PER_S, format_size, format_span

_ROUND_NS = NS_PER_S // 10


def check_slow_connections(workload: Workload, engine: EngineOptions) -> None:
    """Refuse slow clients that cannot be had, or that are slower than ``--timeout``. Raises
    ``UserError``."""
    given = {"--read-rate": engine.read_rate_per_s, "--write-rate": engine.write_rate_per_s}
    for flag, per_s in given.items():
        if per_s is None:
            continue
        if workload.kind == "udp":
            raise UserError(f"{flag} is for connections, and UDP has none", "leave it out")
        _check_time(workload, engine, flag, per_s)


def _check_time(workload: Workload, engine: EngineOptions, flag: str, per_s: int) -> None:
    """Refuse a message that is known to take longer than the timeout."""
    size_bytes = _largest(workload, reads=flag == "--read-rate")
    # The streams of a connection share its rate.
    needs_ns = size_bytes * (workload.streams or 1) * NS_PER_S // per_s
    if needs_ns < engine.timeout_ns:
        return
    enough = format_span(-(-needs_ns * 2 // _ROUND_NS) * _ROUND_NS)
    raise UserError(
        f"{format_size(size_bytes)} at {flag} {show_byte_rate(per_s)} takes longer than --timeout"
        f" {format_span(engine.timeout_ns)}",
        f"raise it, as with --timeout {enough}: the server must not be blamed for a slow client",
    )


def _largest(workload: Workload, *, reads: bool) -> int:
    """The largest message that goes this way, as far as it is known: an echo is read and written,
    and of HTTP the bodies of requests and of expected answers are known."""
    traffic = workload.traffic
    if traffic.exchange is not None:
        return traffic.message_bytes or 0
    bodies = [traffic.expect.body] if reads else [request.body for request, _ in traffic.pairs]
    return max((len(body) for body in bodies if body is not None), default=0)
