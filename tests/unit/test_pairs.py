"""Ratios to a reference: which rows of the store make one, and what rows are ranked by."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import pytest
import samples
from suite_samples import LOAD, plan, subject
from trueload.protocol.plan import Duration, Requests
from trueload.report import columns, table
from trueload.report.export.csv import csv_lines
from trueload.store.rows import Row
from trueload.suites.load_tables import tabulate
from trueload.suites.pairs import reference_labels, reference_load
from trueload.suites.plan import Cell, PlannedLoad, SuitePlan, Trial, describe, trials
from trueload.suites.summary import collect

REFERENCE = subject("reference")
OTHER = LOAD.model_copy(update={"connections": 8})


def paired(*names: str, loads: tuple[PlannedLoad, ...] = (LOAD,), repeat: int = 6) -> SuitePlan:
    made = plan(*map(subject, names), repeat=repeat, loads=loads)
    return made.model_copy(update={"reference": REFERENCE})


def rows(*steps: tuple[str, float | None], load: PlannedLoad = LOAD) -> Iterator[Row]:
    """Rows in the order of their storing: ``opens`` and ``reference`` are of the reference, others
    are subjects' with so many requests/s, or failed."""
    numbers: dict[str, itertools.count[int]] = {}
    for seq, (what, per_s) in enumerate(steps, 1):
        if what in ("opens", "reference"):
            key, labels = f"reference {seq}", reference_labels(load.key, opens=what == "opens")
        else:
            number = next(numbers.setdefault(what, itertools.count(1)))
            key, labels = Trial(Cell(subject(what), load), number).key, {"repetition": f"r{number}"}
        record = None
        if per_s is not None:
            good = samples.good_record(id=f"record {seq}")
            rate = good.throughput.model_copy(update={"ok_per_s": per_s})
            record = good.model_copy(update={"verdict": "valid", "throughput": rate})
        yield Row(
            seq=seq, number=seq, key=key, labels=labels, reason=None, detail=None, added_at="",
            outcome="failed" if record is None else "measured", record=record,
        )  # fmt: skip


def ratios(*steps: tuple[str, float | None]) -> list[float | None]:
    found = collect(paired("a", "b"), rows(*steps))
    return [each.ratio for cell in found.cells for each in cell.measured]


SERIES: list[tuple[str, list[tuple[str, float | None]], list[float | None]]] = [
    ("between two", [("opens", 100), ("a", 50), ("reference", 100)], [0.5]),
    ("between two that differ", [("opens", 100), ("a", 50), ("reference", 400)], [0.25]),
    (
        "two share the one between them",
        [("opens", 100), ("a", 50), ("reference", 100), ("b", 30), ("reference", 100)],
        [0.5, 0.3],
    ),
    ("without the one after it", [("opens", 100), ("a", 50)], [None]),
    ("another series begins", [("opens", 100), ("a", 50), ("opens", 100)], [None]),
    ("the one after it failed", [("opens", 100), ("a", 50), ("reference", None)], [None]),
    ("the one before it failed", [("opens", None), ("a", 50), ("reference", 100)], [None]),
    ("not paired at all", [("a", 50)], [None]),
    (
        "one that failed has none, the next has",
        [("opens", 100), ("a", None), ("b", 50), ("reference", 100)],
        [0.5],
    ),
]


@pytest.mark.parametrize(("what", "steps", "expected"), SERIES, ids=[each[0] for each in SERIES])
def test_a_ratio_lies_between_two_of_the_reference(
    what: str, steps: list[tuple[str, float | None]], expected: list[float | None]
) -> None:
    found = ratios(*steps)
    assert [None if r is None else round(r, 9) for r in found] == expected, what


def test_rows_are_ranked_by_their_ratios() -> None:
    """The machine slows down to a tenth and back, for both alike."""
    steps: list[tuple[str, float | None]] = [("opens", 100.0)]
    for number in range(6):
        speed = 10.0 ** (number % 2)
        # The speed changes between two trials, never around one.
        steps += [
            ("opens", 100.0 * speed),
            ("a", (50 + number) * speed),
            ("reference", 100 * speed),
        ]
        steps += [("b", (70 + number) * speed), ("reference", 100 * speed)]
    made = paired("a", "b")
    (found,) = tabulate(collect(made, rows(*steps)), made)
    assert [(s.cell.subject.framework, str(s.places)) for s in found.ranked] == [
        ("b", "1"),
        ("a", "2"),
    ]
    shown = table.text([found], width=None, published=False)
    told = shown.replace("\n", " ")
    assert "0.725 (0.700-0.750)" in shown
    assert table.RATIOS in told
    lines = "".join(csv_lines(table.sheet([found], published=False)))
    assert "ratio" in lines.splitlines()[0].split(",")


def test_a_row_that_lacks_a_ratio_ranks_all_by_their_figures() -> None:
    steps: list[tuple[str, float | None]] = []
    for number in range(6):
        steps += [
            ("opens", 100.0),
            ("a", 50.0 + number),
            ("reference", 100.0),
            ("b", 70.0 + number),
        ]
    made = paired("a", "b")
    (found,) = tabulate(collect(made, rows(*steps)), made)
    assert [str(s.places) for s in found.ranked] == ["1", "2"]
    assert table.RATIOS not in table.text([found], width=None, published=False)
    assert [columns.RATIO.read(columns.Row(row, None)) is None for row in found.ranked] == [
        True,
        False,
    ]


def test_the_trials_of_a_load_follow_each_other() -> None:
    made = paired("a", "b", "c", loads=(LOAD, OTHER))
    order = list(trials(made))
    assert len({trial.key for trial in order}) == len(order) == 36
    changes = sum(a.cell.load != b.cell.load for a, b in itertools.pairwise(order))
    assert changes <= 2 * 6 - 1
    assert order == list(trials(made)), "the same plan gives the same order"
    assert "each beside c/reference" in describe(made)


def test_the_reference_runs_under_the_same_load_for_a_shorter_time() -> None:
    made = paired("a")
    for stop, expected_ns in (
        (Duration(ns=2_000_000_000), 1_000_000_000),
        (Duration(ns=30_000_000_000), 3_000_000_000),
        (Requests(count=5), 1_000_000_000),
    ):
        load = made.model_copy(update={"stop": stop}).load_of(LOAD)
        beside = reference_load(load)
        assert beside.stop == Duration(ns=expected_ns)
        assert beside.connections == load.connections
        assert math.isclose(getattr(beside.warmup, "ns", 0), 3e8)
