"""A table of strings as one value, and its layout as text and as HTML.

How: `plain` makes any text inert for a terminal, whoever wrote it, and `html_cell` for a page;
`export/markdown.py` lays a grid out as Markdown. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from rich.cells import cell_len

from trueload.text import plain

BETWEEN = "  "
# The words that a style sheet has a colour for.
MARKS = frozenset(
    {
        *("valid", "suspect", "invalid", "pass", "bound", "warn", "fail"),
        *("kept", "exceeded", "limited", "better", "worse", "same", "unclear", "failed"),
    }
)
BOLD = ("better", "worse")
VOID = "invalid"  # a row whose figures mean nothing


@dataclass(frozen=True)
class Grid:
    """A header and rows of cells, all of the same length; an empty header is not written.

    ``left`` has the headings of the text columns, None if all are text; the others hold numbers.
    ``marks`` has a word for each row, which a page colours in the column ``marked``. The rest is
    for pages: ``named`` is the column that names a row, and ``series`` has the number of each row's
    colour in charts, or None. A ``folded`` grid is hidden behind a line to click.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    left: frozenset[str] | None = None
    marks: tuple[str, ...] = ()
    marked: int = -1
    named: int | None = None
    series: tuple[int | None, ...] = ()
    note: str = ""
    folded: bool = False

    def is_left(self, at: int) -> bool:
        """Whether a column holds text."""
        return self.left is None or self.header[at] in self.left

    def columns(self, wanted: Iterable[int]) -> Grid:
        indexes = list(wanted)
        rows = tuple(tuple(row[at] for at in indexes) for row in self.rows)
        return Grid(tuple(self.header[at] for at in indexes), rows, left=self.left)


def text_lines(grid: Grid) -> list[str]:
    """Return the lines for a terminal or a pipe, with columns as wide as their widest cell."""
    lines = [[plain(cell) for cell in row] for row in _lines(grid)]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    return [
        BETWEEN.join(
            _padded(cell, width, grid.is_left(at) if grid.header else True)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def text_width(grid: Grid) -> int:
    """Return the width of the text in terminal columns."""
    columns = zip(*_lines(grid), strict=True)
    widths = [max(cell_len(plain(cell)) for cell in column) for column in columns]
    return sum(widths) + len(BETWEEN) * (len(widths) - 1)


def _lines(grid: Grid) -> list[tuple[str, ...]]:
    return [*([grid.header] if grid.header else []), *grid.rows]


def _padded(cell: str, width: int, left: bool) -> str:
    blanks = " " * (width - cell_len(cell))
    return cell + blanks if left else blanks + cell


def html_table(grid: Grid, caption: str = "") -> str:
    """Return a table for a page."""
    head = "".join(
        f'<th scope="col"{_classes(_side(grid, at))}>{html_cell(name)}</th>'
        for at, name in enumerate(grid.header)
    )
    rows = "\n".join(_html_row(grid, number) for number in range(len(grid.rows)))
    named = f"<caption>{html_cell(caption)}</caption>" if caption else ""
    head = f"<thead><tr>{head}</tr></thead>\n" if head else ""
    return f"<table>{named}\n{head}<tbody>\n{rows}\n</tbody>\n</table>"


def _html_row(grid: Grid, number: int) -> str:
    mark = grid.marks[number] if grid.marks else ""
    series = grid.series[number] if grid.series else None
    row = grid.rows[number]
    cells, marked = [], grid.marked % len(row)
    for at, cell in enumerate(row):
        names = [_side(grid, at)]
        names += ["name"] if at == grid.named else []
        names += ["mark", mark if mark in MARKS else ""] if mark and at == marked else []
        dot = (
            f'<span class="dot s{series}"></span>'
            if at == grid.named and series is not None
            else ""
        )
        tag = "td" if grid.header or at else "th"
        cells.append(f"<{tag}{_classes(*names)}>{dot}{html_cell(cell)}</{tag}>")
    return f"<tr{_classes('void' if mark == VOID else '')}>{''.join(cells)}</tr>"


def _side(grid: Grid, at: int) -> str:
    return "text" if grid.left is not None and grid.is_left(at) else ""


def _classes(*names: str) -> str:
    used = " ".join(name for name in names if name)
    return f' class="{used}"' if used else ""


def html_cell(text: str) -> str:
    """Escape text for HTML, so that nothing in it acts as a tag."""
    return escape(plain(text))
