"""Answers that were sent before their requests had arrived."""

from __future__ import annotations

import pytest
from samples import good_record
from trueload.protocol.early_answers import EarlyAnswers
from trueload.record.schema import Status
from trueload.verdict.predicted import check_predicted


@pytest.mark.parametrize(
    ("sentence", "early", "status", "why"),
    [
        ("the kernel was never asked", EarlyAnswers(), "n/a", "asked about no answer"),
        ("each came after its request", EarlyAnswers(asked=500), "pass", "500 answers"),
        ("one slip", EarlyAnswers(asked=500, unacknowledged=1), "warn", "1 of 500"),
        ("two slips", EarlyAnswers(asked=500, too_soon=2), "warn", "2 of 500"),
        (
            "three without a request",
            EarlyAnswers(asked=500, unacknowledged=3),
            "fail",
            "acknowledged",
        ),
        ("three too soon", EarlyAnswers(asked=500, too_soon=3), "fail", "shortest round trip"),
        ("two of each", EarlyAnswers(asked=500, unacknowledged=2, too_soon=2), "warn", "2 of 500"),
    ],
)
def test_three_answers_that_cannot_be_made_of_their_requests_fail(
    sentence: str, early: EarlyAnswers, status: Status, why: str
) -> None:
    check = check_predicted(good_record(early=early))
    assert (check.status, why in check.why) == (status, True), f"{sentence}: {check}"
