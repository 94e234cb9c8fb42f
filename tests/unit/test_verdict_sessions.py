"""The check of sessions, and how requests that were skipped count in figures and conditions."""

from __future__ import annotations

import math

import pytest
from samples import counts, good_record, staged
from trueload.protocol.plan import Requests
from trueload.record import figures
from trueload.record.accounts.sessions import SessionsRecord, of_sessions
from trueload.record.schema import Record, Status
from trueload.report.result import rate_text
from trueload.stats import Distribution
from trueload.verdict import CHECKS

GOOD = good_record()


def with_sessions(ok: int, failed: int = 0, unfinished: int = 0, skipped: int = 0) -> Record:
    sessions = SessionsRecord(
        begun=ok + failed + unfinished,
        ok=ok,
        failed=failed,
        unfinished=unfinished,
        latency_ns=Distribution(),
        latency={900: ok} if ok else {},
    )
    found = counts(skipped=skipped)
    return figures.with_figures(GOOD.model_copy(update={"sessions": sessions, "counts": found}))


@pytest.mark.parametrize(
    ("record", "status", "why"),
    [
        (GOOD, "n/a", "no scenario"),
        (with_sessions(1000, unfinished=64), "pass", "0 of 1,000 sessions failed"),
        (with_sessions(10_000, failed=9), "pass", "9 of 10,009"),
        (with_sessions(999, failed=1, skipped=4), "warn", "and 4 requests behind the failures"),
        (with_sessions(95, failed=5), "fail", "5 of 100 sessions failed"),
        (with_sessions(0, unfinished=64), "fail", "none of 64 sessions ended"),
        (with_sessions(128, unfinished=64), "pass", "0 of 128"),
        (with_sessions(127, unfinished=64), "warn", "the long ones are missing"),
    ],
)
def test_failed_sessions_are_judged_like_failed_requests(
    record: Record, status: Status, why: str
) -> None:
    found = CHECKS["sessions"].check(record)
    assert (found.status, why in found.why) == (status, True), found.why


def test_of_a_number_of_sessions_only_their_rate_is_known() -> None:
    record = with_sessions(95, failed=5)
    window = staged((50, 50)).model_copy(update={"stop": Requests(count=100)})
    record = record.model_copy(update={"plan": record.plan.model_copy(update={"window": window})})
    assert rate_text(record) == "offered 50 sessions/s"
    assert CHECKS["rate-reached"].check(record).status == "pass", "its requests were all sent"


def test_what_to_do_fits_what_is_wrong() -> None:
    check = CHECKS["sessions"]
    assert "--duration" in check.remedy_for(with_sessions(0, unfinished=64))
    assert "extract" in check.remedy_for(with_sessions(95, failed=5))


def test_a_failed_session_is_slower_than_any() -> None:
    sessions = with_sessions(95, failed=5).sessions
    assert sessions is not None
    assert of_sessions(sessions).value("p95") < math.inf
    assert of_sessions(sessions).value("p96") == math.inf


def test_skipped_requests_have_no_time_and_count_as_errors() -> None:
    record = with_sessions(95, failed=5, skipped=GOOD.counts.ok)
    assert figures.metric_value("p50", record) < math.inf
    assert figures.metric_value("p51", record) == math.inf
    assert figures.metric_value("errors", record) == 0.5
