"""The checks of a broadcast: each message once at each receiver, and figures that agree."""

from __future__ import annotations

from typing import Any

import pytest
from samples import PHASE, distribution, good_record, histogram, plan
from trueload.plan import DeliveryHistograms, RequestPlan, Requests, Turns, WsBroadcastPlan
from trueload.record import Check, Deliveries, Record, RecordPlan, Status
from trueload.verdict import EXPLANATIONS

MESSAGES, RECEIVERS = 100, 10
DELIVERED = MESSAGES * RECEIVERS
EXCHANGE = WsBroadcastPlan(
    opening=RequestPlan(method="GET", path="/ws", headers=(), body_sha256=None),
    dialect="json",
    padding=200,
)


def broadcast(**changes: Any) -> Record:
    """100 messages to 10 receivers; ``changes`` are of the deliveries."""
    every = histogram((1_000_000, changes.get("delivered", DELIVERED)))
    each = histogram((1_000_000, MESSAGES))
    histograms = DeliveryHistograms(delivery=every, first=each, median=each, p95=each, last=each)
    fields: dict[str, Any] = {
        "expected": DELIVERED,
        "delivered": DELIVERED,
        "lost": 0,
        "duplicate": 0,
        "out_of_order": 0,
        "per_s": float(DELIVERED),
        "delivery_ns": distribution(every),
        "first_ns": distribution(each),
        "median_ns": distribution(each),
        "p95_ns": distribution(each),
        "last_ns": distribution(each),
        "histograms": histograms,
    }
    window = PHASE.model_copy(
        update={"load": Turns(concurrent=4), "stop": Requests(count=MESSAGES)}
    )
    return good_record(
        plan=RecordPlan(
            url="ws://127.0.0.1:8080/ws",
            generate=plan(exchange=EXCHANGE, request=None),
            warmup=None,
            window=window,
        ),
        deliveries=Deliveries(**{**fields, **changes}),
    )


def check(record: Record, name: str) -> Check:
    return next(check for check in record.checks if check.name == name)


CASES: list[tuple[str, dict[str, Any], Status, str]] = [
    ("each came once", {}, "pass", "each of 1,000 deliveries came once"),
    ("one was lost", {"delivered": DELIVERED - 1, "lost": 1}, "fail", "1 of 1,000 deliveries were"),
    ("one came twice", {"duplicate": 1}, "fail", "1 delivery came twice"),
    (
        "some were lost and some came twice",
        {"delivered": DELIVERED - 7, "lost": 7, "duplicate": 3},
        "fail",
        "7 of 1,000 deliveries were lost; 3 deliveries came twice",
    ),
    ("order is no loss", {"out_of_order": 5}, "pass", "5 of them out of order"),
    ("nothing was due", {"expected": 0, "delivered": 0}, "n/a", "no message was due"),
]


@pytest.mark.parametrize(("what", "changes", "status", "why"), CASES, ids=[c[0] for c in CASES])
def test_a_lost_or_doubled_delivery_fails_the_ledger(
    what: str, changes: dict[str, Any], status: Status, why: str
) -> None:
    found = check(broadcast(**changes), "ledger")
    assert (found.status, why in found.why) == (status, True), (what, found)


def test_an_ordinary_broadcast_is_valid_and_says_which_checks_are_not_for_it() -> None:
    record = broadcast()
    assert record.verdict == "valid", [c for c in record.checks if c.status in ("warn", "fail")]
    not_applicable = {each.name for each in record.checks if each.status == "n/a"}
    assert not_applicable == {
        *("stale", "littles-law", "send-lag", "rate-reached", "fairness", "steady-state"),
        *("server-idle", "quantile-width", "both-ends"),
    }
    assert all(each.why for each in record.checks)


def test_a_message_that_was_lost_makes_the_run_invalid() -> None:
    assert broadcast(delivered=DELIVERED - 1, lost=1).verdict == "invalid"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"delivered": DELIVERED - 1}, "999 are accounted for"),
        ({"delivery_ns": distribution(histogram((5, 3)))}, "3 were timed"),
        ({"last_ns": distribution(None)}, None),
    ],
)
def test_deliveries_that_do_not_add_up_fail_the_audit(
    changes: dict[str, Any], why: str | None
) -> None:
    found = check(broadcast(**changes), "audit")
    assert found.status == ("pass" if why is None else "fail")
    assert why is None or why in found.why


def test_the_ledger_is_explained() -> None:
    assert "exactly once" in EXPLANATIONS["ledger"].meaning
