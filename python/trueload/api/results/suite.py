"""The result of a suite: its tables, made from the stored rows by the functions of reports."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueload.api.results.shown import Shown
from trueload.record.bound import at_least
from trueload.record.schema import Check, Verdict
from trueload.report import table as tables_text
from trueload.report.columns import verdict_of
from trueload.report.export.frames import flat
from trueload.report.suite_json import read_plan, rows_json, suite_json
from trueload.report.times import figure_text
from trueload.store.rows import Run
from trueload.store.runs import Store
from trueload.suites.load_tables import LoadTable, run_verdict, tabulate
from trueload.suites.plan import SuitePlan
from trueload.suites.summary import Summary, collect
from trueload.units import counted

if TYPE_CHECKING:
    from trueload.api.results.plots import Plot


@dataclass(frozen=True, repr=False)
class SuiteResult(Shown):
    """The result of a suite: a ranked table for each load.

    Invalid and unmeasured rows are kept apart. ``damaged`` lists the stored rows that could not be
    read.
    """

    run: Run
    plan: SuitePlan
    tables: tuple[LoadTable, ...]
    checks: tuple[Check, ...]
    damaged: tuple[str, ...]
    store: Path

    def __hash__(self) -> int:
        return hash(self.run.id)  # a plan has dicts

    @classmethod
    def read(cls, store: Store, run: Run) -> SuiteResult:
        """Return the result of a stored run. Raises ``UserError``."""
        plan = read_plan(run)
        found = collect(plan, store.rows(run))
        return cls(run, plan, tuple(tabulate(found, plan)), found.checks, found.damaged, store.path)

    @property
    def run_id(self) -> str:
        """The id of the run in the store."""
        return self.run.id

    @property
    def verdict(self) -> Verdict | None:
        """The verdict of the whole suite; None if nothing was measured."""
        return run_verdict(self.tables)

    @property
    def reasons(self) -> tuple[str, ...]:
        """The doubts about rows, and why rows were not measured."""
        return tuple(f"{row.cell.subject.name}: {row.why}" for row in self.rows if row.why)

    @property
    def rows(self) -> tuple[Summary, ...]:
        """All rows, load by load: ranked rows by rank, then the others."""
        return tuple(row for table in self.tables for row in table.everything)

    @property
    def ranked(self) -> tuple[Summary, ...]:
        """The rows that may be ranked."""
        return tuple(row for table in self.tables for row in table.ranked)

    def of(self, subject: str) -> tuple[Summary, ...]:
        """Return the rows of a subject such as ``rust/hyper``."""
        return tuple(row for row in self.rows if row.cell.subject.name == subject)

    @staticmethod
    def cells(table: LoadTable) -> list[tuple[str, ...]]:
        """The rows to show: rank, subject, requests/s, p99, and verdict with its reason."""
        found: list[tuple[str, ...]] = []
        for row in table.everything:
            figures = row.figures
            per_s = None if figures is None else figures.ok_per_s
            found.append(
                (
                    str(row.places or ""),
                    row.cell.subject.name,
                    "" if per_s is None else at_least(f"{per_s:,.0f}", row.lower_bound),
                    "" if figures is None else figure_text(figures, "p99"),
                    verdict_of(row),
                    row.why,
                )
            )
        return found

    def summary(self) -> str:
        """The text that the command line would print."""
        return tables_text.text(list(self.tables), width=None, published=False)

    def to_dict(self) -> dict[str, Any]:
        """The value that ``--json`` writes, with every record."""
        with Store.open(self.store) as store:
            pieces = suite_json(
                self.run, self.plan, self.tables, self.checks, self.damaged, store.rows(self.run)
            )
            found: dict[str, Any] = json.loads("".join(pieces))
        return found

    def flat_rows(self) -> list[dict[str, object]]:
        """The rows with a column for each figure."""
        return [flat(row) for row in rows_json(self.tables)]

    def _framed(self) -> tuple[list[dict[str, object]], list[str]]:
        rows = self.flat_rows()
        # The columns that occur in any row, in the order of first occurrence.
        return rows, list(dict.fromkeys(name for row in rows for name in row))

    def plot(self, load: int = 0) -> Plot:
        """Return a chart of the ranking of a load, counted from 0. Raises ``UserError``."""
        from trueload.api.results.plots import plot_ranking

        with Store.open(self.store) as store:
            return plot_ranking(self.run, store.rows(self.run), load)

    def __repr__(self) -> str:
        rows = counted(len(self.rows), "row")
        return f"<suite {self.plan.suite}: {len(self.ranked)} of {rows} ranked>"

    def _repr_html_(self) -> str:
        from trueload.api.results.notebook import table_html

        header = ("rank", "subject", "requests/s", "p99", "verdict", "why")
        return "".join(
            table_html(table.load.title, header, self.cells(table)) for table in self.tables
        )
