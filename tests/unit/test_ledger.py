"""The checks of a broadcast: each message once at each receiver, and figures that agree."""

from __future__ import annotations

from typing import Any

import pytest
from broadcast_samples import DELIVERED, broadcast
from samples import check_of, distribution, histogram
from trueload.record.schema import Status
from trueload.verdict import CHECKS

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
    found = check_of(broadcast(**changes), "ledger")
    assert (found.status, why in found.why) == (status, True), (what, found)


def test_an_ordinary_broadcast_is_valid_and_says_which_checks_are_not_for_it() -> None:
    record = broadcast()
    assert record.verdict == "valid", [c for c in record.checks if c.status in ("warn", "fail")]
    not_applicable = {each.name for each in record.checks if each.status == "n/a"}
    assert not_applicable == {
        *("stale", "littles-law", "send-lag", "rate-reached", "backlog", "fairness", "stall"),
        *("server-idle", "quantile-width", "both-ends", "over-pool", "host-bias", "clocks"),
        *("hosts-lost", "one-machine", "sessions"),
        *("cpu-limit", "subject-cpu-limit", "slow-connections", "predicted", "varying", "window"),
        *("protocol", "goaway", "streams", "flow-control", "delayed-ack", "cpu-speed", "data"),
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
        ({"untimed": 1}, "999 deliveries were to be timed, but 1000 were timed"),
        (
            {"untimed": DELIVERED - 3, "delivery_ns": distribution(histogram((5, 3)))},
            None,
        ),
    ],
)
def test_deliveries_that_do_not_add_up_fail_the_audit(
    changes: dict[str, Any], why: str | None
) -> None:
    found = check_of(broadcast(**changes), "audit")
    assert found.status == ("pass" if why is None else "fail")
    assert why is None or why in found.why


def test_the_ledger_is_explained() -> None:
    assert "exactly once" in CHECKS["ledger"].meaning
