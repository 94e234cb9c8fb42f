"""A run as JSON, JSON Lines, CSV or Markdown, row by row, so that a large one fits into memory.

JSON has one object with the run, its verdict and checks, and its rows with their whole records.
JSON Lines has one row per line. CSV and Markdown have the figures that tables show; a second form
of CSV has a row per host. Rows that were not measured, or can no longer be read, are included with
their reason. A ``.hgrm`` file has one histogram of latency. Pure: it takes the run and yields
pieces of text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from trueload.errors import UserError
from trueload.record import figures
from trueload.record.bound import at_least
from trueload.record.figures import BRIEF
from trueload.record.schema import REPORTED_STATUSES, SCHEMA, Record
from trueload.report.account import Column
from trueload.report.grid import csv_rows, markdown_cell, markdown_rows
from trueload.report.hgrm import hgrm
from trueload.report.sheets import HOSTS, TRIALS, host_rows, row_values
from trueload.report.times import quantile_text
from trueload.request.redact import redact_command
from trueload.store.rows import DamagedRow, Row, Run
from trueload.units import format_count
from trueload.verdict import decide, is_lower_bound, worst_checks

Format = Literal["json", "jsonl", "csv", "hosts", "markdown", "hgrm"]
Rows = Iterable[Row | DamagedRow]


def export(run: Run, rows: Rows, format_: Format) -> Iterator[str]:
    """Yield the run in one of the formats, in pieces."""
    return EXPORTERS[format_](run, rows)


def run_json(run: Run) -> dict[str, Any]:
    """Return the fields that a run has in every list of runs."""
    return {
        "id": run.id,
        "kind": run.kind,
        "title": run.title,
        "command": list(redact_command(run.command)),  # an older store may hold secrets in it
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "state": run.state,
        "seed": run.seed,
        "row_count": run.row_count,
    }


def row_json(row: Row | DamagedRow) -> dict[str, Any]:
    """Return one row with its whole record; a damaged one has the outcome ``damaged``."""
    if isinstance(row, DamagedRow):
        return {"number": row.number, "outcome": "damaged", "reason": row.why, "record": None}
    return {
        "number": row.number,
        "key": row.key,
        "labels": row.labels,
        "outcome": row.outcome,
        "reason": row.reason,
        "detail": row.detail,
        "added_at": row.added_at,
        "record": None if row.record is None else row.record.model_dump(mode="json"),
    }


def whole_json(run: Run, rows: Rows, more: Mapping[str, Any] | None = None) -> Iterator[str]:
    """Yield the run as one object with every row; ``more`` has further fields for it."""
    head = json.dumps({**run_json(run), "plan": run.plan, **(more or {})})
    yield head[:-1] + ', "rows": ['
    for number, row in enumerate(rows):
        yield (",\n" if number else "\n") + json.dumps(row_json(row))
    yield "\n]}\n"


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


def result_json(records: Sequence[Record], run_id: str | None) -> dict[str, Any]:
    """Return the record of a single trial, or an object for several.

    The object has the worst outcome of each check, and the trials.
    """
    if len(records) == 1:
        return records[0].model_dump(mode="json")
    checks = worst_checks(records)
    return {
        "schema": SCHEMA,
        "id": run_id or records[0].id,
        "started_at": records[0].started_at,
        "partial": any(record.partial for record in records),
        "verdict": decide(checks),
        "lower_bound": is_lower_bound(checks),
        "checks": [check.model_dump(mode="json") for check in checks],
        "trials": [record.model_dump(mode="json") for record in records],
    }


def printed(format_: str, whole: Mapping[str, Any], run_id: str | None, rows: Rows) -> str:
    """Return a result in a format that is printed at once.

    ``whole`` is for JSON, and ``rows`` are for CSV and Markdown. Empty for the text format.
    """
    match format_:
        case "json":
            return json.dumps(whole) + "\n"
        case "csv":
            return "".join(csv_of(TRIALS, (row_values(run_id, row) for row in rows)))
        case "markdown":
            return "".join(_markdown_table(rows))
    return ""


def _jsonl(run: Run, rows: Rows) -> Iterator[str]:
    for row in rows:
        yield json.dumps({"run": run.id, **row_json(row)}) + "\n"


def _csv(run: Run, rows: Rows) -> Iterator[str]:
    return csv_of(TRIALS, (row_values(run.id, row) for row in rows))


def _hosts(run: Run, rows: Rows) -> Iterator[str]:
    return csv_of(HOSTS, (host for row in rows for host in host_rows(run.id, row)))


def csv_of(columns: Sequence[Column], rows: Iterable[Mapping[str, object]]) -> Iterator[str]:
    """Yield rows as lines of CSV, after a line of headings."""
    yield csv_rows([[column.name for column in columns]])
    for values in rows:
        yield csv_rows([[values.get(column.name) for column in columns]])


def _markdown(run: Run, rows: Rows) -> Iterator[str]:
    yield f"# {markdown_cell(run.title)}\n\nRun {run.id}, {run.started_at}, {run.state}.\n\n"
    yield from _markdown_table(rows)


def _markdown_table(rows: Rows) -> Iterator[str]:
    columns = (*("row", "what", "requests/s", "ok", "failed", *BRIEF, "max of answers", "verdict"),)
    yield from (f"{line}\n" for line in markdown_rows(columns, map(_markdown_cells, rows)))


def _markdown_cells(row: Row | DamagedRow) -> tuple[str, ...]:
    if isinstance(row, DamagedRow):
        return (str(row.number), "damaged", *[""] * 6, row.why)
    what = row.key or " ".join(row.labels.values())
    if row.record is None:
        return (str(row.number), what, *[""] * 6, f"{row.outcome}: {row.reason}")
    record, latency = row.record, figures.latency(row.record).figures
    crossed = [c for c in record.checks if c.status in REPORTED_STATUSES]
    why = "".join(f"; {check.name}: {check.why}" for check in crossed)
    per_s = record.throughput.ok_per_s
    return (
        str(row.number),
        what or record.plan.url,
        "" if per_s is None else at_least(format_count(per_s), record.lower_bound),
        format_count(record.counts.ok),
        format_count(figures.failed(record.counts)),
        *(quantile_text(latency.at(name)) for name in (*BRIEF, "max")),
        record.verdict_text + why,
    )


def _hgrm(run: Run, rows: Rows) -> Iterator[str]:
    """Yield the histogram of the run's one trial. Raises ``UserError`` if it has several."""
    timed = [each.record for each in rows if isinstance(each, Row) and each.record is not None]
    timed = [record for record in timed if record.histograms.latency is not None]
    if len(timed) != 1:
        has = f"{len(timed)} trials" if timed else "no trial"
        raise UserError(
            f"run {run.id} has {has} with answers, and a .hgrm file holds one histogram",
            "name a run of one trial; --format json has the histograms of all",
        )
    yield from hgrm(timed[0])


EXPORTERS: dict[Format, Callable[[Run, Rows], Iterator[str]]] = {
    "json": whole_json,
    "jsonl": _jsonl,
    "csv": _csv,
    "hosts": _hosts,
    "markdown": _markdown,
    "hgrm": _hgrm,
}
