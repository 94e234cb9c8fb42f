"""The result of a command as one JSON object: its record, or a summary of several trials.

Must not know: where it is written to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trueload.record.schema import SCHEMA, Record
from trueload.verdict import decide, is_lower_bound, worst_checks


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
