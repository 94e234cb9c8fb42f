"""Checks of whether our own side or others on the machine spoiled a figure, a table for each."""

from __future__ import annotations

from typing import Any

import pytest
from samples import good_record
from trueload.record.schema import CpuWait, Generator, RecordPlan, Server, Status, Window
from trueload.verdict import CHECKS

GOOD = good_record()


def generator(**changes: Any) -> Generator:
    return GOOD.generator.model_copy(update=changes)


def server(**changes: Any) -> Server:
    assert GOOD.server is not None
    return GOOD.server.model_copy(update=changes)


def record_plan(**changes: Any) -> RecordPlan:
    generate = GOOD.plan.generate.model_copy(update=changes)
    return GOOD.plan.model_copy(update={"generate": generate})


def window(**changes: Any) -> Window:
    return GOOD.window.model_copy(update=changes)


def waiting(share: float, for_others: float) -> dict[str, Any]:
    """A generator that waited for a CPU, partly because of others."""
    return {"generator": generator(waited=CpuWait(share=share, for_others=for_others))}


def unattributed(place: str = "local") -> dict[str, Any]:
    """A record in which it is unknown who was waited for."""
    return {
        "generator": generator(waited=None),
        "server": server(waited=None),
        "hosts": (GOOD.hosts[0].model_copy(update={"place": place}),),
    }


CASES: dict[str, list[tuple[str, dict[str, Any], Status, str]]] = {
    "same-host": [
        ("kept apart", {}, "pass", "generator on CPU 1, server on 0"),
        (
            "kept apart on a machine that is full",
            {"window": window(host_idle_share=0.0)},
            "pass",
            "kept apart",
        ),
        (
            "together, and neither waits on a machine that is full",
            {"server": server(allowed_cpus=(0, 1)), "window": window(host_idle_share=0.0)},
            "pass",
            "the generator for 1.9 % and the server for 2.8 % of the window",
        ),
        (
            "together, and the server waits for us",
            {"server": server(allowed_cpus=(0, 1), waited=CpuWait(share=0.16, for_others=0.05))},
            "warn",
            "waited for each other: the generator for 1.9 % and the server for 11 %",
        ),
        (
            "it waits for others, which is noise",
            {"server": server(allowed_cpus=(0, 1), waited=CpuWait(share=0.15, for_others=0.051))},
            "pass",
            "the server for 9.9 %",
        ),
        (
            "waits that nobody knows, with time to spare",
            {"server": server(allowed_cpus=(0, 1), waited=None)},
            "pass",
            "idle for 50 %",
        ),
        (
            "waits that nobody knows on a machine that is full",
            {
                "server": server(allowed_cpus=(0, 1), waited=None),
                "window": window(host_idle_share=0.099),
            },
            "warn",
            "share CPUs",
        ),
        (
            "a server that cannot be seen",
            {"server": None, "window": window(host_idle_share=0.05)},
            "warn",
            "may share CPUs",
        ),
        ("an IPv6 loopback", {"plan": record_plan(addresses=("[::1]:80",))}, "pass", "apart"),
        ("another host", {"plan": record_plan(addresses=("192.0.2.1:80",))}, "n/a", "loopback"),
        (
            "one address elsewhere",
            {"plan": record_plan(addresses=("127.0.0.1:1", "192.0.2.1:1"))},
            "n/a",
            "loopback",
        ),
        ("no address", {"plan": record_plan(addresses=())}, "n/a", "no address"),
        (
            "no samples",
            {"server": None, "window": window(host_idle_share=None)},
            "n/a",
            "not known",
        ),
        (
            "a window too short to tell",
            {"server": None, "window": window(host_idle_share=0.0, window_ns=5_000_000)},
            "n/a",
            "too short",
        ),
    ],
    "cpu-limit": [
        ("nobody counts", {}, "n/a", "no cgroup of the generator reports"),
        ("never reached", {"generator": generator(throttled_share=0.0)}, "pass", "for 0 % of"),
        ("2 %", {"generator": generator(throttled_share=0.02)}, "pass", "for 2 % of the window"),
        ("above", {"generator": generator(throttled_share=0.021)}, "warn", "by its CPU limit"),
        ("above 5 %", {"generator": generator(throttled_share=0.051)}, "fail", "5.1 %"),
    ],
    "subject-cpu-limit": [
        ("nobody counts", {}, "n/a", "no cgroup of the server reports"),
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
            "delayed the generator for 0.1 % and the server for 0.2 % of the window",
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
            {"server": server(waited=CpuWait(share=0.5, for_others=0.06))},
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
        ("5 % are stolen", {"window": window(stolen_share=0.05)}, "warn", "its hypervisor 5 %"),
        (
            "a quarter is stolen",
            {"window": window(stolen_share=0.25)},
            "fail",
            "its hypervisor 25 %",
        ),
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
            "its hypervisor 30 %",
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
            "it must be at least 1.00 s",
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


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        ({"window": window(host_idle_share=0.6)}, "Give the generator more --threads"),
        ({"window": window(host_idle_share=0.4)}, "Give the load to another machine"),
        ({"window": window(host_idle_share=None)}, "Give the generator more --threads"),
        (
            {
                "window": window(host_idle_share=0.0),
                "plan": record_plan(addresses=("192.0.2.1:80",)),
            },
            "Give the generator more --threads",
        ),
    ],
)
def test_more_threads_are_no_advice_where_no_cpu_is_left(
    changes: dict[str, Any], advice: str
) -> None:
    record = good_record(**changes)  # of 2 CPUs
    assert CHECKS["generator-limit"].remedy_for(record).startswith(advice)
    assert CHECKS["noise"].remedy_for(record) == CHECKS["noise"].remedy
