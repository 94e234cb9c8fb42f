"""Exports results for other programs; each format is one module, over sheets of a run or a suite.

Rows come one by one, so that a large run fits into memory. Those that were not measured, or can no
longer be read, are included with their reason. Pure, but for Parquet: the others yield text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from json import dumps  # the package has a module of the name `json`
from typing import Any, Literal

from trueload.record.schema import Record
from trueload.store.rows import DamagedRow, Row, Run

Format = Literal["json", "jsonl", "csv", "hosts", "markdown", "hgrm"]
Rows = Iterable[Row | DamagedRow]


def export(run: Run, rows: Rows, format_: Format) -> Iterator[str]:
    """Yield the run in one of the formats, in pieces."""
    # Imported late, as below: most runs are not exported.
    from trueload.report.export.csv import csv_lines
    from trueload.report.export.hgrm import run_hgrm
    from trueload.report.export.json import json_lines, whole_json
    from trueload.report.export.markdown import run_markdown
    from trueload.report.sheets import hosts_sheet, trials_sheet

    match format_:
        case "csv":
            return csv_lines(trials_sheet(run.id, rows))
        case "hosts":
            return csv_lines(hosts_sheet(run.id, rows))
        case "hgrm":
            return run_hgrm(run, rows)
        case "markdown":
            return run_markdown(run, rows)
        case "jsonl":
            return json_lines(run, rows)
    return whole_json(run, rows)


def measured_row(number: int, record: Record, labels: Mapping[str, str] | None = None) -> Row:
    """Return a trial in the form of a stored row."""
    return Row(
        seq=number,
        number=number,
        key="",
        labels=dict(labels or {}),
        outcome="measured",
        reason=None,
        detail=None,
        added_at="",
        record=record,
    )


def printed(format_: str, whole: Mapping[str, Any], run_id: str | None, rows: Rows) -> str:
    """Return a result in a format that is printed at once.

    ``whole`` is for JSON, and ``rows`` are for CSV and Markdown. Empty for the text format.
    """
    match format_:
        case "json":
            return dumps(whole) + "\n"
        case "csv":
            from trueload.report.export.csv import csv_lines
            from trueload.report.sheets import trials_sheet

            return "".join(csv_lines(trials_sheet(run_id, rows)))
        case "markdown":
            from trueload.report.export.markdown import trials_markdown

            return "".join(trials_markdown(rows))
    return ""
