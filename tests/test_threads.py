"""Threads share the work to the last connection and request: nothing is lost to rounding.

The engine is driven by its own JSON lines. The other end is a reference server, whose count is
compared with the engine's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from faults.engine_lines import Engine, Line, Plan, by_requests

pytestmark = pytest.mark.engine

NS_PER_MS = 1_000_000
# (threads, connections, requests): odd ones, fewer requests than connections, one of each per
# thread
CLOSED = [(8, 100, 1001), (3, 7, 100), (5, 5, 5), (7, 64, 3), (2, 3, 10_007), (13, 13, 170)]
# (threads, connections, stages of (ms, from, to) requests per second)
OPEN = [
    (3, 10, ((300, 1009.0, 1009.0),)),
    (7, 7, ((100, 501.0, 501.0), (200, 501.0, 2003.0))),
    (8, 100, ((250, 4001.0, 997.0), (50, 0.0, 0.0), (50, 333.0, 333.0))),
]


@contextmanager
def serving(engine_path: Path) -> Iterator[tuple[Engine, str]]:
    """Run a reference server; yields it and its address."""
    with Engine(engine_path) as server:
        server.wait_for("hello")
        plan = {"protocol": 1, "listen": "127.0.0.1:0", "threads": 1, "cpus": []}
        server.send({"type": "serve", **plan})
        yield server, server.wait_for("ready")["listen"]


def served(server: Engine) -> Line:
    """Stop the server; return its counts."""
    server.send({"type": "stop"})
    server.wait()
    return server.all("served")[-1]


def measure(engine_path: Path, plan: Plan, phase: Line, **changes: object) -> tuple[Line, Line]:
    """Run one phase; return the engine's `ready` line and the measurement."""
    with Engine(engine_path) as engine:
        engine.wait_for("hello")
        engine.send(plan.line(**changes))
        ready = engine.wait_for("ready")
        engine.send(phase)
        done: Any = engine.wait_for("phase_done")["measurement"]
        return ready, done


def plan_for(address: str, threads: int, connections: int) -> Plan:
    # On a busy machine an answer may take long.
    return Plan(address=address, threads=threads, connections=connections, timeout_ms=20_000)


def assert_whole(ready: Line, done: Line, seen: Line, connections: int, requests: int) -> None:
    """Check that each connection was opened, and each request sent and answered, once."""
    assert (ready["requested"], ready["established"]) == (connections, connections)
    assert (done["counts"]["scheduled"], done["counts"]["ok"]) == (requests, requests)
    assert (done["counts"]["unsent"], done["counts"]["failed"]) == (0, {})
    assert sum(second["ok"] for second in done["series"]) == requests
    assert done["slots"]["answers_sum"] == requests
    assert (seen["accepted"], seen["requests"]) == (connections, requests)


@pytest.mark.parametrize(("threads", "connections", "requests"), CLOSED)
@pytest.mark.parametrize("driver", ["epoll", "io_uring"])
def test_a_closed_loop_is_shared_to_the_last_request(
    engine_path: Path, threads: int, connections: int, requests: int, driver: str
) -> None:
    with serving(engine_path) as (server, address):
        plan = plan_for(address, threads, connections)
        ready, done = measure(engine_path, plan, by_requests(requests), driver=driver)
        seen = served(server)
    assert_whole(ready, done, seen, connections, requests)
    slots = done["slots"]
    assert slots["asked"] == min(requests, connections)
    # Among slots that send, the numbers of requests differ by at most one.
    assert slots["answers_max"] - slots["answers_min"] <= 1


@pytest.mark.parametrize("arrivals", ["constant", "poisson"])
@pytest.mark.parametrize(("threads", "connections", "stages"), OPEN)
def test_an_open_loop_has_the_arrivals_of_its_schedule_whatever_the_threads(
    engine_path: Path,
    threads: int,
    connections: int,
    stages: tuple[tuple[int, float, float], ...],
    arrivals: str,
) -> None:
    plan_stages = [{"ns": ms * NS_PER_MS, "from": first, "to": last} for ms, first, last in stages]
    phase = {
        "type": "phase",
        "id": "window",
        "load": {"kind": "open", "stages": plan_stages, "arrivals": arrivals, "seed": 7},
        "connections": None,
        "stop": {"kind": "duration", "ns": sum(stage[0] for stage in stages) * NS_PER_MS},
        "at_ns": None,
    }
    scheduled = []
    for count in (1, threads):
        with serving(engine_path) as (server, address):
            plan = plan_for(address, count, connections)
            _, done = measure(engine_path, plan, phase)
            seen = served(server)
        counts = done["counts"]
        scheduled.append(counts["scheduled"])
        # On a busy machine the last ones may become too late to be sent.
        assert counts["ok"] + counts["unsent"] == counts["scheduled"], counts
        assert seen["requests"] == counts["ok"]
    assert scheduled[0] == scheduled[1]
    if arrivals == "constant":
        area = sum(ms * (first + last) / 2 for ms, first, last in stages) / 1000
        assert scheduled[0] == pytest.approx(area, abs=len(stages))


@pytest.mark.parametrize("arrivals", ["constant", "poisson"])
def test_an_open_loop_by_requests_sends_as_many(engine_path: Path, arrivals: str) -> None:
    stages = [{"ns": 60_000 * NS_PER_MS, "from": 5000.0, "to": 5000.0}]
    load = {"kind": "open", "stages": stages, "arrivals": arrivals, "seed": 7}
    for threads, connections, requests in ((8, 100, 1001), (3, 7, 2)):
        with serving(engine_path) as (server, address):
            plan = plan_for(address, threads, connections)
            ready, done = measure(engine_path, plan, by_requests(requests) | {"load": load})
            seen = served(server)
        assert_whole(ready, done, seen, connections, requests)


def test_stages_of_connections_are_those_of_all_threads(engine_path: Path) -> None:
    active = [{"ns": 200 * NS_PER_MS, "from": 5.0, "to": 5.0}]
    phase = by_requests(1) | {
        "load": {"kind": "closed", "active": active},
        "stop": {"kind": "duration", "ns": 200 * NS_PER_MS},
    }
    with serving(engine_path) as (server, address):
        ready, done = measure(engine_path, plan_for(address, 3, 11), phase)
        seen = served(server)
    assert (ready["established"], done["slots"]["asked"]) == (11, 5)
    counts = done["counts"]
    assert counts["ok"] == counts["issued"] == seen["requests"]


def test_the_threads_say_how_far_apart_they_began(engine_path: Path) -> None:
    with serving(engine_path) as (_, address):
        for threads in (1, 4):
            plan = plan_for(address, threads, 8)
            _, done = measure(engine_path, plan, by_requests(80))
            assert (done["generator"]["start_skew_ns"] is None) == (threads == 1)
