"""Answers that were sent before their requests had arrived."""

from __future__ import annotations

import pytest
from samples import good_record
from trueload.protocol.early_answers import Early
from trueload.record.schema import Status
from trueload.verdict.predicted import check_predicted


@pytest.mark.parametrize(
    ("sentence", "early", "status", "why"),
    [
        ("the kernel was never asked", Early(), "n/a", "asked about no answer"),
        ("each came after its request", Early(asked=500), "pass", "500 answers"),
        ("one slip", Early(asked=500, unacknowledged=1), "warn", "1 of 500"),
        ("two slips", Early(asked=500, too_soon=2), "warn", "2 of 500"),
        ("three without a request", Early(asked=500, unacknowledged=3), "fail", "acknowledged"),
        ("three too soon", Early(asked=500, too_soon=3), "fail", "shortest round trip"),
        ("two of each", Early(asked=500, unacknowledged=2, too_soon=2), "warn", "2 of 500"),
    ],
)
def test_three_answers_that_cannot_be_made_of_their_requests_fail(
    sentence: str, early: Early, status: Status, why: str
) -> None:
    check = check_predicted(good_record(early=early))
    assert (check.status, why in check.why) == (status, True), f"{sentence}: {check}"
