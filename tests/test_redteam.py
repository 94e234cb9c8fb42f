"""The short form of `make redteam`: attacks judged by counts, as these depend on no machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from harness import ROOT

COUNTED = (
    *("starved", "few", "varying", "varying-same", "over-pool", "headers"),
    *("one-left-out", "swapped", "swapped-across"),
)


@pytest.fixture(scope="module")
def attacks() -> Iterator[Any]:
    """The table of attacks."""
    sys.path.insert(0, str(ROOT / "bench"))
    yield import_module("redteam.attacks")
    sys.path.remove(str(ROOT / "bench"))


@pytest.fixture(scope="module")
def stage(attacks: Any) -> Iterator[Any]:
    """The stage with the compiled programs."""
    with import_module("redteam.stage").open_stage() as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize("key", COUNTED)
def test_an_attack_that_counts_decide_is_told_for_what_it_is(
    attacks: Any, stage: Any, key: str
) -> None:
    (attack,) = [each for each in attacks.ATTACKS if each.key == key]
    row = attack.make(stage)
    if row.right is None:
        pytest.skip(row.said)
    assert row.right, row
