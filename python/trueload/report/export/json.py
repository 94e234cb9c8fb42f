"""Runs and results as JSON, written piece by piece: the records of a large run exceed memory. Pure.

What one kind of result has beside its records is made where that kind is: of a suite in
`suite_json`, of pairs in `report/ab`, of a search in `search/result`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from trueload.record.schema import SCHEMA, Record
from trueload.request.redact import redact_command
from trueload.store.rows import DamagedRow, Row, Run
from trueload.verdict import decide, is_lower_bound, worst_checks


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
    fields = {name: value for name, value in vars(row).items() if name != "seq"}
    return fields | {"record": row.record and row.record.model_dump(mode="json")}


def whole_json(
    run: Run, rows: Iterable[Row | DamagedRow], more: Mapping[str, Any] | None = None
) -> Iterator[str]:
    """Yield the run as one object with every row; ``more`` has further fields for it."""
    head = {**run_json(run), "plan": run.plan, **(more or {})}
    return object_with(head, "rows", (json.dumps(row_json(row)) for row in rows))


def object_with(head: Mapping[str, Any], name: str, items: Iterable[str]) -> Iterator[str]:
    """Yield an object: the fields of ``head``, then a list of items, one a line."""
    yield f'{json.dumps(head, indent=1)[:-2]},\n "{name}": ['
    separator = "\n"
    for item in items:
        yield separator + item
        separator = ",\n"
    yield "\n ]\n}\n"


def json_lines(run: Run, rows: Iterable[Row | DamagedRow]) -> Iterator[str]:
    """Yield JSON Lines: an object per row, which names its run."""
    for row in rows:
        yield json.dumps({"run": run.id, **row_json(row)}) + "\n"


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
