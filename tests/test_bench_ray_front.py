"""What `bench/ray_front.py` makes of its figures; no cluster is started here."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import pytest
from harness import ROOT


@pytest.fixture(scope="module")
def ray_front() -> Any:
    sys.path.insert(0, str(ROOT / "bench"))
    try:
        return import_module("ray_front")
    finally:
        sys.path.remove(str(ROOT / "bench"))


def test_the_cost_of_a_host_is_the_difference_of_medians(ray_front: Any) -> None:
    counts = (ray_front.FEW, ray_front.MANY)
    found = {(way, hosts): [hosts / 100, 9.0, 0.0] for way in ray_front.PLACES for hosts in counts}
    rows = ray_front.table(found)[2:]
    assert len(rows) == len(ray_front.PLACES)
    assert all(row.endswith("| 0.020 cores | 0.120 cores | 0.0100 cores |") for row in rows)


@pytest.mark.parametrize(("cores", "word"), [(0.004, "met"), (0.0041, "missed")])
def test_what_each_host_more_costs_has_a_target(ray_front: Any, cores: float, word: str) -> None:
    counts = (ray_front.FEW, ray_front.MANY)
    found = {(place, hosts): [hosts * cores] for place in ray_front.PLACES for hosts in counts}
    assert [each.word for each in ray_front.judge(found)] == [word, word]
