"""Checks of whether our own side, or others on the machine, spoilt a figure: a table for each."""

from __future__ import annotations

from typing import Any

import pytest
from samples import good_record
from trueload.record.schema import Generator, Server, Status, Window

GOOD = good_record()


def generator(**changes: Any) -> Generator:
    return GOOD.generator.model_copy(update=changes)


def server(**changes: Any) -> Server:
    assert GOOD.server is not None
    return GOOD.server.model_copy(update=changes)


def window(**changes: Any) -> Window:
    return GOOD.window.model_copy(update=changes)


CASES: dict[str, list[tuple[str, dict[str, Any], Status, str]]] = {
    "hiccup": [
        ("none", {}, "pass", "0 s in all"),
        ("100 ms", {"generator": generator(hiccup_ns=100_000_000)}, "pass", "100 ms"),
        ("above", {"generator": generator(hiccup_ns=100_000_001)}, "warn", "100 ms"),
        ("0.5 s", {"generator": generator(hiccup_ns=500_000_000)}, "warn", "500 ms"),
        ("above 0.5 s", {"generator": generator(hiccup_ns=510_000_000)}, "fail", "510 ms"),
        ("the engine died", {"generator": generator(hiccup_ns=None)}, "n/a", "before it could"),
    ],
    "cpu-limit": [
        ("nobody counts", {}, "n/a", "no cgroup of the generator counts"),
        ("never reached", {"generator": generator(throttled_share=0.0)}, "pass", "for 0 % of"),
        ("2 %", {"generator": generator(throttled_share=0.02)}, "pass", "for 2 % of the window"),
        ("above", {"generator": generator(throttled_share=0.021)}, "warn", "by its CPU limit"),
        ("above 5 %", {"generator": generator(throttled_share=0.051)}, "fail", "5.1 %"),
    ],
    "subject-cpu-limit": [
        ("nobody counts", {}, "n/a", "no cgroup of the server counts"),
        ("never reached", {"server": server(throttled_share=0.0)}, "pass", "for 0 % of"),
        (
            "half of the time",
            {"server": server(throttled_share=0.5)},
            "pass",
            "the server was throttled for 50 % of the window by its CPU limit",
        ),
        ("it cannot be seen", {"server": None}, "n/a", "no cgroup"),
    ],
    "noise": [
        ("hardly any", {}, "pass", "other processes took 1 %"),
        ("5 % of others", {"window": window(others_share=0.05)}, "warn", "took 5 %"),
        (
            "stolen counts, too",
            {"window": window(others_share=0.03, stolen_share=0.03)},
            "warn",
            "its host 3 %",
        ),
        ("a quarter", {"window": window(others_share=0.25)}, "fail", "25 %"),
        (
            "too short to tell",
            {"window": window(window_ns=900_000_000, others_share=0.5)},
            "n/a",
            "it takes 1.00 s",
        ),
        ("not known", {"window": window(others_share=None)}, "n/a", "not known"),
    ],
}


@pytest.mark.parametrize(
    ("check", "changes", "status", "why"),
    [
        pytest.param(check, changes, status, why, id=f"{check}: {sentence}")
        for check, cases in CASES.items()
        for sentence, changes, status, why in cases
    ],
)
def test_a_check_says(check: str, changes: dict[str, Any], status: Status, why: str) -> None:
    result = next(each for each in good_record(**changes).checks if each.name == check)
    assert result.status == status, result
    assert why in result.why, result
    assert "\n" not in result.why
