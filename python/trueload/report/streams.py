"""The text about streamed answers: the first part, the gaps, the number of parts.

Pure. Must not know: terminals.
"""

from __future__ import annotations

from trueload.record.accounts.streams import Streams
from trueload.record.schema import Record
from trueload.report.times import quantile_text
from trueload.stats import Distribution
from trueload.units import format_count, format_duration, format_share

PERCENTILES = {"p50": "p50", "p90": "p90", "p99": "p99", "p99.9": "p999"}


def stream_lines(record: Record) -> list[tuple[str, str]]:
    """Return labels and texts; none if answers are no streams."""
    if record.streams is None:
        return []
    return [(label, text) for label, text in labelled_texts(record.streams) if text]


def labelled_texts(found: Streams) -> list[tuple[str, str]]:
    """Return the same labels every time; a text may be empty."""
    return [
        ("first part", _times(found.first_part_ns, "time to first token")),
        ("gaps", _times(found.gap_ns, "time between tokens")),
        ("parts", parts_text(found)),
    ]


def parts_text(found: Streams) -> str:
    """A text: ``4,000 in 40 whole streams, 100 each, 19.8/s; 3.0 % came together with …``."""
    if not found.parts:
        return ""
    each = found.parts_per_answer
    text = format_count(found.parts)
    if each.min is not None and each.max is not None and each.p50 is not None:
        most = "each" if each.min == each.max else f"each at the median, at most {each.max:,}"
        text += f"; {format_count(found.whole)} whole streams, {each.p50:,} {most}"
    if found.parts_per_s is not None:
        text += f"; {format_count(found.parts_per_s)}/s"
    if found.together:
        share = format_share(found.together / found.parts)
        text += f"; {share} came together with the part before"
    return text


def _times(found: Distribution, words: str) -> str:
    if found.max is None:
        return ""
    parts = [f"{shown} {quantile_text(found.at(name))}" for shown, name in PERCENTILES.items()]
    return "   ".join([*parts, f"max {format_duration(found.max)}", f"({words})"])
