"""The headline of a report, its ranks and its table make the same claims."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from report_samples import made, put, read, report_of
from trueload.report.html.entries import merged
from trueload.store.rows import Run
from trueload.store.runs import Store
from trueload.suites.load_tables import LoadTable


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store.sqlite") as opened:
        yield opened


def test_the_headline_of_single_runs_claims_no_difference(store: Store) -> None:
    single = {**read("http"), "rows": read("http")["rows"][:1]}
    one, two = put(store, at_speed(single, 1.0)), put(store, at_speed(single, 0.5))
    view = made(store, one, two).view
    assert {
        entry.rank for section in view_sections(store, one, two) for entry in section.ranked
    } == {1}
    text = " ".join(view.words)
    assert "cannot be told apart: one trial each; use --repeat 6 or trueload compare" in text
    assert "is ahead" not in text
    compared, _ = view.parts[0].pairs[0]
    assert set(compared.marks) == {"unclear"}


@pytest.mark.parametrize("speed", [1.0, 1.3, 0.7])
def test_the_headline_of_pairs_says_what_their_table_says(store: Store, speed: float) -> None:
    run = put(store, at_speed(read("ab"), speed, side="b"))
    view = made(store, run).view
    grid, _ = view.parts[0].pairs[0]
    line, mark = grid.rows[0], grid.marks[0]
    text = view.words[0]
    assert line[0] == "throughput"
    assert f"ratio {line[2]}, {line[3]} ({grid.header[3]})" in text
    if mark in ("better", "worse"):
        assert f" is {mark} than " in text
    else:
        assert "cannot be told apart" in text
    ranks = [entry.rank for entry in view_sections(store, run)[0].ranked]
    assert ranks == ([1, 2] if mark in ("better", "worse") else [1, 1])


def at_speed(value: dict[str, Any], speed: float, side: str | None = None) -> dict[str, Any]:
    """The run with the throughput of its trials, or of one side's, scaled; all are valid."""
    for row in value["rows"]:
        row["record"]["verdict"] = "valid"
        if side is None or row["labels"]["side"] == side:
            row["record"]["throughput"]["ok_per_s"] *= speed
    return value


def view_sections(store: Store, *runs: Run) -> tuple[LoadTable, ...]:
    return merged(each for run in runs for each in report_of(store, run).sections)
