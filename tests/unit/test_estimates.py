"""The estimate beside a lower bound: when there is one, and where it is shown."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from typing import Any

import pytest
from disturbed_samples import OPEN, with_checks
from samples import GENERATOR, SERVER, good_record
from suite_samples import LOAD, figures, plan, subject
from trueload.protocol.plan import Closed
from trueload.record.bound import middle_estimate
from trueload.record.certainty import usable_text
from trueload.record.schema import Record
from trueload.report import table
from trueload.report.export.csv import csv_lines
from trueload.report.export.json import result_json
from trueload.report.result import repeated_lines, result_lines
from trueload.report.suite_json import rows_json
from trueload.suites.load_tables import tabulate
from trueload.suites.plan import Cell
from trueload.suites.summary import CellRows, RunCells
from trueload.verdict import judge


def record(generator: float, server: float | None, load: Any = None) -> Record:
    """A trial of 10,000 requests/s with both ends so busy."""
    made = good_record()
    window = made.plan.window.model_copy(update={"load": load or Closed()})
    seen = None if server is None else SERVER.model_copy(update={"saturation": server})
    changed = {
        "plan": made.plan.model_copy(update={"window": window}),
        "generator": GENERATOR.model_copy(update={"saturation": generator}),
        "server": seen,
    }
    return judge(made.model_copy(update=changed))


@pytest.mark.parametrize(
    ("sentence", "found", "estimate"),
    [
        ("the generator is nearly full", record(0.94, 0.8), 12_500),
        ("both are", record(0.94, 0.96), 10_000 / 0.96),
        ("the server is at its limit", record(0.94, 0.97), None),
        ("nothing bounds it", record(0.5, 0.8), None),
        ("the generator alone is full", record(0.99, 0.6), 10_000 / 0.6),
        ("the server was idle for more than half of the time", record(0.99, 0.49), None),
        ("nobody knows how busy the server was", record(0.92, None), None),
        ("an open loop asks for a rate", record(0.94, 0.8, OPEN), None),
    ],
)
def test_a_lower_bound_has_an_estimate_beside_it(
    sentence: str, found: Record, estimate: float | None
) -> None:
    expected = None if estimate is None else pytest.approx(estimate)
    assert found.throughput.estimate_per_s == expected, sentence


def test_it_is_told_beside_the_bound() -> None:
    bound, limit = record(0.94, 0.8), record(0.94, 0.97)
    assert "≥ 10,000 requests/s (estimate 12,500) " in "\n".join(result_lines(bound))
    assert "estimate" not in "\n".join(result_lines(limit))
    assert "≥ 10,000 requests/s (estimate 11,250) " in "\n".join(repeated_lines([bound, limit]))
    shown = result_json([bound], None)
    assert shown["throughput"]["estimate_per_s"] == pytest.approx(12_500)
    assert "estimate_per_s" not in result_json([limit], None)["throughput"]
    assert usable_text(record(0.99, 0.6)) == "at least 10,000 requests/s (estimate 16,667)"


def test_records_of_before_have_none() -> None:
    old = with_checks(bound=True, load=Closed())
    again = Record.model_validate_json(old.model_dump_json())
    assert again.throughput.estimate_per_s is None


@pytest.mark.parametrize(
    ("trials", "middle"),
    [
        ([], None),
        ([(None, 100.0)], None),
        ([(120.0, 100.0)], 120.0),
        # A repetition at the server's limit is what others are an estimate of.
        ([(120.0, 100.0), (None, 118.0), (119.0, 90.0)], 119.0),
    ],
)
def test_several_trials_have_one_estimate(
    trials: list[tuple[float | None, float | None]], middle: float | None
) -> None:
    assert middle_estimate(trials) == middle


def test_a_suite_has_a_column_for_it_and_ranks_by_what_is_certain() -> None:
    bound = [replace(figures(100.0 + n), lower_bound=True, estimate_per_s=150.0) for n in range(6)]
    exact = [figures(120.0 + n) for n in range(6)]
    rows = tuple(
        CellRows(Cell(subject(name), LOAD), some) for name, some in (("b", bound), ("e", exact))
    )
    (found,) = tabulate(RunCells(rows, (), ()), plan(subject("b"), subject("e")))
    places = {row.cell.subject.framework: str(row.places) for row in found.ranked}
    assert places == {"e": "1-2", "b": "1-2"}, "b may carry more, but nobody knows it"
    shown = table.text([found], width=None, published=False)
    assert table.ESTIMATES in shown.replace("\n", " ")
    header = next(line for line in shown.splitlines() if line.startswith("subject"))
    assert "estimate" in header.split()
    lines = list(csv.DictReader(csv_lines(table.sheet([found], published=False))))
    estimates = {line["Framework"]: line["estimate_per_s"] for line in lines}
    assert estimates == {"b": "150", "e": ""}
    of_row = {row["framework"]: row["figures"]["estimate_per_s"] for row in rows_json([found])}
    assert of_row == {"b": 150.0, "e": None}
    json.dumps(rows_json([found]))
