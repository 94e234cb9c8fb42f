"""``import trueload``: the same measurements, from Python."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import trueload as tl
from counting import Counting
from harness import ROOT, Server, Trueload, kill_group
from subject_world import World
from trueload.store.runs import Store
from waiting import hold_the_interpreter, wait_until

pytestmark = pytest.mark.engine


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "store.sqlite"
    monkeypatch.setenv("TRUELOAD_STORE", str(path))
    return path


def test_http_is_measured_saved_and_read_again(server: Server) -> None:
    result = tl.http(server.url, connections=4, requests=500, repeat=2, fail_on="throughput>1")
    assert [record.counts.ok for record in result.records] == [500, 500]
    assert result.p50 < 5
    assert result.errors == 0
    assert result.crossed[0].endswith("--fail-on says throughput>1")
    assert result.run_id is not None
    again = tl.load(result.run_id)
    assert isinstance(again, tl.Result)
    assert again.records == result.records
    (run,) = tl.runs()
    options = ("--connections=4", "--requests=500", "--repeat=2", "--fail-on=throughput>1")
    assert run.command == ("trueload", "http", server.url, *options)


def test_a_body_of_a_dict_is_sent_as_json_and_not_stored() -> None:
    with Counting() as counting:
        result = tl.http(counting.url, body={"pin": "hunter2"}, requests=2, connections=1)
        tl.ab(counting.url, counting.url, body=[1], requests=2, connections=1, repeat=2)
    first, last = counting.asked[0], counting.asked[-1]
    assert (first.method, first.body) == ("POST", b'{"pin": "hunter2"}')
    assert first.headers["content-type"] == "application/json"
    assert last.body == b"[1]"
    assert result.errors == 0
    assert "hunter2" not in str(tl.runs())


def test_what_the_record_says_of_a_load_is_what_the_command_would_have_sent(
    server: Server, trueload: Trueload
) -> None:
    asked: dict[str, Any] = {
        "connections": 3,
        "requests": 99,
        "pipeline": 2,
        "expect_status": "2xx,404",
    }
    ours = tl.http(server.url, **asked, no_save=True).records[0]
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in asked.items()]
    theirs = trueload.run("http", server.url, *flags, "--json", "-").json()
    assert ours.plan.model_dump(mode="json") == theirs["plan"]
    assert tl.runs() == []


def test_a_search_has_its_steps(server: Server) -> None:
    asked: dict[str, Any] = {"limit": "p99<1ns", "search": "connections", "duration": "50ms"}
    result = tl.http(server.url, connections=1, **asked)
    search = result.search
    assert search is not None
    assert (search.unit, search.load) == ("connections", None)
    assert {step.outcome for step in search.steps} <= {"exceeded", "limited"}
    assert result.records[0] in [record for step in search.steps for record in step.result.records]
    assert result.to_dict()["result"]["sentence"] == search.sentence
    assert result.run_id is not None
    again = tl.load(result.run_id)
    assert isinstance(again, tl.Result)
    assert again.search == search


def test_two_servers_are_compared_in_pairs_saved_and_read_again(server: Server) -> None:
    sides = (f"{server.url}/", f"{server.url}/wait/20")
    asked: dict[str, Any] = {"connections": 4, "requests": 40, "repeat": 6, "seed": 3}
    done = tl.ab(*sides, **asked, fail_on="throughput<0.5")
    assert (done.names, len(done.pairs), done.partial) == (sides, 6, False)
    assert done.ratio is not None
    assert done.ratio < 1
    assert done.interval is not None
    assert done.interval.kind == "95 % interval"
    assert done.interval.low <= done.ratio <= done.interval.high
    assert done.of("p50").ratio == done.ratios["p50"].ratio
    crossed = " ".join(done.crossed)
    assert ("and --fail-on says throughput<0.5" in crossed) is (done.word != "unclear")
    assert done.b.p50 >= 0.020
    assert done.to_dict()["pairs"] == 6
    assert done.run_id is not None
    again = tl.load(done.run_id)
    assert isinstance(again, tl.AbResult)
    assert (again.records, again.ratios) == (done.records, done.ratios)
    assert (again.names, again.paired.seed) == (sides, 3)
    (run,) = tl.runs()
    options = ("--connections=4", "--requests=40", "--repeat=6", "--seed=3")
    assert run.command == ("trueload", "compare", *sides, *options, "--fail-on=throughput<0.5")


def test_a_side_that_is_not_there_leaves_nothing_to_compare(
    server: Server, refusing_port: int
) -> None:
    gone = f"http://127.0.0.1:{refusing_port}/"
    with pytest.raises(tl.NothingMeasuredError, match=r"connect\.refused"):
        tl.ab(server.url, gone, connections=2, requests=20)
    with pytest.raises(tl.UserError, match="has no complete pair"):
        tl.load("last")
    with pytest.raises(tl.UserError, match="json is an option of the command line only") as refused:
        tl.ab(server.url, gone, json="-")  # type: ignore[call-arg]
    assert refused.value.hint.endswith("to send a body as JSON use body={…}")


def test_servers_of_ours_are_loaded_by_the_url_that_they_say() -> None:
    with tl.serve("tcp") as server:
        assert tl.tcp(server.url, connections=2, requests=50, no_save=True).ok == 50
    with tl.serve("ws", tls=True) as server:
        found = tl.ws(server.url, dialect="json", cacert=server.cacert, requests=50, no_save=True)
        assert found.ok == 50
    with tl.serve() as server:
        assert tl.http(server.url, requests=50, connections=2, no_save=True).ok == 50
    assert server.served is not None
    assert server.served.responses == 50
    with pytest.raises(tl.UserError, match="does not run"):
        assert server.url


def test_a_server_outlasts_a_step_that_lets_no_thread_of_ours_run() -> None:
    """It is twice as long as an engine waits for its lease (2 s), like a library that computes."""
    with tl.serve() as server:
        hold_the_interpreter(4)
        assert tl.http(server.url, requests=20, connections=2, no_save=True).ok == 20
    assert server.served is not None
    assert server.served.responses == 20


def test_a_server_ends_with_the_process_that_started_it() -> None:
    code = (
        "import os, signal, trueload as tl\n"
        "server = tl.serve().__enter__()\n"
        "print(server.url, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    port = int(ended.stdout.rpartition(":")[2].strip().rstrip("/"))

    def is_refused() -> bool:
        with socket.socket() as caller:
            return caller.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED

    wait_until(is_refused, "it listens no more")


def test_where_nobody_listens_nothing_is_measured(refusing_port: int) -> None:
    with pytest.raises(tl.NothingMeasuredError, match=r"connect\.refused") as refused:
        tl.http(f"http://127.0.0.1:{refusing_port}/", connections=2, duration="100ms")
    assert "is a server listening on" in refused.value.hint
    assert not refused.value.result.latency.p99.is_known


def test_a_thread_and_a_running_loop_may_measure(server: Server) -> None:
    def measure() -> int:
        return tl.http(server.url, connections=2, requests=100, no_save=True).ok

    async def within() -> list[int]:
        return [measure(), await asyncio.to_thread(measure)]

    done: list[int] = []
    threads = [threading.Thread(target=lambda: done.append(measure())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [*done, *asyncio.run(within())] == [100] * 4


ENDLESS = """
import asyncio, sys, trueload
asked = dict(connections=2, duration=60, warmup=0)
try:
    if sys.argv[2:]:
        asyncio.run(trueload.aio.http(sys.argv[1], **asked))
    trueload.http(sys.argv[1], **asked)
except KeyboardInterrupt:
    sys.exit("interrupted")
"""


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


@pytest.mark.parametrize(
    ("number", "code", "how"),
    [
        (signal.SIGINT, 1, []),
        (signal.SIGTERM, -signal.SIGTERM, []),
        (signal.SIGINT, 1, ["in a coroutine"]),
    ],
)
def test_a_signal_ends_the_measurement_saves_it_and_goes_on(
    server: Server, own_store: Path, number: signal.Signals, code: int, how: list[str]
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", ENDLESS, server.url, *how],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:

        def has_started() -> list[int]:
            # The engine is started before its plan connects, and the run is in the store before
            # that.
            assert process.poll() is None
            return list(children(process.pid)) if own_store.exists() else []

        (engine,) = wait_until(has_started, "an engine is started")
        os.kill(process.pid, number)
        _, output = process.communicate(timeout=30)
    finally:
        kill_group(process)
    assert process.returncode == code, output
    assert not Path(f"/proc/{engine}").exists()
    with Store.open(own_store) as store:
        (run,) = store.runs()
        assert run.state == "interrupted"


def test_a_module_that_was_only_imported_has_imported_nothing() -> None:
    code = "import sys, trueload; sys.exit(sum(n.startswith('trueload.') for n in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_a_suite_is_run_and_read_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in world.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(world.folder)
    world.add("good")
    world.add("wrong", "wrong")
    asked: dict[str, Any] = {
        "connections": [2],
        "pipeline": 1,
        "cores": "single",
        "share_cpus": True,
    }
    done = tl.suite("http-servers", requests=200, repeat=1, **asked)
    (row,) = done.of("python/good")
    assert row.outcome == "measured"
    assert row.figures is not None
    (failed,) = done.of("python/wrong")
    assert failed.outcome == "failed"
    again = tl.load(done.run_id)
    assert isinstance(again, tl.SuiteResult)
    assert again.rows == done.rows
    assert [each["framework"] for each in again.to_dict()["rows"]] == ["good", "wrong"]
    assert again.flat_rows()[0]["figures_requests"] == row.figures.requests
    assert "python/good" in done._repr_html_()


def test_a_suite_can_be_called_by_the_name_of_its_package() -> None:
    import trueload.suites.plan  # noqa: F401

    with pytest.raises(tl.UserError, match="no suite is called"):
        tl.suite("no-such-suite")
    assert set(tl.__all__) <= set(dir(tl))
    with pytest.raises(AttributeError, match="nonsense"):
        tl.nonsense  # noqa: B018
