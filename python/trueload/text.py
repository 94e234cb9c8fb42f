"""Text that may come from anywhere, made fit for a terminal, a CSV file or a Markdown table.

Peers, manifests and file names decide what stands in records: control characters and escape
sequences are taken out before a terminal sees them, and a cell never begins like a formula. Pure.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

# Controls, formats (bidirectional overrides among them), surrogates, unassigned and private ones,
# line and paragraph separators.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"})
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # owasp.org, CSV Injection


def plain(text: str, length_max: int = 10_000) -> str:
    """One line without anything that a terminal would obey; blanks instead."""
    shown = "".join(" " if unicodedata.category(c) in _HIDDEN else c for c in text[:length_max])
    return shown + ("…" if len(text) > length_max else "")


def csv_cell(value: object) -> str:
    """A cell of a CSV file: numbers as they are, nothing for None, text that is no formula."""
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return repr(value)
    text = plain(str(value))
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def markdown_cell(text: str) -> str:
    """A cell of a Markdown table: neither its bars nor its markup come from the text."""
    shown = plain(text)
    for special in "\\`*_[]<>|#!":
        shown = shown.replace(special, f"\\{special}")
    return shown


def grid_lines(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns as wide as their widest cell."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    return [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (header, *rows)
    ]
