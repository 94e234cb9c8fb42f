"""`littles-law` counts only the time within the window of requests that cross its edges."""

from __future__ import annotations

import pytest
from samples import SLOTS, WINDOW_NS, check_of, distribution, good_record, histogram
from trueload.record.schema import Check, Status

S = 1_000_000_000
OK_EACH = (1_000_000, 9_000)


def judged(
    spent: tuple[tuple[int, int], ...],
    edges: tuple[int | None, int | None],
    permitted_ns: int = SLOTS * WINDOW_NS,
    drain_ns: int = 5 * S,
) -> Check:
    good = good_record()
    assert good.flow is not None
    assert good.slots is not None
    before_ns, after_ns = edges
    work = good.flow.work.model_copy(update={"before_ns": before_ns, "after_ns": after_ns})
    record = good_record(
        service_ns=distribution(histogram(*spent)),
        flow=good.flow.model_copy(update={"work": work}),
        window=good.window.model_copy(update={"drain_ns": drain_ns}),
        slots=good.slots.model_copy(update={"permitted_ns": permitted_ns}),
    )
    return check_of(record, "littles-law")


@pytest.mark.parametrize(
    ("what", "spent", "edges", "status", "why"),
    [
        (
            "every slot waits over the end of the window",
            (OK_EACH, (1_700_000_000, 10)),
            (0, 16 * S),
            "pass",
            "10.0 requests",
        ),
        (
            "every slot waits over its start, for an answer to the warm-up",
            ((1_000_000, 4_000),),
            (6 * S, 0),
            "pass",
            "10.0 requests",
        ),
        ("answers that nobody can have had", ((1_300_000, 10_000),), (0, 0), "fail", "more than"),
        ("slots that stood empty", ((800_000, 10_000),), (0, 0), "warn", "too few requests"),
        (
            "an older record does not know the edges, and the drain may explain it",
            ((300_000_000, 40),),
            (None, None),
            "pass",
            "12.0 requests",
        ),
    ],
)
def test_the_time_within_the_window_counts(
    what: str,
    spent: tuple[tuple[int, int], ...],
    edges: tuple[int | None, int | None],
    status: Status,
    why: str,
) -> None:
    check = judged(spent, edges, drain_ns=S // 5 if edges[0] is None else 5 * S)
    assert check.status == status, f"{what}: {check}"
    assert why in check.why, f"{what}: {check}"
