"""The text about connections that the load opened: when each step was done, from the schedule.

Pure. Must not know: terminals.
"""

from __future__ import annotations

from trueload.record.accounts.openings import Openings
from trueload.record.schema import Record
from trueload.report.times import quantile_text
from trueload.stats import Distribution
from trueload.units import format_count, format_duration

PERCENTILES = {"p50": "p50", "p90": "p90", "p99": "p99", "p99.9": "p999"}


def opening_lines(record: Record) -> list[tuple[str, str]]:
    """Return labels and texts; none if the load opened no connections."""
    if record.openings is None:
        return []
    return [(label, text) for label, text in labelled_texts(record.openings) if text]


def labelled_texts(found: Openings) -> list[tuple[str, str]]:
    """Return the same labels every time; a text may be empty."""
    return [
        ("connect", _times(found.connect_ns)),
        ("full TLS", _times(found.full_handshake_ns, "handshakes")),
        ("resumed TLS", _times(found.resumed_handshake_ns, "handshakes")),
        ("first byte", _times(found.first_byte_ns)),
    ]


def _times(found: Distribution, counted: str = "") -> str:
    if found.max is None:
        return ""
    parts = [f"{shown} {quantile_text(found.at(name))}" for shown, name in PERCENTILES.items()]
    most = "max of those done" if found.slower else "max"
    of = [f"({format_count(found.count)} {counted})"] if counted else []
    return "   ".join([*parts, f"{most} {format_duration(found.max)}", *of])
