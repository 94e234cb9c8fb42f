"""The check of the claimed percentile, where seconds differ and where times have a gap."""

from __future__ import annotations

from typing import Any

import pytest
from samples import check_of, counts, good_record, histogram
from trueload.protocol.tick import Second
from trueload.record.schema import Claim, Status
from trueload.units import NS_PER_S

GOOD = good_record()


def claiming(percentile: str) -> dict[str, Any]:
    claim = Claim(percentile=percentile)
    return {"plan": GOOD.plan.model_copy(update={"claim": claim})}


def slow_in_seconds(*slow: int) -> dict[str, Any]:
    """Seconds of 1,000 answers in 1 ms, but for so many in 1.2 to 1.5 ms, with p99 claimed."""
    series = tuple(
        Second(t_s=t_s, ok=1000, failed=0, latency={900: 1000 - count, 958: count})
        for t_s, count in enumerate(slow)
    )
    above, all_of = sum(slow), 1000 * len(slow)
    values = [(1_000_000, all_of - above)]
    values += [(1_200_000 + 300_000 * at // above, 1) for at in range(above)]
    return {
        **claiming("p99"),
        "series": series,
        "window": GOOD.window.model_copy(update={"window_ns": len(slow) * NS_PER_S}),
        "histograms": GOOD.histograms.model_copy(update={"latency": histogram(*values)}),
        "counts": counts(ok=all_of, issued=all_of, scheduled=all_of),
    }


def two_modes(slow: int, percentile: str | None = None) -> dict[str, Any]:
    """10,000 answers of 28 to 35 ms, of which so many took 1,000 ms."""
    values = [(28_000_000 + 7_000 * at, 10 if at else 10 - slow % 10) for at in range(1_000)]
    values = [*values[: 1_000 - slow // 10], (1_000_000_000, slow)]
    return {
        **(claiming(percentile) if percentile else {}),
        "histograms": GOOD.histograms.model_copy(update={"latency": histogram(*values)}),
    }


@pytest.mark.parametrize(
    ("sentence", "changes", "status", "why"),
    [
        ("each second alike", slow_in_seconds(*[30] * 12), "pass", "(by rank)"),
        (
            "some seconds are slower",
            slow_in_seconds(*[15, 45] * 6),
            "pass",
            "how its seconds differ",
        ),
        (
            "one second of thirty",
            slow_in_seconds(*[0] * 20, 600, *[0] * 9),
            "warn",
            "with no interval: most of the slowest 1 % came in one second of 30",
        ),
        ("three freezes", slow_in_seconds(*[0, 0, 0, 200] * 3), "warn", "about 3 seconds of 12"),
        (
            "one of four seconds, which says nothing",
            slow_in_seconds(0, 0, 200, 0),
            "pass",
            "by rank",
        ),
        (
            "at the edge of a gap",
            two_modes(95, "p99"),
            "warn",
            "nothing took between 34.9 ms and 1.00 s, and it may lie",
        ),
        ("the same, not claimed", two_modes(100), "warn", "it may lie on either side"),
        ("far from the edge of a gap", two_modes(300), "n/a", "no percentile is claimed"),
        ("a gap at a percentile that is not shown", two_modes(1_000), "n/a", "no percentile"),
    ],
)
def test_the_check_says(sentence: str, changes: dict[str, Any], status: Status, why: str) -> None:
    found = check_of(good_record(**changes), "quantile-width")
    assert (found.status, why in found.why) == (status, True), (sentence, found)
