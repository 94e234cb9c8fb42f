"""What a reference server says it saw, held against what our own generator says it did: two ends of
the same connections, which must agree."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from faults.engine_lines import Engine as Generator
from faults.engine_lines import EngineRun, Plan, by_requests, run_plan
from trueload.engine import Engine, EngineError, await_listening, find_engine, seen_since_mark
from trueload.plan import Seen, Serve, ServeHttp

pytestmark = pytest.mark.engine

WAIT_S = 10.0


@contextmanager
def server(
    service: ServeHttp = ServeHttp(record=True),  # noqa: B008 (frozen)
    **plan: Any,
) -> Iterator[tuple[Engine, str]]:
    """A reference server, and where it listens."""
    asked = {"listen": "127.0.0.1:0", "threads": 1, "cpus": ()} | plan
    with Engine.start() as engine:
        engine.send(Serve.model_validate(asked | {"service": service}))
        yield engine, await_listening(engine, WAIT_S)


def load(address: str, requests: int, **plan: Any) -> EngineRun:
    """So many requests of our generator; it has gone when this returns."""
    asked = Plan(address=address, timeout_ms=10_000, **plan)
    with Generator(find_engine()) as engine:
        return run_plan(engine, asked, by_requests(requests))


def mark(engine: Engine, name: str) -> Seen:
    return seen_since_mark(engine, name, WAIT_S)


@pytest.mark.parametrize("driver", ["auto", "epoll"])
def test_both_ends_count_the_same(driver: str) -> None:
    with server(driver=driver) as (engine, address):
        counts = load(address, 500, connections=8, path="/wait/1").measurements["window"]["counts"]
        seen = mark(engine, "all")
    assert (seen.requests, seen.answered, seen.ok) == (500, counts["ok"], 500)
    assert (seen.accepted, seen.connections.peak) == (8, 8)
    assert 1 <= seen.open_requests.peak <= 8
    used = seen.requests_per_connection
    assert used is not None
    assert (used.count, used.min, used.max) == (8, 62, 63)
    assert seen.delay_error_ns is not None
    assert seen.delay_error_ns.count == 500
    assert seen.gap_ns is not None
    assert seen.gap_ns.count == 492
    assert sum(span.answered for span in seen.series) == 500


def test_a_connection_per_request_is_seen_as_that() -> None:
    with server() as (engine, address):
        load(address, 50, connections=4, close=True)
        seen = mark(engine, "all")
    assert (seen.requests, seen.accepted, seen.used_once, seen.gap_ns) == (50, 50, 50, None)


def test_each_mark_tells_its_own_repetition_over_several_threads() -> None:
    with server(threads=2) as (engine, address):
        load(address, 300, connections=6)
        first = mark(engine, "first")
        load(address, 200, connections=6)
        second = mark(engine, "second")
    assert (first.id, first.requests, second.requests) == ("first", 300, 200)
    assert (first.threads, second.accepted) == (2, 6)
    assert first.at_ns <= second.at_ns


def test_a_server_without_a_record_refuses_a_mark() -> None:
    with server(ServeHttp()) as (engine, _), pytest.raises(EngineError, match="no record"):
        mark(engine, "x")
