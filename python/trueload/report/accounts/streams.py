"""Streamed answers: the first part, the gaps, the number of parts."""

from __future__ import annotations

from trueload.record.accounts.streams import Streams
from trueload.record.figures import BRIEF
from trueload.report.account import AccountView, Column, Lines, times_columns
from trueload.report.quantile import quantile_text
from trueload.report.times import times_text
from trueload.units import counted, format_count, format_share


def parts_text(found: Streams) -> str:
    """A text: ``4,000 in 40 whole streams, 100 each, 19.8/s; 3.0 % came together with …``."""
    if not found.parts:
        return ""
    each = found.parts_per_answer
    text = format_count(found.parts)
    if each.min is not None and each.max is not None and each.p50 is not None:
        most = "each" if each.min == each.max else f"each at the median, at most {each.max:,}"
        text += f"; {counted(found.whole, 'whole stream')}, {each.p50:,} {most}"
    if found.parts_per_s is not None:
        text += f"; {format_count(found.parts_per_s)}/s"
    if found.together:
        share = format_share(found.together / found.parts)
        text += f"; {share} came together with the part before"
    return text


def _texts(found: Streams) -> Lines:
    return [
        ("first part", times_text(found.first_part_ns, "(time to first token)")),
        ("gaps", times_text(found.gap_ns, "(time between tokens)")),
        ("parts", parts_text(found)),
    ]


def _figures(found: Streams) -> Lines:
    times = {"first part": found.first_part_ns, "gap": found.gap_ns}
    texts = [
        (f"{what}, {name}", quantile_text(each.at(name)))
        for what, each in times.items()
        for name in BRIEF
    ]
    per_s = found.parts_per_s
    return [*texts, ("parts/s", "" if per_s is None else format_count(per_s))]


STREAMS = AccountView(
    name="streams",
    after="datagrams",
    order=1,
    texts=_texts,
    figures=_figures,
    title="Streamed answers: first part, gap between parts, parts per second",
    columns=(
        Column("streams_whole", lambda found: found.whole),
        Column("stream_parts", lambda found: found.parts),
        Column("stream_parts_together", lambda found: found.together),
        *times_columns("first_part", lambda found: found.first_part_ns),
        *times_columns("gap", lambda found: found.gap_ns, (*BRIEF, "max")),
    ),
)
