"""Reading the report of the suite of `make conformance`."""

from __future__ import annotations

from typing import Any

import pytest

from tools import conformance


def results(**changed: dict[str, str]) -> dict[str, Any]:
    """A report in which every case passed, except for changed ones (`c7_1_6` is case 7.1.6)."""
    passed = {"behavior": "OK", "behaviorClose": "OK"}
    unchanged = range(1, conformance.CASES - len(changed) + 1)
    cases = {f"1.1.{number}": dict(passed) for number in unchanged}
    for name, change in changed.items():
        cases[name[1:].replace("_", ".")] = passed | change
    return cases


def test_a_report_in_which_every_case_passed_has_no_findings() -> None:
    assert conformance.findings(results()) == []
    informational = {"behavior": "INFORMATIONAL", "behaviorClose": "INFORMATIONAL"}
    assert conformance.findings(results(c7_1_6=informational)) == []


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        ({"behavior": "FAILED"}, "case 6.4.1: FAILED, closing OK"),
        ({"behavior": "NON-STRICT"}, "case 6.4.1: NON-STRICT, closing OK"),
        ({"behavior": "UNIMPLEMENTED"}, "case 6.4.1: UNIMPLEMENTED, closing OK"),
        ({"behaviorClose": "UNCLEAN"}, "case 6.4.1: OK, closing UNCLEAN"),
    ],
)
def test_a_case_that_did_not_pass_is_named(change: dict[str, str], finding: str) -> None:
    assert conformance.findings(results(c6_4_1=change)) == [finding]


def test_findings_are_in_the_order_of_the_cases() -> None:
    failed = {"behavior": "FAILED"}
    lines = conformance.findings(results(c10_1_1=failed, c9_1_1=failed, c9_1_10=failed))
    assert [line.split(":")[0] for line in lines] == ["case 9.1.1", "case 9.1.10", "case 10.1.1"]


def test_a_suite_that_ran_less_has_shown_nothing() -> None:
    fewer = dict(list(results().items())[:-1])
    assert conformance.findings(fewer) == ["246 cases were run, not 247"]
    assert conformance.findings({}) == ["0 cases were run, not 247"]


def test_the_table_counts_by_group() -> None:
    informational = {"behavior": "INFORMATIONAL", "behaviorClose": "INFORMATIONAL"}
    rows = conformance.table(results(c7_1_6=informational)).splitlines()
    assert "| 1 | framing | 246 | 246 | 0 |" in rows
    assert "| 7 | closing | 1 | 0 | 1 |" in rows
