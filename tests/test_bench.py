"""The benchmark's pure parts: what is run in which order, and what becomes of the samples."""

from __future__ import annotations

import sys
from collections import Counter
from importlib import import_module
from typing import Any

import pytest
from harness import ROOT


@pytest.fixture(scope="module")
def bench() -> Any:
    """`cells` and `results` of bench/, which is no package: its scripts are run where they lie."""
    sys.path.insert(0, str(ROOT / "bench"))
    try:
        return {name: import_module(name) for name in ("cells", "results")}
    finally:
        sys.path.remove(str(ROOT / "bench"))


def sample(bench: Any, number: int, cell: Any, cpu_s: float, server_cpu_s: float = 1.0) -> Any:
    return bench["results"].Sample(
        round=number,
        cell=cell,
        requests=1_000_000,
        wall_s=2.0,
        cpu_s=cpu_s,
        server_cpu_s=server_cpu_s,
        peak_rss_bytes=None,
    )


def test_each_cell_has_one_turn_in_each_round_in_an_order_that_the_seed_decides(bench: Any) -> None:
    schedule = bench["cells"].schedule
    turns = schedule(7, seed=1)
    counted = Counter((turn.round, turn.cell) for turn in turns)
    assert set(counted.values()) == {1}
    cells = bench["cells"].cpu_cells()
    assert all((number, cell) in counted for number in range(7) for cell in cells)
    assert turns == schedule(7, seed=1)
    assert turns != schedule(7, seed=2)


def test_every_target_compares_cells_that_are_measured(bench: Any) -> None:
    measured = set(bench["cells"].cpu_cells() + bench["cells"].memory_cells())
    for target in bench["cells"].targets():
        assert {target.cell, target.against} <= measured, target.what


def test_a_ratio_is_that_of_the_medians_and_its_spread_that_within_rounds(bench: Any) -> None:
    ours, theirs = bench["cells"].cpu_cells()[:2]
    costs = [(1.0, 2.0), (3.0, 4.0), (2.0, 8.0)]
    samples = []
    for number, (one, two) in enumerate(costs):
        samples += [sample(bench, number, ours, one), sample(bench, number, theirs, two)]
    found = bench["results"].ratio(samples, ours, theirs, "generator")
    assert (found.middle, found.least, found.most) == (0.5, 0.25, 0.75)


@pytest.mark.parametrize(
    ("cost", "word"), [(0.84, "pass"), (0.85, "pass"), (0.86, "FAIL"), (None, "not measured")]
)
def test_a_target_is_marked_by_the_ratio_reached(bench: Any, cost: float | None, word: str) -> None:
    target = bench["cells"].targets()[0]
    samples = [sample(bench, 0, target.against, 1.0)]
    if cost is not None:
        samples.append(sample(bench, 0, target.cell, cost))
    assert bench["results"].marks(samples, [target])[0].word == word


def test_a_cell_that_was_not_measured_is_said_so(bench: Any) -> None:
    lines = bench["results"].table([])
    assert len(lines) == 1 + len(bench["cells"].cpu_cells())
    assert all(line.endswith("not measured") for line in lines[1:])
