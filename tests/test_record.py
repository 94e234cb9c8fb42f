"""What a reference server reports, compared with what our generator reports.

They are two ends of the same connections, so they must agree.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from faults.engine_lines import Engine as Generator
from faults.engine_lines import EngineRun, Plan, by_requests, run_plan
from harness import Trueload, start_server
from trueload.engines.binary import find_engine
from trueload.engines.engine import Engine, EngineError, await_listening, seen_since_mark
from trueload.protocol.exchange import ServeHttp
from trueload.protocol.faults import Faults
from trueload.protocol.plan import Serve
from trueload.protocol.server_report import ServerReport

pytestmark = pytest.mark.engine

WAIT_S = 10.0


@contextmanager
def server(
    service: ServeHttp = ServeHttp(record=True),  # noqa: B008 (frozen)
    **plan: Any,
) -> Iterator[tuple[Engine, str]]:
    """Run a reference server; yields it and its address."""
    asked = {"listen": "127.0.0.1:0", "threads": 1, "cpus": ()} | plan
    with Engine.start() as engine:
        engine.send(Serve.model_validate(asked | {"service": service}))
        yield engine, await_listening(engine, WAIT_S)


def load(address: str, requests: int, **plan: Any) -> EngineRun:
    """Send `requests` requests from our generator, which has ended when this returns."""
    asked = Plan(address=address, timeout_ms=10_000, **plan)
    with Generator(find_engine()) as engine:
        return run_plan(engine, asked, by_requests(requests))


def mark(engine: Engine, name: str) -> ServerReport:
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


def failing(**faults: Any) -> ServeHttp:
    return ServeHttp(record=True, faults=Faults(seed=5, **faults))


def counts_against(service: ServeHttp, **plan: Any) -> tuple[dict[str, Any], ServerReport]:
    """Return our generator's counts, and what the server reports."""
    with server(service, **plan.pop("serve", {})) as (engine, address):
        requests = plan.pop("requests", 400)
        counts = load(address, requests, **plan).measurements["window"]["counts"]
        return counts, mark(engine, "all")


def test_errors_are_counted_the_same_at_both_ends() -> None:
    counts, seen = counts_against(failing(error_share=0.2), connections=4, statuses=(200,))
    assert counts["failed"] == {"status": seen.faults["error"]}
    assert 40 < seen.faults["error"] < 120
    assert counts["statuses"] == seen.statuses
    assert (counts["ok"], counts["issued"]) == (seen.ok, seen.requests)


@pytest.mark.parametrize("driver", ["auto", "epoll"])
@pytest.mark.parametrize("path", ["/", "/wait/1"])
def test_resets_are_counted_the_same_at_both_ends(driver: str, path: str) -> None:
    counts, seen = counts_against(
        failing(reset_share=0.2), connections=4, path=path, serve={"driver": driver}
    )
    assert counts["failed"] == {"reset": seen.faults["reset"]}
    assert seen.faults["reset"] == seen.dropped
    assert (counts["ok"], counts["issued"]) == (seen.answered, seen.requests)


def test_answers_that_never_come_are_aborted_by_the_client_that_waits_for_them() -> None:
    with server(failing(stall_share=0.1)) as (engine, address):
        asked = Plan(address=address, timeout_ms=300, connections=8)
        with Generator(find_engine()) as generator:
            counts = run_plan(generator, asked, by_requests(80)).measurements["window"]["counts"]
        seen = mark(engine, "all")
    # On a busy machine other answers may time out, too, so more than the stalled ones are given up.
    late = counts["failed"]["timeout.first_byte"] - seen.faults["stall"]
    assert late >= 0
    assert seen.faults["stall"] <= seen.aborted <= counts["failed"]["timeout.first_byte"]
    assert counts["issued"] == seen.requests


def test_stalls_and_slow_bodies_with_an_end_are_answers() -> None:
    service = failing(stall_share=0.2, stall_ns=5_000_000, slow_share=0.3, slow_ns=4_000_000)
    counts, seen = counts_against(service, connections=4, requests=100)
    assert counts["failed"] == {}
    assert (counts["ok"], seen.ok) == (100, 100)
    assert min(seen.faults["stall"], seen.faults["slow"]) > 5


def test_a_server_that_says_that_it_closes_is_connected_to_again() -> None:
    counts, seen = counts_against(failing(close_after=10), connections=4, requests=400)
    assert counts["failed"] == {}
    assert (counts["ok"], seen.ok) == (400, 400)
    used = seen.requests_per_connection
    assert used is not None
    # A free connection takes the next request, so the last of each of the four may have had fewer.
    assert (used.max, used.count in range(40, 44)) == (10, True)
    assert seen.faults == {"close": seen.faults["close"]}
    assert seen.faults["close"] in range(37, 41)


def test_a_close_without_a_word_costs_at_most_the_request_on_its_way() -> None:
    service = failing(close_after=10, close_silently=True)
    counts, seen = counts_against(service, connections=4, requests=400)
    # Closing with unread data sends a reset: that request is lost, and the server never saw it.
    lost = counts["failed"].get("reset", 0)
    assert counts["failed"] in ({}, {"reset": lost})
    assert (counts["ok"], seen.requests) == (seen.ok, seen.ok)
    assert seen.ok + lost == 400
    assert lost <= seen.faults["close"] <= 40
    used = seen.requests_per_connection
    assert used is not None
    assert used.max == 10


def test_the_same_seed_fails_the_same_number_of_requests() -> None:
    met = [counts_against(failing(error_share=0.1), connections=1)[1].faults for _ in range(2)]
    assert met[0] == met[1]


def test_faults_that_cannot_be_are_refused_by_their_name() -> None:
    refused = failing(error_share=0.7, reset_share=0.7)
    with pytest.raises(EngineError, match="error_share"), server(refused):
        pass


def test_serve_tells_at_its_end_what_it_saw_and_what_it_did_wrong(
    trueload: Trueload, tmp_path: Path
) -> None:
    json_file = tmp_path / "served.json"
    server = start_server(
        trueload, "--error-share", "20%", "--close-after", "50", "--json", str(json_file)
    )
    ran = trueload.run("http", server.url, "-c", "1", "--requests", "400", "--json", "-")
    failed = ran.json()["counts"]["failed"]
    server.process.send_signal(signal.SIGTERM)
    output, _ = server.process.communicate(timeout=30)
    record = json.loads(json_file.read_text())["record"]
    assert failed == {"status": record["faults"]["error"]}
    assert (record["requests"], record["answered"]) == (400, 400)
    assert record["faults"]["close"] == 8
    assert f"on purpose: 8 close, {failed['status']} error" in output
    assert "requests per connection: 50 to 50, median 50" in output


def test_work_is_no_fault_that_needs_a_record(trueload: Trueload, tmp_path: Path) -> None:
    json_file = tmp_path / "served.json"
    server = start_server(trueload, "--work", "1us", "--json", str(json_file))
    ran = trueload.run("http", server.url, "-c", "1", "--requests", "4", "--json", "-")
    server.process.send_signal(signal.SIGTERM)
    server.process.communicate(timeout=30)
    found = json.loads(json_file.read_text())
    assert (ran.json()["counts"]["ok"], found["responses"], "record" in found) == (4, 4, False)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--stall-for", "1s"), "--stall-for does nothing without --stall-share"),
        (("--slow-for", "1s"), "--slow-for does nothing without --slow-share"),
        (("--close-silently",), "--close-silently does nothing without --close-after"),
        (("--fault-seed", "1"), "--fault-seed does nothing without"),
        (("--error-share", "60%", "--reset-share", "0.6"), "exceed 100%"),
        (("--error-share", "5"), "is more than all"),
        (("--work", "0s"), "must be greater than 0"),
        (("--work", "2s"), "'2s' is more than 1s"),
        (("--max-streams", "5"), "--max-streams needs HTTP/2"),
        (("--http", "1.1", "--stall-window"), "--stall-window needs HTTP/2"),
        (("--http", "2", "--refuse-share", "60%", "--error-share", "60%"), "exceed 100%"),
    ],
)
def test_faults_that_make_no_sense_are_refused(
    trueload: Trueload, flags: tuple[str, ...], expected: str
) -> None:
    ended = trueload.run("serve", "http", *flags)
    assert ended.code == 2
    assert expected in ended.err
    assert "hint: " in ended.err
