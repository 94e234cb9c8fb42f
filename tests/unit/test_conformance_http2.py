"""Reading h2spec's report in `make conformance`."""

from __future__ import annotations

import pytest

from tools import conformance_http2


def report(*outcomes: str, cases: int = conformance_http2.CASES) -> str:
    inner = [*outcomes, *[""] * (cases - len(outcomes))]
    lines = "".join(
        f'<testcase package="http2/6.7" classname="case {nth}">{each}</testcase>'
        for nth, each in enumerate(inner)
    )
    return f"<testsuites><testsuite>{lines}</testsuite></testsuites>"


def test_a_report_on_which_every_case_passed_has_no_findings() -> None:
    assert conformance_http2.findings(report()) == []


@pytest.mark.parametrize("outcome", ["failure", "error", "skipped"])
def test_a_case_that_did_not_pass_is_named(outcome: str) -> None:
    found = conformance_http2.findings(report("", f"<{outcome}>why</{outcome}>"))
    assert found == [f"http2/6.7 case 1: {outcome}"]


def test_a_suite_that_ran_less_has_shown_nothing() -> None:
    assert conformance_http2.findings(report(cases=3)) == ["3 cases were run, not 146"]
