"""The check `rate-reached` for a number of requests, whose window lasts until the last answer."""

from __future__ import annotations

from typing import Any

import pytest
from samples import OK, WINDOW_NS, counts, distribution, good_record, histogram, staged
from trueload.protocol.plan import Requests
from trueload.record.schema import Check, Record
from trueload.report import result

SENT_NS = WINDOW_NS  # 10,000 requests at 10,000/s


def by_count(window_ns: int, service_ns: int = 1_000_000, **changes: Any) -> Record:
    """10,000 requests at 10,000/s, with this window and service time."""
    good = good_record()
    phase = staged((OK, OK)).model_copy(update={"stop": Requests(count=OK)})
    return good_record(
        plan=good.plan.model_copy(update={"window": phase}),
        window=good.window.model_copy(update={"window_ns": window_ns}),
        service_ns=distribution(histogram((service_ns, OK))),
        **changes,
    )


def found(record: Record) -> Check:
    return next(check for check in record.checks if check.name == "rate-reached")


LATE_NS = SENT_NS // 2
TIMEOUT = counts(ok=OK - 1, failed={"timeout.total": 1})


@pytest.mark.parametrize(
    ("what", "record", "status", "expected"),
    [
        ("in its time", by_count(SENT_NS), "pass", "10,000/s sent"),
        ("slow answers", by_count(SENT_NS + LATE_NS, LATE_NS), "pass", "10,000/s sent"),
        ("a timeout", by_count(6 * SENT_NS, counts=TIMEOUT), "pass", "10,000/s sent"),
        ("without one", by_count(6 * SENT_NS), "fail", "83.3 % short"),
        (
            "slow answers, and requests that waited for them",
            by_count(2 * SENT_NS + LATE_NS, LATE_NS),
            "fail",
            "5,000/s sent: 50 % short",
        ),
    ],
)
def test_the_last_answer_is_no_time_of_sending(
    what: str, record: Record, status: str, expected: str
) -> None:
    check = found(record)
    assert (check.status, expected in check.why) == (status, True), (what, check)


def test_the_result_names_the_rate_that_the_check_names() -> None:
    late = by_count(SENT_NS + LATE_NS, LATE_NS)
    assert result.rate_text(late) == "offered 10,000 requests/s, sent 10,000/s"
