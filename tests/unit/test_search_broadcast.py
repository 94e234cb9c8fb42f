"""What a limit of a broadcast is about: the deliveries, or by name the receipts.

It also tests what bounds a search in which deliveries were lost.
"""

from __future__ import annotations

import pytest
from broadcast_samples import DELIVERED, MESSAGES, broadcast
from samples import flat, histogram
from trueload.errors import ExitCode, UserError
from trueload.protocol.broadcast import DeliveryHistograms
from trueload.record.schema import Record
from trueload.record.thresholds import CLIENTS_LIMIT, LIMIT, parse_condition
from trueload.search.decide import Purpose, Try
from trueload.search.execute import SearchPlan, StepResult, make_clients, take
from trueload.search.judge import judge_broadcast
from trueload.search.result import deciding, exit_code, search_lines
from trueload.verdict import judge

LATE = 1_000_000_000


def delivered_after(ns: int, lost: int = 0) -> Record:
    """Ordinary receipts and deliveries that took ``ns``; some of the deliveries are lost."""
    each = histogram((ns, MESSAGES))
    every = histogram((ns, DELIVERED - lost))
    record = broadcast(
        delivered=DELIVERED - lost,
        lost=lost,
        histograms=DeliveryHistograms(delivery=every, first=each, median=each, p95=each, last=each),
    )
    return judge(record)


def outcome_of(record: Record, limit: str) -> str:
    return judge_broadcast(record, parse_condition(limit, CLIENTS_LIMIT), "bracket").outcome


@pytest.mark.parametrize(
    ("limit", "outcome"),
    [
        ("p95<500ms", "exceeded"),
        ("receipt_p95<500ms", "kept"),
        ("receipt_p95<500ms and p95<500ms", "exceeded"),
        ("p95<2s", "kept"),
    ],
)
def test_a_percentile_is_of_the_deliveries_unless_it_says_receipts(
    limit: str, outcome: str
) -> None:
    assert outcome_of(delivered_after(LATE), limit) == outcome


def test_lost_deliveries_are_slower_than_any() -> None:
    few, many = DELIVERED // 25, DELIVERED // 15
    assert outcome_of(delivered_after(1_000_000, few), "p95<500ms") == "kept"
    assert outcome_of(delivered_after(1_000_000, many), "p95<500ms") == "exceeded"


def test_only_a_broadcast_has_receipts() -> None:
    with pytest.raises(UserError, match="receipt_p95"):
        parse_condition("receipt_p95<500ms", LIMIT)


def searched(*steps: tuple[int, Purpose, Record]) -> tuple[SearchPlan, list[StepResult]]:
    limit = parse_condition("p95<500ms", CLIENTS_LIMIT)
    plan = SearchPlan("clients", limit, make_clients(5, 1, None), None, samples=MESSAGES)
    return plan, [take(plan, Try(float(load), purpose), record) for load, purpose, record in steps]


def nobody_has_all() -> Record:
    """Each message was lost for somebody, so no receipt counts."""
    found = delivered_after(1_000_000, MESSAGES)
    counts = found.counts
    lost = counts.model_copy(update={"ok": 0, "failed": {"lost": counts.ok}})
    histograms = found.histograms.model_copy(update={"latency": None})
    return judge(found.model_copy(update={"counts": lost, "histograms": histograms}))


def test_a_search_that_lost_deliveries_bound_is_invalid_however_few_keep_the_limit() -> None:
    good = delivered_after(1_000_000)
    plan, taken = searched(
        (5, "bracket", good), (6, "bracket", nobody_has_all()), (5, "bisect", good),
        (5, "confirm", good),
    )  # fmt: skip
    assert taken[1].judgement.is_loss, taken[1].judgement
    decided = deciding(plan, taken)
    assert decided is taken[1]
    assert decided.record.verdict == "invalid"
    assert exit_code(plan, taken) == ExitCode.INVALID
    assert any("ledger" in line and "lost" in line for line in search_lines(plan, taken))


def test_a_search_that_times_bound_has_the_verdict_of_its_confirming_run() -> None:
    good = delivered_after(1_000_000)
    plan, taken = searched(
        (5, "bracket", good), (6, "bracket", delivered_after(LATE)), (5, "confirm", good)
    )
    assert deciding(plan, taken) is taken[2]


def test_receipts_long_before_the_deliveries_are_told() -> None:
    plan, taken = searched((5, "bracket", delivered_after(LATE)))
    assert "a receipt says little" in flat(search_lines(plan, taken))
    plan, taken = searched((5, "bracket", delivered_after(1_000_000)))
    assert "a receipt says little" not in flat(search_lines(plan, taken))
