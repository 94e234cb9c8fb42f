"""Tables as CSV. No cell is a formula of a spreadsheet, whoever wrote its text. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator

from trueload.report.sheets import Sheet
from trueload.text import plain

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # owasp.org, CSV Injection


def csv_lines(sheet: Sheet) -> Iterator[str]:
    """Yield the rows of a sheet, after a line of headings."""
    yield csv_rows([sheet.names])
    for values in sheet.rows:
        yield csv_rows([[values.get(name) for name in sheet.names]])


def csv_rows(rows: Iterable[Iterable[object]]) -> str:
    """Return rows of a CSV file, which may be written in pieces."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(map(csv_cell, row) for row in rows)
    return out.getvalue()


def csv_cell(value: object) -> str:
    """Return a cell of a CSV file: a number, nothing for None, or text that is no formula."""
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return repr(value)
    text = plain(str(value))
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
