"""What the check of errors asks when no answer was HTTP."""

from __future__ import annotations

import pytest
from samples import OK, counts, good_record
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
