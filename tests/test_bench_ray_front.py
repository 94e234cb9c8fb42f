"""What `bench/ray_front.py` makes of its figures; no cluster is started here."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize(("cores", "word"), [(0.004, "met"), (0.0041, "missed")])
def test_a_host_costs_the_difference_of_medians_and_has_a_target(
    cores: float, word: str, bench: Any
) -> None:
    front = bench["ray_front"]
    counts = (front.FEW, front.MANY)
    found = {
        (place, hosts): [hosts * cores, 9.0, 0.0] for place in front.PLACES for hosts in counts
    }
    marks, (_, _, *rows) = front.report(found)
    assert [each.word for each in marks] == [word, word]
    few, many = (f"{hosts * cores:.3f} cores" for hosts in counts)
    assert [row.split(" | ", 1)[1] for row in rows] == [f"{few} | {many} | {cores:.4f} cores |"] * 2
