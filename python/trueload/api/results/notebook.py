"""The display of results in notebooks: a table of figures, the verdict and the doubts about it.

The HTML is inert, whatever text a peer sent. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trueload.report.grid import Grid, html_cell, html_table

MARKS = {"valid": "✓", "suspect": "?", "invalid": "✗"}


def figures_html(caption: str, rows: Iterable[tuple[str, str]], notes: Iterable[str]) -> str:
    """Return one command's result: a line for each figure, and the doubts about them."""
    return html_table(Grid((), tuple(rows)), caption) + _list(notes)


def table_html(
    caption: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    verdict: str | None = None,
    notes: Iterable[str] = (),
) -> str:
    """Return a table with a header, and below it the verdict, if there is one, and notes."""
    cells = [tuple(row) for row in rows]
    cells += [] if verdict is None else [("verdict", verdict_text(verdict))]
    return html_table(Grid(tuple(header), tuple(cells)), caption) + _list(notes)


def verdict_text(verdict: str) -> str:
    """Return a verdict with its mark: ``✓ valid (lower bound)``."""
    return f"{MARKS[verdict.partition(' ')[0]]} {verdict}"


def _list(lines: Iterable[str]) -> str:
    items = "".join(f"<li>{html_cell(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""
