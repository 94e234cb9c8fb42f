"""The engine as a process: its lines, its refusals, and that it never outlives its front."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
import pytest
from faults.cases import Script, Step
from faults.engine_lines import Engine, Line, Plan, by_duration, by_requests, run_plan
from faults.peer import Peer
from trueload.protocol.packed import PackedCounts

pytestmark = pytest.mark.engine

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
ANSWERS: Script = (Step("read"), Step("send", data=OK), Step("again"))
SERVE: Line = {
    "type": "serve",
    "protocol": 1,
    "listen": "127.0.0.1:0",
    "threads": 1,
    "cpus": [],
}
TIMES = ("latency", "service")
LEASE_S = 2.0
"""Without a word for so long an engine ends (design §5)."""
PIPE_BYTES = 4096  # the least that a pipe has
SLACK_S = 6.0
"""A loaded machine's share: bounds below are for hanging, not for speed."""


def plan_for(peer: Peer, **changes: Any) -> Plan:
    return Plan(address=f"{peer.host}:{peer.port}", **changes)


# --- what it says


def test_hello_comes_first_and_names_the_protocol(engine_path: Path) -> None:
    with Engine(engine_path) as engine:
        hello = engine.wait_for("hello")
        assert engine.lines == [hello]
        assert (hello["protocol"], hello["pid"]) == (1, engine.process.pid)


def core_latency_ns(engine: Engine, cpus: list[int]) -> float | None:
    engine.send({"type": "distance", "cpus": cpus})
    answer = engine.wait_for("distance")
    assert answer["cpus"] == cpus
    ns: float | None = answer["ns"]
    return ns


def test_how_far_apart_cpus_are_is_told_before_the_plan_and_behind_a_phase(
    engine_path: Path,
) -> None:
    """The core latency of a CPU to itself, or to a missing one, is unknown."""
    one, *others = sorted(os.sched_getaffinity(0))
    with Peer((ANSWERS,)) as peer, Engine(engine_path) as engine:
        for pair in ([one, one], [one, 100_000], [100_000, one]):
            assert core_latency_ns(engine, pair) is None
        plan = plan_for(peer)
        engine.send(*plan.blobs(), plan.line(), by_requests(10))
        engine.wait_for("phase_done")
        for other in others[:1]:
            # If others use these CPUs, it may run out of time.
            looks = [core_latency_ns(engine, [one, other]) for _ in range(20)]
            known = [ns for ns in looks if ns is not None]
            assert known
            assert all(1 < ns < 100_000 for ns in known)
        engine.send({"type": "stop"})
        assert engine.wait() == 0


def seen_of(engine: Engine, cpus: list[int]) -> list[dict[str, Any]]:
    """Ask for the speeds seen since the last question, of its CPUs; from now on watch these."""
    engine.send({"type": "speeds", "cpus": cpus})
    found: list[dict[str, Any]] = engine.wait_for("speeds")["cpus"]
    return found


def test_how_fast_cpus_are_is_told_with_the_next_question(engine_path: Path) -> None:
    one = min(os.sched_getaffinity(0))
    with Peer((ANSWERS,)) as peer, Engine(engine_path) as engine:
        plan = plan_for(peer)
        engine.send(*plan.blobs(), plan.line())
        assert seen_of(engine, [one, 100_000]) == []
        engine.send(by_requests(10))
        engine.wait_for("phase_done")
        known, unknown = seen_of(engine, [])
        assert (known["cpu"], unknown) == (one, {**known, "cpu": 100_000, "work_ns": []})
        assert all(0 <= work_ns < 1_000_000_000 for work_ns in known["work_ns"])
        assert seen_of(engine, []) == []
        engine.send({"type": "speeds", "cpus": list(range(17))})
        assert engine.wait_for("error")["message"] == "cpus: more than 16"
        assert engine.wait() == 2


def test_a_run_goes_from_hello_over_ready_and_phase_done_to_done(engine_path: Path) -> None:
    with Peer((ANSWERS,)) as peer, Engine(engine_path) as engine:
        run = run_plan(engine, plan_for(peer, connections=2), by_requests(10))
        kinds = [line["type"] for line in engine.lines if line["type"] != "tick"]
        assert kinds == ["hello", "ready", "phase_started", "phase_stopped", "phase_done", "done"]
        assert (run.done, run.code) == ("finished", 0)
        assert run.ready["established"] == 2


def test_connections_persist_from_phase_to_phase(engine_path: Path) -> None:
    with Peer((ANSWERS,)) as peer, Engine(engine_path) as engine:
        phases = (by_requests(20, phase="warmup"), by_duration(100), by_requests(20, phase="more"))
        run = run_plan(engine, plan_for(peer, connections=3), *phases)
        peer.settle()
        assert peer.accepted == 3
        assert sum(part["counts"]["ok"] for part in run.measurements.values()) == peer.requests
        assert run.measurements["warmup"]["counts"]["ok"] == 20


def test_ticks_come_while_a_phase_runs_and_grow(engine_path: Path) -> None:
    with Peer((ANSWERS,)) as peer, Engine(engine_path) as engine:
        run_plan(engine, plan_for(peer), by_duration(2500))
        ticks = [tick for tick in engine.all("tick") if tick["id"] == "window"]
        # Nine are due; on a busy machine a late one may replace the next.
        assert len(ticks) >= 4
        gaps_ns = [b["at_ns"] - a["at_ns"] for a, b in pairwise(ticks)]
        assert max(gaps_ns) < 250_000_000 + SLACK_S * 1e9
        ok = [tick["counts"]["ok"] for tick in ticks]
        assert ok == sorted(ok)
        assert ok[-1] > 0


def test_ticks_of_an_open_loop_tell_service_times_beside_response_times(engine_path: Path) -> None:
    stage = {"ns": 600_000_000, "from": 400.0, "to": 400.0}
    loads: dict[str, Line] = {
        "open": {"kind": "open", "stages": [stage], "arrivals": "constant", "seed": 1},
        "closed": {"kind": "closed"},
    }
    with Peer((ANSWERS,)) as peer:
        for kind, load in loads.items():
            with Engine(engine_path) as engine:
                run_plan(engine, plan_for(peer), by_duration(600) | {"load": load})
                ticks = engine.all("tick")
            times = {name: [PackedCounts.of_base64(tick[name]) for tick in ticks] for name in TIMES}
            totals = {name: sum(sum(each.values()) for each in times[name]) for name in TIMES}
            assert totals["latency"] > 0, kind
            assert totals["service"] == (totals["latency"] if kind == "open" else 0), kind


def test_a_phase_with_a_start_time_does_not_start_before_it(engine_path: Path) -> None:
    with Peer((ANSWERS,)) as peer, Engine(engine_path) as engine:
        engine.send(plan_for(peer).line())
        at_ns = engine.wait_for("ready")["at_ns"] + 300_000_000
        engine.send(by_requests(5) | {"at_ns": at_ns})
        assert engine.wait_for("phase_started")["at_ns"] >= at_ns
        assert engine.wait_for("phase_done")["measurement"]["started_ns"] >= at_ns


def test_a_body_is_sent_once_and_named_by_its_sha256(engine_path: Path) -> None:
    with Peer((ANSWERS,)) as peer, Engine(engine_path) as engine:
        plan = plan_for(peer, method="POST", body=b"x" * 100_000, expect_body=b"ok")
        run = run_plan(engine, plan, by_requests(3))
        assert run.measurements["window"]["counts"]["ok"] == 3


def test_a_phase_may_ask_for_more_connections(engine_path: Path) -> None:
    with Peer((ANSWERS,)) as peer, Engine(engine_path) as engine:
        more = by_requests(50, phase="more") | {"connections": 5}
        run = run_plan(engine, plan_for(peer, connections=2), by_requests(4), more)
        peer.settle()
        assert run.measurements["more"]["connections"]["requested"] == 5
        assert peer.accepted == 5


# --- what it refuses


def refused(engine_path: Path, *lines: Line) -> Line:
    """Send these lines; return the error, once the engine has ended."""
    with Engine(engine_path) as engine:
        engine.send(*lines)
        error = engine.wait_for("error")
        assert engine.wait() == 2, engine.output()
        assert not engine.all("ready") or len(lines) > 1, engine.output()
        return error


GOOD = Plan(address="127.0.0.1:9").line()


ASKED: Line = {"method": "GET", "path": "/", "headers": [], "body_sha256": None, "template": False}
TARGET: Line = {
    "name": None,
    "weight": 1,
    "request": ASKED,
    "expect": {"statuses": None, "body_sha256": None},
}


def changed(path: str, value: object) -> Line:
    """The good plan with one field, named by its path, set to something else."""
    plan = json.loads(json.dumps(GOOD))
    *parents, last = path.split(".")
    place = plan
    for name in parents:
        place = place[name]
    place[last] = value
    return dict(plan)


def without(field: str) -> Line:
    return {name: value for name, value in GOOD.items() if name != field}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("connections", "many"),
        ("connections", -1),
        ("connections", 1.5),
        ("connections", 0),
        ("pipeline", 0),
        ("threads", 0),
        ("timeout_ns", 0),
        ("connect_rate_per_s", 0),
        ("addresses", []),
        ("addresses", ["localhost:80"]),
        ("addresses", ["127.0.0.1"]),
        ("local_addresses", ["here"]),
        ("protocol", 2),
        ("request", None),
        ("request.method", "GET / HTTP/1.1\r\nX: "),
        ("request.method", ""),
        ("request.path", "/a b"),
        ("request.path", "/\r\nX: y"),
        ("request.headers", [["X", "a\r\nY: b"]]),
        ("request.headers", [["X Y", "a"]]),
        ("request.headers", [["only a name"]]),
        ("request.colour", "red"),
        ("expect.statuses", [70000]),
        ("expect.statuses", "ok"),
        ("colour", "red"),
        ("addresses", ["unix:"]),
        ("addresses", ["unix:/" + "a" * 108]),
        ("request.template", "yes"),
        ("targets", [TARGET]),
        ("seed", -1),
    ],
    ids=repr,
)
def test_a_malformed_plan_is_refused_with_the_name_of_the_field(
    engine_path: Path, field: str, value: object
) -> None:
    error = refused(engine_path, changed(field, value))
    assert error["class"] == "plan"
    assert field.rpartition(".")[2] in error["message"], error
    assert "\n" not in error["message"], error


@pytest.mark.parametrize("value", [True, False])
def test_a_field_that_went_is_refused_in_a_plan(engine_path: Path, value: bool) -> None:
    windows = {"stream_window": 65_535, "connection_window": 65_535}
    error = refused(engine_path, changed("http2", {**windows, "upgrade": value}))
    assert error["class"] == "plan"
    assert "unknown field `upgrade`" in error["message"]


@pytest.mark.parametrize(
    ("targets", "named"),
    [
        ([], "request"),
        ([TARGET, {**TARGET, "weight": 0}], "targets"),
        ([TARGET, {**TARGET, "weight": -1}], "weight"),
        ([{**TARGET, "weight": 2**31}, {**TARGET, "weight": 2**31 + 1}], "targets"),
        ([TARGET, {**TARGET, "request": None}], "request"),
        ([TARGET, {**TARGET, "request": {**ASKED, "path": "/a b"}}], "targets[1].request.path"),
        ([{**TARGET, "colour": "red"}], "colour"),
    ],
)
def test_malformed_targets_are_refused_with_the_name_of_the_field(
    engine_path: Path, targets: list[Line], named: str
) -> None:
    plan = {**changed("request", None), "targets": targets}
    error = refused(engine_path, plan)
    assert error["class"] == "plan"
    assert named in error["message"], error


@pytest.mark.parametrize("field", sorted(set(GOOD) - {"type"}))
def test_a_plan_that_misses_a_field_is_refused_with_its_name(engine_path: Path, field: str) -> None:
    error = refused(engine_path, without(field))
    assert error["class"] == "plan"
    assert field in error["message"], error


@pytest.mark.parametrize(
    "line",
    [b"nonsense\n", b"{}\n", b"[]\n", b"null\n", b'{"type":"dance"}\n', b"\xff\xfe\n", b"{\n"],
    ids=repr,
)
def test_a_line_that_is_no_message_is_refused(engine_path: Path, line: bytes) -> None:
    with Engine(engine_path, lease=False) as engine:
        engine.send_raw(line)
        assert engine.wait_for("error")["class"] == "plan"
        assert engine.wait() == 2


def test_the_first_line_must_be_a_plan(engine_path: Path) -> None:
    assert refused(engine_path, by_requests(1))["class"] == "plan"


def test_a_busy_front_may_be_there_before_its_plan(engine_path: Path) -> None:
    with Engine(engine_path, lease=False) as engine:
        engine.send({"type": "lease"}, {"type": "lease"}, SERVE)
        engine.wait_for("ready")


def test_a_body_that_is_not_what_its_name_says_is_refused(engine_path: Path) -> None:
    plan = Plan(address="127.0.0.1:9", body=b"one")
    wrong = plan.blobs()[0] | {"base64": "dHdv"}
    assert "sha256" in refused(engine_path, plan.line(), wrong)["message"]


def test_an_address_to_listen_on_that_is_taken_is_refused(engine_path: Path) -> None:
    with socket.socket() as taken, Engine(engine_path) as engine:
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        engine.send(SERVE | {"listen": f"127.0.0.1:{taken.getsockname()[1]}"})
        assert engine.wait_for("error")["class"] == "listen"
        assert engine.wait() == 2


# --- how it ends


def running(engine: Engine, peer: Peer) -> None:
    """Start a long phase."""
    engine.send(plan_for(peer, connections=2, timeout_ms=2000).line(), by_duration(60_000))
    engine.wait_for("phase_started")


def test_stop_ends_a_phase_and_reports_it_as_partial(engine_path: Path) -> None:
    with Peer((ANSWERS,)) as peer, Engine(engine_path) as engine:
        running(engine, peer)
        engine.wait_for("tick")
        engine.send({"type": "stop"})
        done = engine.wait_for("phase_done")["measurement"]
        assert engine.wait() == 0
        assert engine.lines[-1] == {"type": "done", "why": "stopped"}
        counts = done["counts"]
        assert done["partial"]
        assert counts["issued"] == counts["ok"] + counts["cancelled"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_within_a_second_with_what_was_measured(
    engine_path: Path, number: signal.Signals
) -> None:
    with Peer((ANSWERS,)) as peer, Engine(engine_path) as engine:
        running(engine, peer)
        engine.wait_for("tick")
        engine.process.send_signal(number)
        engine.wait(timeout_s=1.0 + SLACK_S)
        assert engine.lines[-1] == {"type": "done", "why": "signalled"}
        assert engine.all("phase_done")[-1]["measurement"]["partial"]


def test_a_signal_ends_it_even_when_the_server_never_answers(engine_path: Path) -> None:
    with Peer(((Step("hold"),),)) as peer, Engine(engine_path) as engine:
        engine.send(plan_for(peer, connections=2, timeout_ms=60_000).line(), by_requests(10))
        engine.wait_for("phase_started")
        engine.process.send_signal(signal.SIGTERM)
        engine.wait(timeout_s=1.0 + SLACK_S)
        counts = engine.all("phase_done")[-1]["measurement"]["counts"]
        assert (counts["issued"], counts["cancelled"], counts["unsent"]) == (2, 2, 8)


def test_without_a_lease_it_ends_after_two_seconds(engine_path: Path) -> None:
    with Peer((ANSWERS,)) as peer, Engine(engine_path, lease=False) as engine:
        running(engine, peer)
        engine.wait(timeout_s=LEASE_S + 1 + SLACK_S)
        # Ticks come four times a second, so it did not end earlier.
        assert len(engine.all("tick")) >= 4
        assert engine.lines[-1] == {"type": "done", "why": "orphaned"}


def test_without_a_first_line_it_ends_after_two_seconds(engine_path: Path) -> None:
    since_s = time.monotonic()
    with Engine(engine_path, lease=False) as engine:
        assert engine.wait(timeout_s=LEASE_S + SLACK_S) == 0
        lasted_s = time.monotonic() - since_s
        # A busy machine can only make it last longer.
        assert lasted_s >= LEASE_S, "it waits for a front that is busy"
        assert engine.lines[-1] == {"type": "done", "why": "orphaned"}


@pytest.mark.parametrize("role", ["generate", "serve"])
def test_the_end_of_input_ends_it(engine_path: Path, role: str) -> None:
    with Peer((ANSWERS,)) as peer, Engine(engine_path) as engine:
        if role == "serve":
            engine.send(SERVE)
            engine.wait_for("ready")
        else:
            running(engine, peer)
        engine.close_stdin()
        engine.wait(timeout_s=1.0 + SLACK_S)
        assert engine.lines[-1] == {"type": "done", "why": "orphaned"}


def test_a_broken_stdout_ends_it(engine_path: Path) -> None:
    with Peer((ANSWERS,)) as peer:
        process = subprocess.Popen([engine_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(plan_for(peer).line()).encode() + b"\n")
        process.stdin.write(json.dumps(by_duration(60_000)).encode() + b"\n")
        process.stdin.flush()
        while json.loads(process.stdout.readline())["type"] != "tick":
            pass
        process.stdout.close()
        # Ticks come four times a second; the next one hits the broken pipe.
        assert process.wait(LEASE_S + SLACK_S) != 0
        process.stdin.close()


ORPHANING = """
import subprocess, sys
engine = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
engine.stdin.write(sys.argv[2].encode() + b"\\n")
engine.stdin.flush()
print(engine.pid, flush=True)
engine.wait()
"""


def test_it_does_not_outlive_a_front_that_is_killed(engine_path: Path) -> None:
    front = subprocess.Popen(
        [sys.executable, "-c", ORPHANING, str(engine_path), json.dumps(SERVE)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert front.stdout is not None
    engine = psutil.Process(int(front.stdout.readline()))
    front.send_signal(signal.SIGKILL)
    front.wait()
    front.stdout.close()
    _, alive = psutil.wait_procs([engine], timeout=LEASE_S + SLACK_S)
    assert not alive


def test_it_ends_although_nobody_reads_what_it_says(engine_path: Path) -> None:
    """The front is stopped, not dead: stdout stays open, and no lease comes."""
    reader, writer = os.pipe()
    with Peer((ANSWERS,)) as peer:
        process = subprocess.Popen([engine_path], stdin=subprocess.PIPE, stdout=writer)
        os.close(writer)
        assert process.stdin is not None
        process.stdin.write(json.dumps(plan_for(peer).line()).encode() + b"\n")
        process.stdin.write(json.dumps(by_duration(60_000)).encode() + b"\n")
        process.stdin.flush()
        assert process.wait(LEASE_S + 1 + SLACK_S) == 0
        process.stdin.close()
    os.close(reader)


def test_it_ends_even_if_nobody_takes_what_it_says(engine_path: Path) -> None:
    """The same, and stdout is full: its write would never end."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    asked = b"".join(b'{"type": "clock", "id": %d}\n' % number for number in range(PIPE_BYTES))
    process = subprocess.Popen([engine_path], stdin=subprocess.PIPE, stdout=writer)
    os.close(writer)
    assert process.stdin is not None
    process.stdin.write(asked)
    process.stdin.flush()
    assert process.wait(LEASE_S + 1 + SLACK_S) == 1
    process.stdin.close()
    os.close(reader)


# --- the reference server


def test_the_reference_server_counts_what_it_saw(engine_path: Path) -> None:
    with Engine(engine_path) as server, Engine(engine_path) as engine:
        server.send(SERVE)
        address = server.wait_for("ready")["listen"]
        run = run_plan(engine, Plan(address=address, connections=4, depth=4), by_requests(100))
        server.send({"type": "stop"})
        assert server.wait() == 0
        served = server.all("served")[-1]
        assert run.measurements["window"]["counts"]["ok"] == 100
        assert (served["requests"], served["responses"], served["accepted"]) == (100, 100, 4)
        assert (served["malformed"], served["open_peak"]) == (0, 4)
        assert served["bytes_in"] == run.measurements["window"]["bytes_out"]
        assert served["bytes_out"] == run.measurements["window"]["bytes_in"]
