"""The pure parts of `make redteam`: the truth in a server's log, and the judgement of a run."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("truth", "demands", "attacks", "rivals", "sessions")
S = 1_000_000_000
MS = 1_000_000


@pytest.fixture(scope="module")
def red() -> Any:
    """The modules of bench/redteam, a package within bench/."""
    sys.path.insert(0, str(ROOT / "bench"))
    try:
        return {name: import_module(f"redteam.{name}") for name in NAMES}
    finally:
        sys.path.remove(str(ROOT / "bench"))


def truth_of(red: Any, *served: tuple[int, int], begin_ns: int = 0, end_ns: int = S) -> Any:
    """A log of requests, each with the times at which it was read and answered."""
    entries = np.array([(*each, 0) for each in served], dtype=red["truth"].ENTRY)
    return red["truth"].Truth(entries, {}, begin_ns, end_ns)


def seen(red: Any, **changes: Any) -> Any:
    """A run that reported 64 requests/s and a p99 of 10 ms."""
    result = {
        "verdict": "valid",
        "checks": [{"name": "window", "status": "pass"}, {"name": "noise", "status": "n/a"}],
        "throughput": {"ok_per_s": 64.0},
        "latency_ns": {"p99": 10 * MS, "overstated_ns": changes.pop("overstated_ns", {})},
    }
    truth = changes.pop("truth", None)
    code, summary = changes.pop("code", 0), changes.pop("summary", "")
    return red["demands"].Seen(code, summary, {**result, **changes}, truth)


def test_the_truth_is_what_was_answered_in_the_window_whenever_it_was_read(red: Any) -> None:
    served = [(-100 * MS, 10 * MS), (0, 500 * MS), (900 * MS, 999 * MS), (900 * MS, S), (S, 2 * S)]
    assert truth_of(red, *served).per_s == 3
    assert truth_of(red, *served, begin_ns=S, end_ns=3 * S).per_s == 1


def test_the_true_percentile_is_that_of_requests_read_in_the_window(red: Any) -> None:
    served = [(number * MS, number * MS + (number + 1) * MS) for number in range(100)]
    outside = [(-5, 10 * S), (S, 20 * S)]
    truth = truth_of(red, *served, *outside)
    assert truth.percentile_ms(0.5) == 50
    assert truth.percentile_ms(0.99) == 99
    assert math.isnan(truth_of(red).percentile_ms(0.5))


def test_the_window_begins_with_the_first_request_behind_the_warm_up(red: Any) -> None:
    assert red["truth"].window_of({"first_ns": 7 * S}, 1.5, 2.0) == (
        8 * S + S // 2,
        10 * S + S // 2,
    )


@pytest.mark.parametrize(
    ("reported_ms", "right"),
    [(50, True), (50.9, True), (51.1, False), (48.9, False), (None, False)],
)
def test_a_step_is_right_within_2_percent_of_what_its_server_noted(
    red: Any, reported_ms: float | None, right: bool
) -> None:
    p50 = None if reported_ms is None else reported_ms * MS
    result = {"targets": [{"name": "log in", "latency_ns": {"p50": p50}}]}
    changed = dataclasses.replace(seen(red, **result), served_ms={"log in": range(1, 101)})
    assert red["sessions"].as_served("log in", "p50")(changed).right is right


@pytest.mark.parametrize(
    ("reported", "right"), [(64.0, True), (65.2, True), (62.8, True), (65.4, False), (None, False)]
)
def test_a_throughput_is_right_within_2_percent(
    red: Any, reported: float | None, right: bool
) -> None:
    demand = red["demands"].throughput(64)
    assert demand(seen(red, throughput={"ok_per_s": reported})).right is right


@pytest.mark.parametrize(
    ("true_ms", "right"), [(10.0, True), (9.6, True), (9.0, False), (11, False)]
)
def test_a_percentile_may_be_late_by_what_a_wake_up_takes(
    red: Any, true_ms: float, right: bool
) -> None:
    truth = truth_of(red, *[(number, number + round(true_ms * MS)) for number in range(100)])
    assert red["demands"].percentile("p99")(seen(red, truth=truth)).right is right


@pytest.mark.parametrize(("true_ms", "right"), [(7.0, True), (5.0, False), (11.0, False)])
def test_an_upper_bound_is_right_if_the_truth_is_not_above_it_and_not_far_below(
    red: Any, true_ms: float, right: bool
) -> None:
    """`≤ 10 ms`, of which 3 ms may be ours."""
    truth = truth_of(red, *[(number, number + round(true_ms * MS)) for number in range(100)])
    found = seen(red, truth=truth, overstated_ns={"p99": 3 * MS})
    answer = red["demands"].percentile("p99")(found)
    assert (answer.right, answer.shown) == (right, "≤ 10 ms")


@pytest.mark.parametrize(("short", "right"), [(992, True), (993, False)])
def test_a_percentile_may_be_off_by_the_answers_that_the_verdict_lets_our_stalls_touch(
    red: Any, short: int, right: bool
) -> None:
    """That is a quarter of a percent around p99."""
    served = [(0, MS)] * short + [(0, 10 * MS)] * (1000 - short)
    answer = red["demands"].percentile("p99")(seen(red, truth=truth_of(red, *served)))
    assert answer.right is right


def test_wrong_figures_are_right_only_if_the_run_is_not_valid(red: Any) -> None:
    demand = red["demands"].refused_unless(red["demands"].throughput(100))
    verdicts = {"valid": False, "suspect": True, "invalid": True}
    for verdict, right in verdicts.items():
        assert demand(seen(red, verdict=verdict)).right is right, verdict
    for name, right in (("server-idle", False), ("noise", True)):
        checks = [{"name": name, "status": "fail"}]
        assert demand(seen(red, verdict="invalid", checks=checks)).right is right, name
    assert demand(seen(red, throughput={"ok_per_s": 99.0})).right


def test_checks_are_asked_by_their_status(red: Any) -> None:
    demands = red["demands"]
    warned = seen(red, checks=[{"name": "window", "status": "warn"}])
    assert demands.crossed("noise", "window")(warned).right
    assert not demands.failed("window")(warned).right
    assert not demands.quiet("window")(warned).right
    assert demands.quiet("noise")(warned).right
    assert not demands.crossed("window")(seen(red)).right


def test_a_row_is_right_if_every_demand_is_and_wrong_without_a_result(red: Any) -> None:
    demands = red["demands"]
    asked = (demands.throughput(64), demands.ended(0), demands.prints("64 of"))
    row = demands.judge("key", "what", seen(red, summary="all 64 of them"), asked)
    assert (row.word, row.truth) == ("right", "64/s; exit 0")
    assert row.said == "64/s; exit 0; “64 of”; valid"
    unmet = demands.judge("key", "what", seen(red), (demands.suspect, demands.failed("window")))
    assert (unmet.word, unmet.said) == (
        "wrong",
        "valid; wanted: suspect or invalid, `window` fails",
    )
    assert demands.judge("key", "what", seen(red, code=4, summary="64 of"), asked).word == "wrong"
    nothing = demands.Seen(2, "error: no such flag", {})
    assert demands.judge("key", "what", nothing, asked).said == "exit 2: error: no such flag"


def test_the_table_counts_what_is_right_wrong_and_not_made(red: Any) -> None:
    row = red["demands"].Row
    rows = [row("a", "a", "", "", True), row("b", "b", "", "", None), row("c", "c", "", "", False)]
    assert red["demands"].table(rows)[-1] == "3 attacks: 1 right, 1 wrong, 1 not made."


def test_every_attack_has_a_name_of_its_own_and_something_to_show(red: Any) -> None:
    attacks = red["attacks"].ATTACKS
    assert len({attack.key for attack in attacks}) == len(attacks)
    assert all(attack.demands for attack in attacks)


# --- what the others say

WRK = """
  Latency Distribution
     50%    9.07ms
     99%   52.11ms
  3541 requests in 1.00s, 500.00KB read
Requests/sec:   3540.95
"""

HEY = """
  Requests/sec: 1987.5000
  95% in 0.0101 secs
  99% in 0.0123 secs
"""


def test_what_others_say_is_read_in_their_words(red: Any, tmp_path: Path) -> None:
    rivals = red["rivals"]
    assert rivals.read_wrk(WRK, tmp_path) == rivals.Figures(3540.95, 52.11)
    oha = {"summary": {"requestsPerSec": 64.5}, "latencyPercentiles": {"p99": 1.25}}
    assert rivals.read_oha(json.dumps(oha), tmp_path) == rivals.Figures(64.5, 1250)
    assert rivals.read_hey(HEY, tmp_path) == rivals.Figures(1987.5, 12.3)
    k6 = {"http_reqs": {"rate": 63.9}, "http_req_duration": {"p(99)": 1000.5}}
    (tmp_path / "k6.json").write_text(json.dumps({"metrics": k6}))
    assert rivals.read_k6("", tmp_path) == rivals.Figures(63.9, 1000.5)


@pytest.mark.parametrize(
    ("flags", "load"),
    [
        ("-c 64 -d 2.1s --warmup 0", (64, 2.1, None)),
        ("-c 5000 -d 4s --rate 2k/s", (5000, 4.0, 2000.0)),
        ("-c 64 --requests 1000", None),
        ("-c 64 -d 2s --limit p99<1s", None),
    ],
)
def test_others_are_asked_for_a_time_and_a_rate_and_no_more(
    red: Any, flags: str, load: tuple[int, float, float | None] | None
) -> None:
    rivals = red["rivals"]
    assert rivals.load_of(flags.split()) == (rivals.Load(*load) if load else None)


def test_what_others_say_stands_beside_the_truth_only_where_it_is_off(red: Any) -> None:
    rivals = red["rivals"]
    load = rivals.Load(64, 2.0, None)
    assert rivals.cell(rivals.Figures(64, 1000), 64, 1000, load) == "64/s, p99 1e+03 ms"
    off = rivals.cell(rivals.Figures(91, 52), 64, 9, load)
    assert off == "91/s (true 64), p99 52 ms (true 9)"
    opened = rivals.Load(64, 2.0, 100.0)
    assert rivals.cell(rivals.Figures(64, 52), 64, 9, opened) == "64/s, p99 52 ms"


def test_a_schedule_meets_a_pause_as_often_as_it_lasts(red: Any) -> None:
    """A connection that waits 100 times for 5 ms and once for 500 ms waits half of its time."""
    waits = [(number * 5 * MS, (number + 1) * 5 * MS) for number in range(100)]
    truth = truth_of(red, *waits, (500 * MS, S))
    assert truth.percentile_ms(0.5) == 5
    assert abs(truth.scheduled_ms(0.49) - 5) < 0.1
    assert abs(truth.scheduled_ms(0.75) - 250) < 2
    assert abs(truth.scheduled_ms(0.99) - 490) < 2
