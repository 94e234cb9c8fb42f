"""What kept a server from doing more, in words, and an estimate of what it could do.

How: by how busy both ends were, as in `generator-limit`. Says nothing if that does not tell, or if
a check already says it. Pure.
"""

from __future__ import annotations

from trueload.protocol.plan import Closed, Open
from trueload.record import figures
from trueload.record.schema import REPORTED_STATUSES, Bounds, Record
from trueload.units import format_share
from trueload.verdict.backlog import is_rising
from trueload.verdict.common import is_closed, too_short
from trueload.verdict.machine import (
    GENERATOR_FULL,
    GENERATOR_NEARLY_FULL,
    SERVER_FULL,
    SERVER_LIMIT,
)

ESTIMATE_FROM = 0.5  # of a server's time: with less, more is extrapolated than was measured
FAILED_MOST = 0.01  # with more failures the server's work is not what was asked for


def bottleneck_text(record: Record) -> str:
    """Return a text such as ``server saturated: server 97 %, generator 31 %``.

    The shares are how busy the busiest thread of each end was. Empty if the limit is unknown, or if
    the result is no figure of the server.
    """
    saturation = record.server.saturation if record.server is not None else None
    generator = record.generator.saturation
    if saturation is None or generator is None:
        return ""
    if record.verdict == "invalid" or too_short(record) or record.client is not None:
        return ""
    if not record.counts.ok or figures.failed(record.counts) > FAILED_MOST * record.counts.issued:
        return ""
    busy = f"server {format_share(saturation)}, generator {format_share(generator)}"
    match record.plan.window.load:
        case Closed():
            if generator >= GENERATOR_NEARLY_FULL and saturation < SERVER_LIMIT:
                both = saturation >= SERVER_FULL
                return f"{'both ends' if both else 'generator'} saturated: {busy}"
            if saturation >= SERVER_FULL:
                return f"server saturated: {busy}"
            return f"not the server's CPU ({busy}): more connections (-c) may give more throughput"
        case Open() if generator < GENERATOR_FULL:
            behind = ("rate-reached", "backlog", "censored")
            if any(
                each.name in behind and each.status in REPORTED_STATUSES for each in record.checks
            ):
                return ""
            backlog = record.flow.backlog if record.flow is not None else None
            if backlog is not None and is_rising(backlog):
                return ""  # perhaps by chance, perhaps not
            return f"none, the server kept up: {busy}"
    return ""


def estimate_per_s(record: Record, bounds: Bounds) -> float | None:
    """Estimate what a server would carry if it were busy all the time, beside a lower bound.

    It is right where an answer costs the server the same CPU time however busy it is.
    """
    saturation = record.server.saturation if record.server is not None else None
    per_s = record.throughput.ok_per_s
    if saturation is None or not per_s or bounds.throughput != "at_least":
        return None
    if record.client is not None or not is_closed(record) or too_short(record):
        return None
    return per_s / saturation if ESTIMATE_FROM <= saturation < SERVER_LIMIT else None
