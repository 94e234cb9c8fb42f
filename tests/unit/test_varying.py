"""Answers whose size changes under load."""

from __future__ import annotations

import pytest
from samples import good_record, plan
from trueload.record.schema import Claim, Throughput
from trueload.verdict.varying import check_varying


@pytest.mark.parametrize(
    ("verified", "each", "status"),
    [(192, 192.0, "pass"), (192, 52.0, "warn"), (192, 193.5, "pass"), (192, 200.0, "warn")],
)
def test_answers_have_the_size_of_the_one_that_was_verified(
    verified: int, each: float, status: str
) -> None:
    per_s = Throughput(ok_per_s=10_000, bytes_in_per_s=each * 10_000, bytes_out_per_s=4e5)
    told = good_record().plan.model_copy(update={"claim": Claim(answer_bytes=verified)})
    check = check_varying(good_record(throughput=per_s).model_copy(update={"plan": told}))
    assert (check.status, "192" in check.why) == (status, True), check.why


def test_answers_of_the_warm_up_that_come_late_are_no_change_of_size() -> None:
    # 10 slots and 100 answers: up to ten of them were asked for before.
    told = good_record().plan.model_copy(
        update={"claim": Claim(answer_bytes=192), "generate": plan(connections=10)}
    )
    record = good_record(
        throughput=Throughput(ok_per_s=100, bytes_in_per_s=192 * 109.0, bytes_out_per_s=1)
    )
    counts = record.counts.model_copy(update={"ok": 100})
    assert (
        check_varying(record.model_copy(update={"plan": told, "counts": counts})).status == "pass"
    )
