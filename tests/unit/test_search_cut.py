"""A search that was cut short, and one over sessions."""

from __future__ import annotations

from samples import good_record, histogram
from trueload.protocol.plan import Histograms
from trueload.record.thresholds import LIMIT, parse_condition
from trueload.search.decide import Try
from trueload.search.execute import SearchPlan, make_bounds, outcome, take
from trueload.search.result import load_text, plan_json, read_plan, result_json, sentence

LIMIT_10MS = parse_condition("p99<10ms", LIMIT)
TWENTY_MS = histogram((20_000_000, 10_000))
SLOW = Histograms(latency=TWENTY_MS, service=TWENTY_MS, connect=None, first_byte=None, total=None)


def test_a_step_that_was_cut_short_ends_the_search_without_a_result() -> None:
    plan = SearchPlan("rate", LIMIT_10MS, make_bounds("rate", None), None)
    steps = [
        take(plan, Try(1_000, "bracket"), good_record()),
        take(plan, Try(2_000, "bracket"), good_record(partial=True, histograms=SLOW)),
    ]
    assert outcome(plan, steps) is None
    assert "stopped before a load was confirmed" in sentence(plan, steps)
    assert "1,000 requests/s" in sentence(plan, steps)


def test_a_search_over_sessions_says_so() -> None:
    bounds = make_bounds("rate", None)
    plan = SearchPlan("rate", LIMIT_10MS, bounds, None, of_sessions=True)
    assert (load_text(plan, 576), load_text(plan, 1)) == ("576 sessions/s", "1 session/s")
    assert read_plan(plan_json(plan)) == plan
    steps = [take(plan, Try(576, "bracket"), good_record())]
    assert result_json(plan, steps)["unit"] == "sessions/s"
    connections = SearchPlan("connections", LIMIT_10MS, bounds, None, of_sessions=True)
    assert connections.unit == "connections"
