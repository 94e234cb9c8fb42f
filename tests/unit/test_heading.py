"""The head of a live view: which trial runs, and what a search has found so far."""

from __future__ import annotations

import pytest
from samples import good_record
from trueload.record.thresholds import LIMIT, parse_condition
from trueload.report.heading import Heading, heading_rows, search_heading
from trueload.report.rows import row_text, row_width
from trueload.search.decide import Outcome, Try
from trueload.search.execute import SearchPlan, StepResult, make_bounds
from trueload.search.judge import Judgement

PLAN = SearchPlan("rate", parse_condition("p99<10ms", LIMIT), make_bounds("rate", None), None)


def taken(load: float, outcome: Outcome) -> StepResult:
    return StepResult(Try(load, "bracket"), good_record(), Judgement(outcome, "", ()))


def noted(*before: StepResult, width: int = 116) -> list[str]:
    heading = search_heading(PLAN, before, Try(4_000, "bisect"))
    return [row_text(row).rstrip() for row in heading_rows(heading, width)]


@pytest.mark.parametrize(
    ("before", "notes"),
    [
        ([], "limit p99<10ms"),
        ([taken(1_000, "kept")], "limit p99<10ms   kept 1,000 requests/s"),
        (
            [taken(2_000, "kept"), taken(1_000, "kept"), taken(8_000, "exceeded")],
            "limit p99<10ms   kept 2,000 requests/s   exceeded 8,000 requests/s",
        ),
        ([taken(9_000, "limited")], "limit p99<10ms   not judged 9,000 requests/s"),
    ],
)
def test_a_step_shows_between_which_loads_the_search_is(
    before: list[StepResult], notes: str
) -> None:
    assert noted(*before) == [notes]


def test_the_load_that_is_tried_is_in_the_title() -> None:
    heading = search_heading(PLAN, [taken(1_000, "kept")], Try(4_000, "bisect"))
    assert heading.title == "step 2, bisect: 4,000 requests/s"
    assert not heading.is_alone


@pytest.mark.parametrize("width", [36, 76, 116, 196])
def test_notes_have_as_many_rows_as_they_need(width: int) -> None:
    before = [taken(1_000, "kept"), taken(8_000, "exceeded"), taken(7_000, "short")]
    heading = search_heading(PLAN, before, Try(4_000, "bisect"))
    rows = heading_rows(heading, width)
    assert {row_width(row) for row in rows} == {width}
    text = " ".join(row_text(row) for row in rows)
    assert all(word in text for word in ("kept 1,000", "exceeded 8,000", "not judged 7,000"))


def test_a_single_trial_has_no_head() -> None:
    assert heading_rows(Heading("title"), 80) == []
    assert Heading("title").is_alone
