"""Rows of coloured text for a terminal, and their elements: bars, lines, columns. Pure.

How: a row is a few spans, each with a tone. A tone is a meaning, and draw.py chooses its colour. No
row is wider than asked for, counted in characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

Tone = Literal["text", "label", "strong", "good", "warn", "bad", "rate", "middle", "tail", "bar"]
"""The meaning of a text; ``middle`` is for the median, ``tail`` for higher percentiles."""

HEIGHTS = "▁▂▃▄▅▆▇█"
WIDTHS = "▏▎▍▌▋▊▉█"
CUT = "…"


class Span(NamedTuple):
    """A text in one tone."""

    text: str
    tone: Tone = "text"


Row = tuple[Span, ...]
"""The content of one line."""


class Size(NamedTuple):
    """A number of columns and lines."""

    width: int
    height: int


def row_width(row: Row) -> int:
    return sum(len(span.text) for span in row)


def row_text(row: Row) -> str:
    """Return a row's text without its tones."""
    return "".join(span.text for span in row)


def cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 1, 0)] + CUT[:width]


def fit(row: Row, width: int) -> Row:
    """Return the row with exactly ``width`` characters: cut, or padded with blanks."""
    spare = width - row_width(row)
    if spare >= 0:
        return (*row, Span(" " * spare)) if spare else row
    found: list[Span] = []
    left = width - len(CUT)
    for span in row:
        found.append(Span(span.text[: max(left, 0)], span.tone))
        left -= len(span.text)
        if left < 0:
            break
    return (*found, Span(CUT[:width], found[-1].tone))


def framed(rows: Sequence[Row], title: str, footer: str, width: int) -> list[Row]:
    """Return rows in a frame with a title above and a text below.

    The rows are four characters narrower than the frame.
    """
    edge = Span("│ ", "label"), Span(" │", "label")
    head = cut(title, max(width - 6, 0))
    foot = cut(footer, max(width - 6, 0))
    top: Row = (
        Span("╭─ ", "label"),
        Span(head, "strong"),
        Span(f" {'─' * (width - len(head) - 5)}╮", "label"),
    )
    bottom: Row = (Span(f"╰{'─' * (width - len(foot) - 5)} {foot} ─╯", "label"),)
    return [top, *((edge[0], *row, edge[1]) for row in rows), bottom]


def beside(left: Sequence[Row], right: Sequence[Row], widths: tuple[int, int]) -> list[Row]:
    """Return two columns of rows, with two blanks between them."""
    count = max(len(left), len(right))
    pairs = zip(_filled(left, count), _filled(right, count), strict=True)
    gap = Span("  ")
    return [(*fit(mine, widths[0]), gap, *fit(other, widths[1])) for mine, other in pairs]


def _filled(rows: Sequence[Row], count: int) -> list[Row]:
    return [*rows, *[()] * (count - len(rows))]


def flow(items: Iterable[Row], width: int) -> list[Row]:
    """Return the items one after the other, three blanks apart, in as many rows as needed."""
    rows: list[Row] = []
    for item in items:
        if rows and row_width(rows[-1]) + 3 + row_width(item) <= width:
            rows[-1] = (*rows[-1], Span("   "), *item)
        else:
            rows.append(item)
    return [fit(row, width) for row in rows]


def rule(title: str, width: int) -> Row:
    """Return the title line above a part of the view."""
    shown = cut(title, max(width - 2, 0))
    return fit((Span(f"{shown} ", "strong"), Span("─" * (width - len(shown) - 1), "label")), width)


def bar(share: float, width: int) -> str:
    """Return a bar that is a share (0 to 1) of the width, to an eighth of a character."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    whole, part = divmod(eighths, 8)
    return "█" * whole + (WIDTHS[part - 1] if part else "")


def gauge(share: float, width: int, tone: Tone) -> Row:
    """Return a bar, with the rest of its width shaded."""
    filled = bar(share, width)
    return (Span(filled, tone), Span("░" * (width - len(filled)), "label"))


def moving_lines(values: Sequence[float | None], width: int, height: int = 1) -> list[str]:
    """Return the newest values as a line chart, one per column, the last at the right.

    It is ``height`` characters high and ranges from 0 to the highest value shown; None is a blank.
    """
    shown = list(values[-width:]) if width > 0 else []
    most = max((value for value in shown if value is not None), default=0.0)
    steps = 8 * height
    levels = [_level(value, most, steps) for value in shown]
    return [
        "".join(_part(level, below) for level in levels).rjust(width)
        for below in range(steps - 8, -1, -8)
    ]


def _level(value: float | None, most: float, steps: int) -> int:
    """Return the level in eighths of a character, from 1; 0 for None."""
    if value is None:
        return 0
    return 1 if most <= 0 else max(1, round(max(value, 0.0) / most * steps))


def _part(level: int, below: int) -> str:
    """Return a column's character in a line with ``below`` eighths below it."""
    rest = min(level - below, 8)
    return HEIGHTS[rest - 1] if rest > 0 else " "
