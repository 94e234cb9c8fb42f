"""The engine as a process that broadcasts: what it refuses, and what it measures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from faults.engine_lines import Engine, Line, Plan
from trueload.protocol.exchange import ServeWs
from trueload.protocol.shootout import Dialect

pytestmark = pytest.mark.engine

OPENING: Line = {
    "method": "GET",
    "path": "/ws",
    "headers": [["Host", "a"]],
    "body_sha256": None,
    "template": False,
}
BROADCAST: Line = {"kind": "ws_broadcast", "opening": OPENING, "dialect": "json", "padding": 10}
TURNS: Line = {"kind": "turns", "concurrent": 2}
MESSAGE: Line = {"sender": 1, "sequence": 1}


def plan(address: str, connections: int = 4, **changes: object) -> Line:
    """A plan for a broadcast."""
    line = Plan(address=address, connections=connections, timeout_ms=5000).line()
    return {**line, "request": None, "exchange": BROADCAST, **changes}


def phase(count: int, **changes: object) -> Line:
    """A phase of `count` messages."""
    stop: Line = {"kind": "requests", "count": count}
    line: Line = {"type": "phase", "id": "window", "load": TURNS, "connections": None}
    return {**line, "stop": stop, "at_ns": None, **changes}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"threads": 2}, "one thread"),
        ({"pipeline": 2}, "pipeline 1"),
        ({"close": True}, "no close"),
        ({"exchange": {**BROADCAST, "dialect": "klingon"}}, "klingon"),
        ({"exchange": {**BROADCAST, "padding": -1}}, "exchange: invalid value: integer `-1`"),
        ({"exchange": {**BROADCAST, "padding": 2 << 20}}, "exchange.padding"),
        ({"exchange": {**BROADCAST, "size": 1}}, "size"),
        ({"exchange": {**BROADCAST, "opening": {**OPENING, "path": "/a b"}}}, "opening.path"),
        (
            {"exchange": {**BROADCAST, "opening": {**OPENING, "headers": [["Upgrade", "x"]]}}},
            "Upgrade",
        ),
        ({"request": OPENING}, "exchange"),
    ],
    ids=repr,
)
def test_a_plan_that_cannot_be_broadcast_is_refused_with_what_is_wrong(
    engine_path: Path, changes: Line, named: str
) -> None:
    with Engine(engine_path) as engine:
        engine.send({**plan("127.0.0.1:9"), **changes})
        error = engine.wait_for("error")
        assert (error["class"], named in error["message"]) == ("plan", True), error
        assert engine.wait() == 2


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"load": {"kind": "closed"}}, "goes by turns"),
        ({"load": {"kind": "turns", "concurrent": 0}}, "load.concurrent"),
        ({"load": {"kind": "turns", "concurrent": 1 << 20}}, "load.concurrent"),
        ({"load": {**TURNS, "seed": 1}}, "seed"),
        ({"idle": 1}, "idle"),
    ],
    ids=repr,
)
def test_a_phase_that_cannot_be_broadcast_is_refused_with_what_is_wrong(
    engine_path: Path, changes: Line, named: str
) -> None:
    with Engine(engine_path) as engine:
        engine.send(plan("127.0.0.1:9"), phase(1, **changes))
        error = engine.wait_for("error")
        assert (error["class"], named in error["message"]) == ("plan", True), error


def test_fewer_messages_in_flight_than_engines_are_refused(engine_path: Path) -> None:
    with Engine(engine_path) as engine:
        engine.send(plan("127.0.0.1:9", part={"index": 0, "of": 3}), phase(1))
        error = engine.wait_for("error")
        assert "load.concurrent: must be at least 1 for each engine" in error["message"], error


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ({"type": "settle", "id": "other", "sent": {}, "until_ns": None}, "'other' is no phase"),
        ({"type": "charge", "id": "\x1b", "failed": []}, "'\\u{1b}' is no phase"),
        ({"type": "settle", "id": "a", "sent": {"x": 1}, "until_ns": None}, "sent"),
        ({"type": "settle", "id": "a", "sent": {}, "until_ns": -1}, "until_ns"),
        ({"type": "settle", "id": "a", "sent": {}, "more": 1}, "more"),
        ({"type": "charge", "id": "a", "failed": [{"sender": 1, "sequence": 1}]}, "failed[0]"),
        (
            {"type": "charge", "id": "a", "failed": [{**MESSAGE, "fault": "shy"}]},
            "failed[0].fault",
        ),
    ],
    ids=repr,
)
def test_what_cannot_be_settled_is_refused_with_what_is_wrong(
    engine_path: Path, line: Line, named: str
) -> None:
    with Engine(engine_path) as engine:
        engine.send(plan("127.0.0.1:9", part={"index": 1, "of": 2}), phase(2), line)
        error = engine.wait_for("error")
        assert (error["class"], named in error["message"]) == ("plan", True), error


def test_turns_are_for_broadcasts_alone(engine_path: Path) -> None:
    with Engine(engine_path) as engine:
        engine.send(Plan(address="127.0.0.1:9").line(), phase(1))
        error = engine.wait_for("error")
        assert "turns are for ws_broadcast" in error["message"], error


@pytest.mark.parametrize("driver", ["epoll", "io_uring"])
@pytest.mark.parametrize("dialect", ["json", "binary", "actioncable", "phoenix"])
def test_clients_join_from_phase_to_phase_and_every_delivery_is_settled(
    engine_path: Path, dialect: Dialect, driver: str
) -> None:
    with Engine(engine_path) as server, Engine(engine_path) as engine:
        service = ServeWs(dialect=dialect).model_dump()
        listen: Line = {"type": "serve", "protocol": 1, "listen": "127.0.0.1:0", "threads": 1}
        server.send({**listen, "cpus": [], "driver": driver, "service": service})
        address = server.wait_for("ready")["listen"]
        headers = [["Host", address]]
        if dialect == "actioncable":
            headers.append(["Sec-WebSocket-Protocol", "actioncable-v1-json"])
        opening = {**OPENING, "headers": headers}
        exchange = {**BROADCAST, "dialect": dialect, "opening": opening}
        engine.send(plan(address, exchange=exchange, driver=driver))
        assert engine.wait_for("ready")["established"] == 4
        engine.send(phase(20), phase(30, id="more", connections=50))
        first, more = (engine.wait_for("phase_done")["measurement"] for _ in range(2))
    assert settled(first) == [80, 80, 0, 0, 0], first
    assert settled(more) == [1500, 1500, 0, 0, 0], more
    assert more["counts"]["ok"] == 30
    assert all(more["deliveries"]["histograms"].values()), "every rank was reached"


def settled(measurement: Line) -> list[Any]:
    found = measurement["deliveries"]
    return [found[name] for name in ("expected", "delivered", "lost", "duplicate", "out_of_order")]
