"""The pure parts of `searches.py` and `same.py`: truths, rows and targets."""

from __future__ import annotations

from typing import Any

import pytest


def outcome(bench: Any, load: float | None, kept: bool = True) -> Any:
    ratio = None if load is None else load / 1_000
    return bench["searches"].Outcome(load, ratio, kept, "")


@pytest.mark.parametrize(
    ("loads", "kept", "words"),
    [
        ((990.0, 980.0, 1_000.0), (True, True, True), ["met", "met", "met"]),
        ((990.0, 900.0, 940.0), (True, True, True), ["met", "missed", "met"]),
        ((990.0, 1_040.0, 1_000.0), (True, False, True), ["missed", "met", "missed"]),
        ((None, None, None), (False, False, False), ["missed", "not measured", "not measured"]),
    ],
)
def test_a_search_is_judged_by_fresh_runs_and_by_its_distance_from_the_truth(
    bench: Any, loads: tuple[float | None, ...], kept: tuple[bool, ...], words: list[str]
) -> None:
    outcomes = [outcome(bench, *each) for each in zip(loads, kept, strict=True)]
    kind = bench["searches"].KINDS[0]
    assert [each.word for each in bench["searches"].marks_of(kind, outcomes)] == words
    row = bench["searches"].row(kind, outcomes)
    assert row.endswith(f"| {sum(kept)} of 3 |")


@pytest.mark.parametrize(
    ("failed", "spoiled"),
    [((), False), (("noise", "hiccup"), True), (("noise", "backlog"), False)],
)
def test_a_run_is_repeated_only_where_our_own_side_spoiled_it(
    bench: Any, failed: tuple[str, ...], spoiled: bool
) -> None:
    checks = [{"name": name, "status": "fail"} for name in failed]
    checks += [{"name": "stall", "status": "warn"}]
    assert bench["searches"].is_spoiled({"checks": checks}) is spoiled
    assert not bench["searches"].is_spoiled(None)


def test_the_limit_of_a_server_that_changes_its_speed_is_above_its_slowest(bench: Any) -> None:
    limit = bench["searches"].simulated_limit(100)
    assert 850 < limit < 950
    assert bench["searches"].aged(150) == 950


def result(
    ratio: float, word: str, rates: tuple[tuple[float, ...], ...], others: str = "unclear"
) -> dict[str, Any]:
    interval = {"low": ratio - 0.01, "high": ratio + 0.01}
    throughput = {"metric": "throughput", "word": word, "ratio": ratio, "interval": interval}
    trials = [
        {"side": side, "throughput": {"ok_per_s": rate}}
        for side, some in zip("ab", rates, strict=True)
        for rate in some
    ]
    ratios = [throughput, {"metric": "p99", "word": others}]
    return {"ratios": ratios, "trials": trials, "verdict": "valid"}


def test_equal_servers_that_are_told_apart_are_alarms_by_whatever_figure(bench: Any) -> None:
    same, rates = bench["same"], ((990.0, 1_010.0), (1_000.0, 1_000.0))
    equal, alarm = (
        same.outcome_of(result(1.0, "unclear", rates, word)) for word in ("unclear", "worse")
    )
    assert (equal.alarms, alarm.alarms) == ((), ("p99",))
    assert equal.spread == pytest.approx(0.01 / 2**0.5)
    series = same.Series("the same", 10, 6, 0.0)
    marks = [same.series_mark(series, [alarm] * n + [equal] * (10 - n)) for n in (1, 2)]
    assert [each.word for each in marks] == ["met", "missed"]


def test_a_difference_is_found_only_in_its_direction(bench: Any) -> None:
    same, rates = bench["same"], ((1_000.0, 1_000.0), (1_030.0, 1_030.0))
    series = same.Series("B 3% faster", 4, 12, 0.03)
    found = [same.outcome_of(result(1.03, word, rates)) for word in ("better", "worse")]
    marks = [same.series_mark(series, [found[0]] * n + [found[1]] * (4 - n)) for n in (3, 2)]
    assert [each.word for each in marks] == ["met", "missed"]
