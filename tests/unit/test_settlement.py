"""A broadcast shared by several engines: when it is settled, and the sum of its deliveries."""

from __future__ import annotations

import pytest
from samples import histogram
from trueload.engines.settlement import Settlement
from trueload.protocol.broadcast import (
    Deliveries,
    DeliveryHistograms,
    FailedMessage,
    PhaseSent,
    Sent,
    Settled,
)
from trueload.record.accounts.deliveries import DELIVERIES
from trueload.stats import decode_histogram


def sent(phase: str, messages: Sent) -> PhaseSent:
    return PhaseSent(type="phase_sent", id=phase, sent=messages)


def failed(phase: str, *messages: FailedMessage) -> Settled:
    return Settled(type="settled", id=phase, failed=messages)


LOST = FailedMessage(sender=4, sequence=2, fault="lost")
TWICE = FailedMessage(sender=4, sequence=2, fault="duplicate")
OTHER = FailedMessage(sender=1, sequence=2, fault="lost")


def test_all_are_told_what_all_have_sent_as_soon_as_the_last_has_said_it() -> None:
    settling = Settlement(3)
    assert settling.receive_sent(2, sent("one", {2: 5})) is None
    assert settling.receive_sent(0, sent("one", {0: 1, 3: 7})) is None
    assert settling.receive_sent(0, sent("two", {0: 2})) is None, "another phase is another matter"
    settle = settling.receive_sent(1, sent("one", {}))
    assert settle is not None
    assert (settle.id, settle.sent, settle.until_ns) == ("one", {0: 1, 2: 5, 3: 7}, None)


def test_a_message_that_failed_at_several_hosts_is_charged_once() -> None:
    settling = Settlement(3)
    assert settling.receive_settled(1, failed("one", LOST)) is None
    assert settling.receive_settled(0, failed("one")) is None
    charge = settling.receive_settled(2, failed("one", TWICE, OTHER))
    assert charge is not None
    assert {(each.sender, each.sequence) for each in charge.failed} == {(4, 2), (1, 2)}
    assert len(charge.failed) == 2


def deliveries(**changes: int) -> Deliveries:
    some = histogram((1_000, 8))
    of = DeliveryHistograms(delivery=some, first=some, median=None, p95=None, last=None)
    counts = {"expected": 20, "delivered": 18, "lost": 2, "duplicate": 1, "out_of_order": 3}
    return Deliveries(**(counts | changes), histograms=of)


def test_deliveries_are_added_where_they_arrived() -> None:
    merged = DELIVERIES.added([deliveries(untimed=10), None, deliveries(expected=21, delivered=19)])
    assert merged is not None
    assert merged.model_dump(exclude={"histograms"}) == {
        "expected": 41,
        "delivered": 37,
        "lost": 4,
        "duplicate": 2,
        "out_of_order": 6,
        "untimed": 10,
    }
    assert decode_histogram(merged.histograms.delivery) == decode_histogram(histogram((1_000, 16)))
    assert (merged.histograms.last, merged.histograms.spread) == (None, None)


@pytest.mark.parametrize("parts", [[], [None, None]])
def test_where_nothing_was_broadcast_there_are_none(parts: list[None]) -> None:
    assert DELIVERIES.added(parts) is None
