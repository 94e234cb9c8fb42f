"""What the check of errors asks when no answer was HTTP, and datagrams that nobody asked for."""

from __future__ import annotations

import pytest
from samples import OK, check_of, counts, good_record
from trueload.protocol.plan import Datagrams
from trueload.verdict.answers import check_errors

FRAMED = "10,000 of 10,000 requests failed, mostly framing"
NONE = {"ok": 0, "failed": {"framing": OK}, "statuses": {}}


@pytest.mark.parametrize(
    ("url", "changes", "why"),
    [
        ("http", NONE, f"{FRAMED}; none was answered in HTTP: does the server want https://?"),
        ("https", NONE, f"{FRAMED}; none was answered in HTTP"),
        ("http", {**NONE, "statuses": {"200": 1}}, FRAMED),
        ("http", {**NONE, "ok": 1}, FRAMED),
        ("http", {**NONE, "failed": {"framing": OK - 1, "reset": 1}}, FRAMED),
    ],
)
def test_who_speaks_something_else_is_asked_whether_it_is_tls(
    url: str, changes: dict[str, object], why: str
) -> None:
    plan = good_record().plan.model_copy(update={"url": f"{url}://127.0.0.1:8443/"})
    record = good_record(counts=counts(**changes), plan=plan)
    assert check_errors(record).why == why


@pytest.mark.parametrize(
    ("reason", "asks"),
    [
        ("the status line does not begin with HTTP/1.0 or HTTP/1.1", True),
        ("a second Content-Length", False),
    ],
)
def test_who_speaks_http_though_wrongly_is_not_asked(reason: str, asks: bool) -> None:
    good = good_record()
    connections = good.connections.model_copy(update={"reasons": {"framing": reason}})
    record = good_record(counts=counts(**NONE), connections=connections)
    assert ("https://" in check_errors(record).why) is asks


@pytest.mark.parametrize(
    ("datagrams", "status", "why"),
    [
        (0, "pass", "settled"),
        (1, "pass", "1 datagram answered nothing"),
        (10, "warn", "10 datagrams answered nothing"),
        (500, "fail", "5 % of the requests"),
    ],
)
def test_datagrams_that_answer_nothing_are_judged(datagrams: int, status: str, why: str) -> None:
    none = {"late": 0, "duplicated": 0, "reordered": 0, "dropped": 0, "overflowed": 0}
    record = good_record(datagrams=Datagrams(**none, unsolicited=datagrams))
    check = check_of(record, "unsolicited")
    assert (check.status, why in check.why) == (status, True), check
