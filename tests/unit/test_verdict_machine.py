"""Checks of whether our own side, or others on the machine, spoilt a figure: a table for each."""

from __future__ import annotations

from typing import Any

import pytest
from samples import good_record
from trueload.record.schema import Generator, Server, Status, Waited, Window

GOOD = good_record()


def generator(**changes: Any) -> Generator:
    return GOOD.generator.model_copy(update=changes)


def server(**changes: Any) -> Server:
    assert GOOD.server is not None
    return GOOD.server.model_copy(update=changes)


def window(**changes: Any) -> Window:
    return GOOD.window.model_copy(update=changes)


def waiting(share: float, for_others: float) -> dict[str, Any]:
    """The generator waited for a CPU, in part because of others."""
    return {"generator": generator(waited=Waited(share=share, for_others=for_others))}


def unattributed(place: str = "local") -> dict[str, Any]:
    """Nobody knows who was waited for."""
    return {
        "generator": generator(waited=None),
        "server": server(waited=None),
        "hosts": (GOOD.hosts[0].model_copy(update={"place": place}),),
    }


CASES: dict[str, list[tuple[str, dict[str, Any], Status, str]]] = {
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
        (
            "hardly any",
            {},
            "pass",
            "others held up the generator for 0.1 % and the server for 0.2 % of the window",
        ),
        (
            "a busy neighbour on another CPU",
            {"window": window(others_share=0.5)},
            "pass",
            "other processes took 50 %",
        ),
        ("the rest of a wait is the server's doing", waiting(0.3, 0.01), "pass", "for 1 %"),
        ("2 % of the window", waiting(0.02, 0.02), "warn", "the generator for 2 %"),
        ("5 % of the window", waiting(0.2, 0.05), "fail", "the generator for 5 %"),
        (
            "the server was held up",
            {"server": server(waited=Waited(share=0.5, for_others=0.06))},
            "fail",
            "the server for 6 %",
        ),
        (
            "one hog of 64 CPUs, on ours",
            {**waiting(0.5, 0.5), "window": window(others_share=1 / 64)},
            "fail",
            "took 1.6 %",
        ),
        (
            "a turn of the scheduler in a short window",
            {**waiting(0.05, 0.05), "window": window(window_ns=50_000_000)},
            "pass",
            "5 %",
        ),
        (
            "half of a short window",
            {**waiting(0.5, 0.5), "window": window(window_ns=50_000_000)},
            "fail",
            "50 %",
        ),
        ("5 % are stolen", {"window": window(stolen_share=0.05)}, "warn", "its host 5 %"),
        ("a quarter is stolen", {"window": window(stolen_share=0.25)}, "fail", "its host 25 %"),
        (
            "the server cannot be told from others",
            {**unattributed(), "window": window(others_share=0.5)},
            "pass",
            "is not known",
        ),
        (
            "so it is, and time is stolen",
            {**unattributed(), "window": window(stolen_share=0.3)},
            "fail",
            "its host 30 %",
        ),
        (
            "an engine elsewhere counts all",
            {**unattributed("lab"), "window": window(others_share=0.05)},
            "warn",
            "took 5 %",
        ),
        (
            "elsewhere, and too short",
            {**unattributed("lab"), "window": window(others_share=0.5, window_ns=900_000_000)},
            "n/a",
            "it takes 1.00 s",
        ),
        ("not known", {"window": window(others_share=None)}, "warn", "not known"),
        (
            "not known of an engine elsewhere",
            {**unattributed("lab"), "window": window(others_share=None)},
            "n/a",
            "not known",
        ),
        ("cut short", {"window": window(others_share=None), "partial": True}, "n/a", "not known"),
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
