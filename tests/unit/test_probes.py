"""Requests to a subject in addition to its load."""

from __future__ import annotations

from pathlib import Path

import pytest
from samples import good_record
from trueload.record.schema import Probes
from trueload.runner.probes import Prober, others, with_probes
from trueload.subjects.contracts import load_contract
from trueload.verdict.varying import check_varying

CONTRACTS = Path(__file__).resolve().parents[2] / "contracts"


@pytest.mark.parametrize(
    ("contract", "category", "paths"),
    [
        ("http-plaintext", "platform", {"/", "/no/such/path"}),
        ("http-plaintext", "micro", {"/"}),
        ("http-wait", "micro", {"/wait/0", "/wait/50", "/wait/20"}),
        ("tcp-echo", "micro", set()),
    ],
)
def test_it_is_asked_what_its_contract_fixes_beside_the_load(
    contract: str, category: str, paths: set[str]
) -> None:
    found = load_contract(CONTRACTS, contract)
    assert {each.path for each in others(found, category)} == paths  # type: ignore[arg-type]
    assert all(each.form != "pipelined" for each in others(found, category))  # type: ignore[arg-type]


@pytest.mark.parametrize(("wrong", "status"), [(0, "n/a"), (1, "warn"), (2, "warn"), (3, "fail")])
def test_a_wrong_answer_under_load_warns_and_three_fail(wrong: int, status: str) -> None:
    probes = Probes(asked=12, wrong=wrong, fault="an unknown path (/no): status 200 instead of 404")
    check = check_varying(good_record(probes=probes))
    assert check.status == status, check
    assert ("status 200" in check.why) == (wrong > 0)


def test_a_record_is_judged_anew_only_if_something_was_answered() -> None:
    record = good_record()
    assert with_probes(record, Prober()) is record
    found = with_probes(record, Prober(asked=12, wrong=12, fault="another answer"))
    assert (found.verdict, found.probes) == (
        "invalid",
        Probes(asked=12, wrong=12, fault="another answer"),
    )
