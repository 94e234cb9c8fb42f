"""Results from the store, as if they had been measured now."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from trueload.api.results.ab import AbResult
from trueload.api.results.result import Result, Search
from trueload.api.results.suite import SuiteResult
from trueload.commands.protocols import PROTOCOLS
from trueload.errors import UserError
from trueload.report.ab import stored_pairs
from trueload.search.result import deciding, read_plan, read_steps
from trueload.store.rows import DamagedRow, Row, Run
from trueload.store.runs import Store


def load_run(store: Store, selector: str) -> Result | SuiteResult | AbResult:
    """Return a run by its id, the start of its id, or ``last``. Raises ``UserError``."""
    run = store.find_run(selector)
    if run.kind == "suite":
        return SuiteResult.read(store, run)
    if run.kind == "ab":
        return _pairs(run, _readable(store, run))
    if run.kind not in {*PROTOCOLS, "search"}:
        raise UserError(
            f"run {run.id} is of `trueload {run.kind}`, which has no result in Python",
            f"trueload runs show {run.id}",
        )
    rows = [row for row in _readable(store, run) if row.record is not None]
    records = tuple(row.record for row in rows if row.record is not None)
    if not records:
        raise UserError(f"run {run.id} has no measurement", "`trueload runs list` shows others")
    if run.kind != "search":
        return Result(records=records, run_id=run.id)
    try:
        plan = read_plan(run.plan)
        taken = read_steps(plan, [(row.labels, row.record) for row in rows if row.record])
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"the plan of run {run.id} cannot be read by this version", "measure again"
        ) from error
    decided = deciding(plan, taken).record
    return Result(records=(decided,), run_id=run.id, search=Search(plan, tuple(taken)))


def _pairs(run: Run, rows: Iterable[Row]) -> AbResult:
    """Return a run of `trueload compare`."""
    paired = stored_pairs(run, rows)
    if not paired.pairs:
        raise UserError(f"run {run.id} has no complete pair", "`trueload runs list` shows others")
    return AbResult(paired, run.id)


def _readable(store: Store, run: Run) -> list[Row]:
    found = list(store.rows(run))
    damaged = [row for row in found if isinstance(row, DamagedRow)]
    if damaged:
        warnings.warn(
            f"{len(damaged)} damaged in {store.path}: {damaged[0].why}; keep a copy of the file",
            stacklevel=4,
        )
    return [row for row in found if isinstance(row, Row)]
