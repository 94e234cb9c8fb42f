"""The pure parts of the report on sessions: what other tools print, and what is judged."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def scenario(bench: Any) -> Any:
    """The module of bench/."""
    return bench["scenario"]


K6 = '{"metrics": {"http_reqs": {"count": 30, "rate": 1}, "http_req_failed": {"passes": %d}}}'
LOCUST = (
    "Type,Name,Request Count,Failure Count,Median Response Time\n"
    "GET,/,10,0,3\n"
    ",Aggregated,30,%d,3\n"
)


@pytest.mark.parametrize(("read", "text"), [("read_k6", K6), ("read_locust", LOCUST)])
def test_only_a_run_without_failures_is_measured(scenario: Any, read: str, text: str) -> None:
    assert getattr(scenario, read)(text % 0) == 30
    with pytest.raises(scenario.BenchError, match="failed 2 of 30"):
        getattr(scenario, read)(text % 2)


def test_medians_are_compared_and_what_is_absent_is_not_judged(scenario: Any) -> None:
    def turns(*cpu_us: float) -> list[Any]:
        return [scenario.Turn(1_000_000, each) for each in cpu_us]

    found = {scenario.OURS: turns(1, 2, 90), scenario.PLAIN: turns(2, 1.6, 1), "k6": turns(29)}
    marked = scenario.judge(found, {"locust": "not installed"})
    assert [(each.measured, each.word) for each in marked] == [
        ("14.5, 1 round", "missed"),
        ("not installed", "not measured"),
        ("1.25, 3 rounds", "met"),
    ]
    assert "| k6 | 1,000,000 | 29.00 | 29.00 to 29.00 |" in scenario.table(found)
