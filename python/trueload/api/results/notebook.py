"""Results as they are shown in notebooks: a table of figures, the verdict and what stands against
it, in HTML that is inert whatever a peer said. Pure.

Must not know how results are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from trueload.record.schema import Verdict
from trueload.text import plain

MARKS: dict[Verdict, str] = {"valid": "✓", "suspect": "?", "invalid": "✗"}


def figures_html(caption: str, rows: Iterable[tuple[str, str]], notes: Iterable[str]) -> str:
    """One command's result: a line for each figure, and what stands against them."""
    cells = "".join(
        f"<tr><th>{_text(name)}</th><td>{_text(value)}</td></tr>" for name, value in rows
    )
    return f"<table><caption>{_text(caption)}</caption>{cells}</table>{_list(notes)}"


def table_html(
    caption: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    verdict: Verdict | None = None,
    notes: Iterable[str] = (),
) -> str:
    """A table with a header, and perhaps a verdict below it."""
    body = "".join(_row("td", cells) for cells in rows)
    last = "" if verdict is None else _row("th", ("verdict", verdict_text(verdict)))
    return (
        f"<table><caption>{_text(caption)}</caption>{_row('th', header)}{body}{last}</table>"
        f"{_list(notes)}"
    )


def verdict_text(verdict: Verdict) -> str:
    """A verdict with its mark."""
    return f"{MARKS[verdict]} {verdict}"


def _row(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{_text(cell)}</{tag}>" for cell in cells) + "</tr>"


def _list(lines: Iterable[str]) -> str:
    items = "".join(f"<li>{_text(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""


def _text(text: str) -> str:
    return escape(plain(text))
