"""When the trials of a suite are paired with a reference, and what is said where they cannot be."""

from __future__ import annotations

import pytest
from harness import ROOT
from trueload.commands import suite_pair
from trueload.commands.suite_options import Pair
from trueload.commands.suite_pair import check_paired, find_reference
from trueload.errors import UserError

NAME = "rust/trueload:default"
# What was asked, the suite's reference, repetitions, a virtual machine or not: paired or not.
CASES = [
    ("by default on a virtual machine", None, NAME, 6, True, True),
    ("by default on a machine of one's own", None, NAME, 6, False, False),
    ("by default in a first look", None, NAME, 3, True, False),
    ("by default without a reference", None, "", 6, True, False),
    ("by default, but it is not there", None, "rust/nothing", 6, True, False),
    ("asked for", "reference", NAME, 1, False, True),
    ("asked not to", "none", NAME, 6, True, False),
]


@pytest.fixture(autouse=True)
def _catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize(
    ("what", "pair", "name", "repeat", "virtual", "paired"), CASES, ids=[case[0] for case in CASES]
)
def test_trials_are_paired(
    monkeypatch: pytest.MonkeyPatch,
    what: str,
    pair: Pair | None,
    name: str,
    repeat: int,
    virtual: bool,
    paired: bool,
) -> None:
    monkeypatch.setattr(suite_pair, "is_virtual_machine", lambda: virtual)
    found = find_reference(pair, name, repeat)
    assert (found is not None) == paired, what
    assert found is None or found.name == "rust/trueload"


@pytest.mark.parametrize(
    ("name", "expected"), [("", "this suite names no reference"), ("rust/nothing", "rust/nothing")]
)
def test_what_is_asked_for_and_not_there_is_an_error(name: str, expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        find_reference("reference", name, 6)


def test_stages_are_not_paired() -> None:
    check_paired(None, paired=False)
    check_paired("reference", paired=True)
    with pytest.raises(UserError, match="--pair reference and stages cannot be used together"):
        check_paired("reference", paired=False)
