"""A suite's results as one JSON object: verdict, checks and tables, then the records (`trials`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from trueload import repetitions
from trueload.errors import UserError
from trueload.record.removed_fields import without_removed
from trueload.record.schema import Check
from trueload.report.export.json import object_with
from trueload.store.rows import DamagedRow, Row, Run
from trueload.suites.figures import SHOWN_RANKS, Figures
from trueload.suites.load_tables import LoadTable, run_verdict
from trueload.suites.plan import SuitePlan
from trueload.suites.summary import Summary

SCHEMA = 1
HIDDEN = {
    *("record_id", "verdict", "failed_checks", "reasons", "seq", "partial", "pair", "side"),
    *("lower_bound", "answers", "state", "unlike", "remark"),
}
"""Figures that say nothing to others, or stand beside them."""


def suite_json(
    run: Run,
    plan: SuitePlan,
    tables: Sequence[LoadTable],
    checks: Sequence[Check],
    damaged: Sequence[str],
    rows: Iterable[Row | DamagedRow],
) -> Iterator[str]:
    """Yield the object in pieces; joined they are one JSON text with line breaks."""
    head: dict[str, Any] = {
        "schema": SCHEMA,
        "run": run.id,
        "suite": plan.suite,
        "state": run.state,
        "verdict": run_verdict(tables),
        "checks": [check.model_dump(mode="json") for check in checks],
        "plan": plan.model_dump(mode="json"),
        "rows": rows_json(tables),
        "published": [each.model_dump(mode="json") for each in plan.published_tables],
        "damaged": list(damaged),
    }
    records = (row.record for row in rows if isinstance(row, Row) and row.record is not None)
    return object_with(
        head, "trials", (record.model_dump_json(by_alias=True) for record in records)
    )


def rows_json(tables: Iterable[LoadTable]) -> list[dict[str, Any]]:
    return [_row(summary) for table in tables for summary in table.everything]


def plan_json(plan: SuitePlan, description: str) -> str:
    """Return the JSON that `--dry-run` prints."""
    return json.dumps({"description": description, **plan.model_dump(mode="json")}, indent=1) + "\n"


def _row(summary: Summary) -> dict[str, Any]:
    subject, figures, best = summary.cell.subject, summary.figures, summary.best
    return {
        "language": subject.language,
        "framework": subject.framework,
        "category": subject.category,
        "name": subject.variant,
        "trap": subject.trap,
        **summary.cell.load.model_dump(mode="json"),
        "outcome": summary.outcome,
        "verdict": summary.verdict,
        "lower_bound": summary.lower_bound,
        "why": summary.why,
        "rank": summary.rank,
        "rank_last": None if summary.places is None else summary.places.last,
        "repetitions": summary.repetitions,
        "counted": summary.counted,
        "interval": asdict(summary.interval) if summary.interval is not None else None,
        "ratio_interval": None
        if (within := repetitions.interval(summary.ratios)) is None
        else asdict(within),
        "figures": _figures(figures),
        "best": _figures(best),
        "record_ids": list(summary.record_ids),
    }


def _figures(figures: Figures | None) -> dict[str, Any] | None:
    """The figures by their names; latencies are in ms."""
    if figures is None:
        return None
    times = {f"{name}_ms": figures.ms(name) for name in ("min", *SHOWN_RANKS, "max")}
    shown: dict[str, Any] = {}
    for name, value in asdict(replace(figures, accounts={})).items():
        if name == "latency":
            shown |= times
        elif name == "accounts":
            kept = figures.accounts.items()
            shown |= {each: found and found.model_dump(mode="json") for each, found in kept}
        elif name not in HIDDEN:
            shown[name] = value
    if shown["carried"] is not None:
        shown["carried"]["p95_ms"] = figures.ms("p95")
    return shown


def read_plan(run: Run) -> SuitePlan:
    """Return the plan of a stored run. Raises ``UserError`` for another kind of run."""
    if run.kind != "suite":
        raise UserError(
            f"run {run.id} is of `trueload {run.kind}`, not of a suite",
            "`trueload runs list` shows the runs",
        )
    try:
        return SuitePlan.model_validate(without_removed("suite", run.plan))
    except ValueError:
        raise UserError(
            f"the plan of run {run.id} cannot be read by this version", "run the suite again"
        ) from None
