"""The overall verdict of one trial and of several; and which addresses are loopback."""

from __future__ import annotations

import pytest
from samples import OK, counts, good_record
from trueload.record.schema import Check, Status
from trueload.request.route import is_loopback
from trueload.verdict import decide, worst_checks


@pytest.mark.parametrize(
    ("statuses", "verdict"),
    [
        ((), "valid"),
        (("pass", "n/a"), "valid"),
        (("pass", "warn", "n/a"), "suspect"),
        (("warn", "fail", "pass"), "invalid"),
    ],
)
def test_the_verdict_follows_from_the_worst_check(
    statuses: tuple[Status, ...], verdict: str
) -> None:
    checks = [Check(name="x", status=s, value=None, limit=None, why="") for s in statuses]
    assert decide(checks) == verdict


def test_of_several_trials_each_check_counts_as_it_came_out_worst() -> None:
    good = good_record()
    worse = good_record(counts=counts(ok=OK - 50, failed={"reset": 50}))
    worst = {check.name: check.status for check in worst_checks([good, worse, good])}
    assert worst["errors"] == "warn"
    assert worst["audit"] == "fail"  # 10,000 latencies for 9,950 that ended well
    assert worst["fairness"] == "pass"


@pytest.mark.parametrize(
    ("address", "loopback"),
    [
        ("127.0.0.1:80", True),
        ("127.8.9.1:80", True),
        ("[::1]:80", True),
        ("10.0.0.1:80", False),
        ("[fe80::1%2]:80", False),
    ],
)
def test_loopback_is_told_by_the_address(address: str, loopback: bool) -> None:
    assert is_loopback(address) is loopback
