"""The text about redirects: how many were followed, how many a request had, how long they took.

Pure. Must not know: terminals.
"""

from __future__ import annotations

from trueload.record.accounts.redirects import Redirects
from trueload.record.schema import Record
from trueload.report.times import quantile_text
from trueload.units import format_count, format_duration

PERCENTILES = {"p50": "p50", "p90": "p90", "p99": "p99"}


def redirect_lines(record: Record) -> list[tuple[str, str]]:
    """Return labels and texts; none if redirects are not followed."""
    if record.redirects is None:
        return []
    return [(label, text) for label, text in labelled_texts(record.redirects) if text]


def labelled_texts(found: Redirects) -> list[tuple[str, str]]:
    """Return the same labels every time; a text may be empty."""
    return [("redirects", counts_text(found)), ("each took", _times(found))]


def counts_text(found: Redirects) -> str:
    """A text: ``3,000 followed (302: 3,000); 3 before each answer``."""
    if not found.followed:
        return "none came"
    by_status = ", ".join(f"{code}: {format_count(n)}" for code, n in found.statuses.items())
    text = f"{format_count(found.followed)} followed ({by_status})"
    hops = sorted(int(count) for count in found.hops)
    if len(hops) == 1:
        return f"{text}; {hops[0]} before each answer"
    if hops and found.hops_mean is not None:
        return f"{text}; {hops[0]} to {hops[-1]} before an answer, {found.hops_mean:.1f} on average"
    return text


def _times(found: Redirects) -> str:
    times = found.redirect_ns
    if times.max is None:
        return ""
    parts = [f"{shown} {quantile_text(times.at(name))}" for shown, name in PERCENTILES.items()]
    return "   ".join([*parts, f"max {format_duration(times.max)}", "(part of the latency)"])
