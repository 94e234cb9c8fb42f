"""Widgets of live views: lines over time, a histogram, failures, how busy an end is. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from trueload.buckets import Buckets
from trueload.report.phases import LABEL, labelled
from trueload.report.rows import Row, Size, Span, Tone, bar, gauge, moving_lines
from trueload.text import plain
from trueload.units import format_count, format_duration, format_share

BUSY = 0.9  # beyond this an end may be the limit: its bar has another colour
NAME, VALUE = 7, 12  # columns before and after a line over time
EDGE, SHARE = 10, 8  # the same for a bar of the histogram


class Line(NamedTuple):
    """Values over time, the newest last; None if there was none.

    ``now`` is the newest value as text, and ``shown`` turns any value into text.
    """

    name: str
    values: Sequence[float | None]
    now: str
    shown: Callable[[float], str]
    tone: Tone


def moving_rows(lines: Sequence[Line], size: Size) -> list[Row]:
    """Return the lines below each other, as high as there is room for.

    Each line fills its height with the highest value shown.
    """
    width, height = max(size.width - NAME - VALUE - 1, 1), max(1, size.height // len(lines))
    return [row for line in lines for row in _moving(line, Size(width, height))]


def _moving(line: Line, size: Size) -> list[Row]:
    known = [value for value in line.values[-size.width :] if value is not None]
    rows: list[Row] = []
    for at, text in enumerate(moving_lines(line.values, size.width, size.height)):
        name = line.name if at == 0 else ""
        beside = Span(f" {line.now:>{VALUE}}", line.tone) if at == 0 else Span("")
        if at == 1 and known:
            beside = Span(f" {'≤ ' + line.shown(max(known)):>{VALUE}}", "label")
        rows.append((Span(f"{name:<{NAME}}", "label"), Span(text, line.tone), beside))
    return rows


def histogram_rows(known: Buckets, size: Size) -> list[Row]:
    """Return a histogram of times in steps of equal ratio, from the least to the greatest."""
    bins = log_bins(known, size.height)
    most = max((count for _, count in bins), default=0)
    room = max(size.width - EDGE - SHARE - 1, 1)
    return [
        (
            Span(f"≤ {format_duration(upper):>{EDGE - 3}} ", "label"),
            Span(f"{bar(count / most, room):<{room}}", "bar"),
            Span(f" {format_share(count / known.total) if count else '':>{SHARE}}"),
        )
        for upper, count in bins
    ]


def log_bins(known: Buckets, most: int) -> list[tuple[int, int]]:
    """Return at most ``most`` bins of a histogram: the highest value of each, and its count."""
    if not known.highs or most < 1:
        return []
    least, greatest = max(known.highs[0], 1), max(known.highs[-1], 1)
    if least == greatest or most == 1:
        return [(greatest, known.total)]
    edges = [round(least * (greatest / least) ** ((at + 1) / most)) for at in range(most - 1)]
    edges.append(greatest)
    ranks = [0, *accumulate(known.counts)]
    below = [ranks[bisect_right(known.highs, edge)] for edge in edges]
    return [(edge, b - a) for edge, a, b in zip(edges, [0, *below[:-1]], below, strict=True)]


def failure_rows(failed: Mapping[str, int]) -> list[Row]:
    """Return the number of failures by class, the most frequent first."""
    most_first = sorted(failed.items(), key=lambda each: (-each[1], each[0]))
    wide = max([LABEL, *(len(plain(name)) + 2 for name in failed)])
    return [
        (Span(f"{plain(name):<{wide}}", "bad"), Span(format_count(count), "bad"))
        for name, count in most_first
        if count
    ]


def shortened(rows: Sequence[Row], size: Size) -> list[Row]:
    """Return as many rows as fit, with a note on how many more there are."""
    height = size.height
    if len(rows) <= height or height < 1:
        return list(rows[: max(height, 0)])
    more = Span(f"and {len(rows) - height + 1} more", "label")
    return [*rows[: height - 1], (more,)]


def busy_row(label: str, share: float | None, text: str, width: int) -> Row:
    """Return a bar of an end's use of a CPU, with a text; no bar if it is unknown."""
    if share is None:
        return labelled(label, Span("not known", "label"))
    tone: Tone = "warn" if share >= BUSY else "good"
    words = f"  {text}"
    room = max(width - LABEL - len(words), 1)
    return labelled(label, *gauge(share, room, tone), Span(words))


def cpu_row(label: str, cpus: float | None, width: int) -> Row:
    """Return a row with the CPUs that an end uses, if that is known."""
    return busy_row(label, cpus, "" if cpus is None else f"{cpus:.2f} CPUs", width)
