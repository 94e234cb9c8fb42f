"""``trueload http``, ``serve`` and ``runs`` as a user runs them: the real command and engine."""

from __future__ import annotations

import base64
import contextlib
import csv
import http.client
import io
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import Server, Trueload, kill_group, start_server
from trueload import verdict
from waiting import wait_until

RECORD_FIELDS = {
    *("schema", "id", "started_at", "plan", "partial", "verdict", "checks", "counts", "warmup"),
    *("throughput", "latency_ns", "service_ns", "connection_service_ns", "connect_ns"),
    *("first_byte_ns", "histograms"),
    *("connections", "series", "generator", "server", "hosts", "environment", "client_ns"),
}
DISTRIBUTION = {"min", "mean", "p25", "p50", "p75", "p90", "p95", "p99", "p999", "max", "stdev"}
CHECKS = list(verdict.CHECKS)


class OneAnswer:
    """A server that answers each request with the same bytes, and keeps what it was sent."""

    def __init__(
        self, answer: bytes, family: int = socket.AF_INET, host: str = "127.0.0.1"
    ) -> None:
        self._answer = answer
        self._socket = socket.create_server((host, 0), family=family)
        self.port: int = self._socket.getsockname()[1]
        self.received = b""
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            while data := connection.recv(65_536):
                self.received += data
                if self._answer:
                    connection.sendall(self._answer)

    def close(self) -> None:
        self._socket.close()


OK_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture
def one_answer() -> Iterator[OneAnswer]:
    server = OneAnswer(OK_ANSWER)
    yield server
    server.close()


@pytest.fixture
def silent() -> Iterator[OneAnswer]:
    server = OneAnswer(b"")
    yield server
    server.close()


def measure(trueload: Trueload, url: str, *flags: str, code: int = 0) -> Any:
    done = trueload.run("http", url, "--json", "-", *flags)
    if code == 0:
        return done.measured()
    assert done.code == code, done
    return done.json()


def test_a_run_by_count_is_one_record_with_every_field(trueload: Trueload, server: Server) -> None:
    record = measure(trueload, server.url, "--requests", "1003", "-c", "4")
    assert set(record) >= RECORD_FIELDS
    for name in ("latency_ns", "service_ns", "connect_ns", "first_byte_ns"):
        assert set(record[name]) >= DISTRIBUTION, name
    assert record["counts"]["scheduled"] == record["counts"]["ok"] == 1003
    assert record["counts"]["statuses"] == {"200": 1003}
    assert record["counts"]["failed"] == {}
    assert [check["name"] for check in record["checks"]] == CHECKS
    assert (record["warmup"]["wall_s"], record["warmup"]["reconnects"]) == (0.0, 0)
    assert record["server"]["source"] == "found"
    assert record["connections"]["least_ok"] == 250
    assert record["connections"]["most_ok"] == 251
    send = record["client_ns"]["send"]
    assert send["count"] == 1003
    assert 0 < send["p50"] <= send["p99"] <= send["max"]
    assert record["generator"]["send_lag_p99_ns"] == send["p99"]
    assert len(record["hosts"]) == 1
    assert record["hosts"][0]["environment"] == record["environment"]
    assert record["environment"]["versions"].keys() >= {"trueload", "engine", "python"}
    assert record["plan"]["generate"]["request"]["headers"] == [
        ["Host", f"127.0.0.1:{server.port}"]
    ]


def test_a_run_by_duration_counts_the_window_and_leaves_the_warm_up_out(
    trueload: Trueload, server: Server
) -> None:
    record = measure(trueload, server.url, "-d", "500ms", "--warmup", "200ms", "-c", "8")
    assert record["window"]["window_ns"] == pytest.approx(500_000_000, rel=0.05)
    assert record["warmup"]["counts"]["ok"] > 0
    window_s = record["window"]["window_ns"] / 1e9
    # An edge of the window cuts at most one answer per connection.
    per_s = pytest.approx(record["counts"]["ok"] / window_s, abs=8 / window_s)
    assert record["throughput"]["ok_per_s"] == per_s
    assert record["latency_ns"]["count"] == record["counts"]["ok"]
    assert sum(second["ok"] for second in record["series"]) == record["counts"]["ok"]


def test_a_result_for_people_says_what_was_measured(trueload: Trueload, server: Server) -> None:
    done = trueload.run("http", server.url, "--requests", "500", "-c", "2")
    assert done.code in (0, 4), done  # 4 on a machine with much else to do
    assert done.err == ""
    for word in (
        "requests/s",
        "p50",
        "p99.9",
        "500 ok",
        "each with status 200",
        "verdict",
        "saved",
        "server",
    ):
        assert word in done.out, word
    assert "\x1b" not in done.out


def test_json_on_stdout_is_alone_there(trueload: Trueload, server: Server) -> None:
    done = trueload.run("http", server.url, "--requests", "50", "-c", "2", "--json", "-")
    assert done.json()["counts"]["ok"] == 50
    assert len(done.out.splitlines()) == 1
    assert "50 ok" in done.err


def test_json_in_a_file_and_text_on_stdout(
    trueload: Trueload, server: Server, tmp_path: Path
) -> None:
    file = tmp_path / "result.json"
    done = trueload.run("http", server.url, "--requests", "50", "-c", "2", "--json", file)
    assert "50 ok" in done.out
    assert json.loads(file.read_text())["counts"]["ok"] == 50


def test_several_trials_are_one_object(trueload: Trueload, server: Server) -> None:
    flags = ("--requests", "50", "-c", "2", "--repeat", "3")
    result = measure(trueload, server.url, *flags)
    assert len(result["trials"]) == 3
    assert {trial["counts"]["ok"] for trial in result["trials"]} == {50}
    assert [check["name"] for check in result["checks"]] == CHECKS
    assert len({trial["id"] for trial in result["trials"]}) == 3
    shown = trueload.run("http", server.url, *flags)
    assert "trial 3" in shown.out
    assert "range" in shown.out
    listed = trueload.run("runs", "list").out.splitlines()[1:]
    assert [line.split()[2] for line in listed] == ["3", "3"]


def test_statuses_and_bodies_are_held_to_what_is_expected(
    trueload: Trueload, server: Server
) -> None:
    few = ("--requests", "20", "-c", "2")
    record = measure(trueload, f"{server.url}/nowhere", *few, code=4)
    assert record["counts"]["failed"] == {"status": 20}
    assert record["counts"]["statuses"] == {"404": 20}
    assert record["latency_ns"]["p50"] is None
    measure(trueload, f"{server.url}/nowhere", *few, "--expect-status", "404")
    measure(trueload, server.url, *few, "--expect-body", "Hello, World!")
    record = measure(trueload, server.url, *few, "--expect-body", "Hello, you!", code=4)
    assert record["counts"]["failed"] == {"mismatch": 20}


@pytest.mark.parametrize(
    "flags",
    [("--close",), ("--pipeline", "8"), ("-X", "HEAD"), ("--threads", "2"), ("--cpus", "0")],
    ids=" ".join,
)
def test_ways_to_send(trueload: Trueload, server: Server, flags: tuple[str, ...]) -> None:
    record = measure(trueload, server.url, "--requests", "200", "-c", "4", *flags)
    assert record["counts"]["ok"] == 200


def test_the_request_is_what_the_flags_say(
    trueload: Trueload, one_answer: OneAnswer, tmp_path: Path
) -> None:
    body = tmp_path / "body"
    body.write_bytes(b"\x00\r\n\xff")
    url = f"http://me:secret@localhost:{one_answer.port}/a?b=%20#c"
    flags = ("-X", "PUT", "-H", "X-One:  1", "--body-file", str(body), "--close")
    record = measure(trueload, url, "--requests", "1", "-c", "1", *flags)
    credentials = base64.b64encode(b"me:secret").decode()
    assert one_answer.received == (
        b"PUT /a?b=%20 HTTP/1.1\r\n"
        + f"Host: localhost:{one_answer.port}\r\n".encode()
        + b"X-One: 1\r\n"
        + f"Authorization: Basic {credentials}\r\n".encode()
        + b"Content-Length: 4\r\nConnection: close\r\n\r\n\x00\r\n\xff"
    )
    for text in (json.dumps(record), trueload.run("runs", "show", "last", "--json").out):
        assert "secret" not in text
        assert credentials not in text
        assert "<redacted>" in text


def test_an_ipv6_host_stands_in_brackets(trueload: Trueload) -> None:
    server = OneAnswer(OK_ANSWER, socket.AF_INET6, "::1")
    record = measure(trueload, f"http://[::1]:{server.port}/", "--requests", "1", "-c", "1")
    assert f"Host: [::1]:{server.port}\r\n".encode() in server.received
    assert record["connections"]["family"] == "ipv6"
    server.close()


def test_a_name_goes_on_to_the_address_that_answers(
    trueload: Trueload, one_answer: OneAnswer
) -> None:
    record = measure(trueload, f"http://localhost:{one_answer.port}/", "--requests", "4", "-c", "2")
    assert record["counts"]["ok"] == 4
    assert record["connections"]["family"] == "ipv4"


@pytest.mark.parametrize(
    ("condition", "code"),
    [("p99>10s", 0), ("p99>1ns", 1), ("throughput<1/s", 0), ("throughput<900M/s", 1)],
)
def test_a_threshold_that_is_crossed_ends_with_1(
    trueload: Trueload, server: Server, condition: str, code: int
) -> None:
    done = trueload.run("http", server.url, "--requests", "50", "-c", "2", "--fail-on", condition)
    assert done.code in (code, 4), done  # 4 on a machine with much else to do
    assert bool(re.search(f"threshold crossed: .*{condition}", done.err)) is (done.code == 1)


def test_a_gate_that_good_values_would_cross_is_noted(trueload: Trueload, server: Server) -> None:
    command = ("http", server.url, "--requests", "50", "-c", "2", "--no-save")
    gate = ("--fail-on", "p99<10s")
    note = "note: --fail-on 'p99<10s' fails when p99 is below 10s; to keep it below,"
    assert trueload.run(*command, *gate).err.startswith(f"{note} write 'p99>10s'\n")
    for quiet in (("--json", "-"), ("--quiet",)):
        assert "note:" not in trueload.run(*command, *gate, *quiet).err, quiet


def test_a_threshold_that_is_certain_comes_before_an_invalid_verdict(
    trueload: Trueload, server: Server
) -> None:
    flags = (f"{server.url}/nowhere", "--requests", "20", "-c", "2", "--fail-on", "errors>1%")
    done = trueload.run("http", *flags)
    assert done.code in (1, 4), done  # 4 on a machine with much else to do
    assert "100 %, and --fail-on says errors>1%" in done.err
    assert trueload.run("http", *flags, "--strict").code == 4


def test_a_refused_connection_measures_nothing(trueload: Trueload, refusing_port: int) -> None:
    url = f"http://127.0.0.1:{refusing_port}/"
    done = trueload.run("http", url, "--requests", "50", "-c", "4", "--timeout", "1s")
    assert done.code == 3, done
    assert "connect.refused 50" in done.out
    assert done.err.splitlines() == [
        "error: no connection became usable: connect.refused",
        f"hint: is a server listening on 127.0.0.1:{refusing_port}?",
    ]


def test_a_name_that_does_not_resolve_is_of_class_dns(trueload: Trueload) -> None:
    done = trueload.run("http", "http://nowhere.invalid/", "--requests", "50", "--json", "-")
    assert done.code == 3, done
    assert done.json()["counts"]["failed"] == {"dns": 50}
    assert "'nowhere.invalid' does not resolve" in done.err


def test_a_server_that_never_answers_ends_in_time(trueload: Trueload, silent: OneAnswer) -> None:
    url = f"http://127.0.0.1:{silent.port}/"
    flags = ("-d", "200ms", "--warmup", "0", "-c", "2", "--timeout", "200ms")
    record = measure(trueload, url, *flags, code=4)
    assert set(record["counts"]["failed"]) == {"timeout.first_byte"}


MISTAKES = [
    (("http",), "there is no URL"),
    (("http", "http:/127.0.0.1:80"), "has no scheme"),
    (("http", "http://h:65536/"), "port '65536'"),
    (("http", "ftp://h/"), "cannot be loaded"),
    (("http", "http://h/", "--frobnicate"), "no option --frobnicate"),
    (("http", "http://h/", "-t", "5"), "no option -t"),
    (("http", "http://h/", "-m", "5"), "'5' is not a method"),
    (("http", "http://h/", "-c", "0"), "'0' is not from 1 to"),
    (("http", "http://h/", "-c", "many"), "'many' is not a count"),
    (("http", "http://h/", "-d", "10x"), "unit 'x' is not known"),
    (("http", "http://h/", "-d", "0s"), "must be greater than 0"),
    (("http", "http://h/", "-d", "1s", "--requests", "1"), "cannot be used together"),
    (("http", "http://h/", "--close", "--pipeline", "2"), "cannot be used together"),
    (("http", "http://h/", "--body", "a", "--body-file", "b"), "cannot be used together"),
    (("http", "http://h/", "--body-file", "/nowhere"), "cannot be read"),
    (("http", "http://h/", "-H", "A: b\r\nC: d"), "control character"),
    (("http", "http://h/", "-X", "G\r\nT"), "is not a method"),
    (("http", "http://h/\r\nX: y",), "U+000D"),
    (("http", "http://h/", "--fail-on", "p99"), "at its end: one of > >= < <= is missing"),
    (("http", "http://h/", "--threads", "2", "-c", "1"), "2 threads cannot share"),
    (("http", "http://h/", "--cpus", "9999"), "no CPU 9999"),
    (("http", "http://h/", "--cpus", "1-0"), "runs backwards"),
    (("http", "http://h/", "--local-address", "x"), "not an IP address"),
    (("http", "http://h/", "--local-address", "192.0.2.1"), "cannot be used"),
    (("http", "http://127.0.0.1/", "--local-address", "::1"), "::1 is IPv6, and 127.0.0.1:80 is"),
    (("http", "http://h/", "--user", "name"), "not a name, a colon and a password"),
    (("http", "http://h/", "--limit", "p101<10ms"), "'p101' is no metric"),
    (("http", "http://h/", "--expect-status", "99"), "not a final status"),
    (("http", "http://h/", "--json", "/nowhere/x"), "cannot be written"),
    (("serve", "http", "--json", "/nowhere/x"), "cannot be written"),
    (("ws", "ws://h/", "--subprotocol", "a b"), "--subprotocol 'a b' is not a name"),
    (("subjects", "list", ""), "'' selects no subject"),
    (("serve", "http", "--listen", "8080"), "no IP address"),
    (("serve", "http", "--listen", "127.0.0.1:99999"), "no port"),
    (("serve", "http", "--listen", "::1:80"), "needs brackets"),
    (("serve", "http", "--listen", "127.0.0.1:x"), "no port"),
    (("runs", "show", "nope"), "no run 'nope'"),
    (("runs", "show", "last"), "no run 'last'"),
    (("runs", "export", "last", "--format", "xml"), "xml"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "complaint"), MISTAKES, ids=lambda value: str(value)[:60])
def test_a_mistake_is_told_in_two_lines_and_nothing_is_sent(
    trueload: Trueload, words: tuple[str, ...], complaint: str
) -> None:
    done = trueload.run(*words)
    assert done.code == 2, done
    assert done.out == ""
    lines = done.err.splitlines()
    assert len(lines) == 2, done.err
    assert lines[0].startswith("error: ")
    assert complaint in lines[0]
    assert lines[1].startswith("hint: ")


def test_nothing_is_left_in_the_store_if_it_is_not_to_be(
    trueload: Trueload, server: Server
) -> None:
    trueload.run("http", server.url, "--requests", "5", "-c", "1", "--no-save")
    assert not trueload.store.exists()


def test_a_run_is_listed_shown_and_exported(
    trueload: Trueload, server: Server, tmp_path: Path
) -> None:
    record = measure(trueload, server.url, "--requests", "50", "-c", "2")
    listed = trueload.run("runs", "list", "--json").json()
    assert [run["row_count"] for run in listed] == [1]
    run_id = listed[0]["id"]
    assert run_id in trueload.run("runs", "list").out

    shown = trueload.run("runs", "show", run_id, "--why")
    for name in CHECKS:
        assert name in shown.out
    whole = trueload.run("runs", "show", run_id[:-1], "--json").json()
    assert whole["rows"][0]["record"] == record

    lines = trueload.run("runs", "export", "last", "--format", "jsonl").out.splitlines()
    assert json.loads(lines[0])["record"] == record
    file = tmp_path / "run.csv"
    assert trueload.run("runs", "export", "last", "--format", "csv", "-o", file).out == ""
    (row,) = csv.DictReader(io.StringIO(file.read_text()))
    assert row["ok"] == "50"
    assert row["verdict"] == record["verdict"]
    markdown = trueload.run("runs", "export", "last", "--format", "markdown").out
    assert "| 50 |" in markdown


def start_long(trueload: Trueload, server: OneAnswer, *flags: str) -> subprocess.Popen[str]:
    """Start a run of a minute; its first request has arrived when this returns."""
    url = f"http://127.0.0.1:{server.port}/"
    process = trueload.start("http", url, "-d", "60s", "-c", "2", "--warmup", "0", *flags)
    wait_until(lambda: server.received, "something is sent")
    return process


def wait_for_load(url: str) -> None:
    """Wait until the server at the URL has connections from others."""
    host, _, port = url.removeprefix("http://").partition("/")[0].partition(":")
    wanted = f"{int(port):04X}"

    def has_two() -> bool:
        lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
        found = sum(f[1].endswith(f":{wanted}") and f[3] == "01" for f in map(str.split, lines))
        return found >= 2

    wait_until(has_two, f"somebody is connected to {host}:{port}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_is_saved_and_marked_partial(
    trueload: Trueload, one_answer: OneAnswer, number: signal.Signals
) -> None:
    process = start_long(trueload, one_answer, "--json", "-")
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, (out, err)
    assert json.loads(out)["partial"] is True
    (run,) = trueload.run("runs", "list", "--json").json()
    assert run["state"] == "interrupted"
    assert run["row_count"] == 1
    assert engines_of(trueload) == set()


def engines_of(trueload: Trueload) -> set[int]:
    """The parents of the engines that were started with this test's store."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            environment = (folder / "environ").read_bytes()
            program = os.readlink(folder / "exe")
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if str(trueload.store).encode() in environment and "trueload-engine" in program:
                found.add(parent)
    return found


def test_a_second_interrupt_ends_at_once_and_leaves_no_child(
    trueload: Trueload, silent: OneAnswer
) -> None:
    process = start_long(trueload, silent, "--timeout", "60s")
    # Two different signals, because the kernel merges equal ones that are pending.
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert engines_of(trueload) == set()


def test_kill_9_of_the_front_leaves_no_engine(trueload: Trueload) -> None:
    server = start_server(trueload)
    process = trueload.start("http", server.url, "-d", "60s", "-c", "2")
    wait_for_load(server.url)
    process.kill()
    process.communicate(timeout=30)
    wait_until(lambda: engines_of(trueload) == {server.process.pid}, "the engine has ended")


def test_a_killed_engine_is_told_and_invalid(trueload: Trueload, one_answer: OneAnswer) -> None:
    process = start_long(trueload, one_answer)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(children[0]), signal.SIGKILL)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 4, (out, err)
    assert "the engine died: signal 9" in out
    assert "invalid" in out


def test_a_reader_that_goes_away_is_no_error(trueload: Trueload, server: Server) -> None:
    trueload.run("http", server.url, "--requests", "50", "-c", "2")
    command = [sys.executable, "-m", "trueload", "runs", "show", "last", "--json"]
    process = subprocess.Popen(
        command, env=trueload.env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.wait(timeout=30)
    process.stderr.close()


def test_a_terminal_gets_a_panel_and_a_pipe_gets_none(trueload: Trueload, server: Server) -> None:
    main, side = pty.openpty()
    flags = ("-d", "600ms", "--warmup", "0", "-c", "2")
    process = trueload.start("http", server.url, *flags, stderr=side)
    os.close(side)
    drawn = b""
    with contextlib.suppress(OSError):
        while data := os.read(main, 65_536):
            drawn += data
    os.close(main)
    out, _ = process.communicate(timeout=30)
    assert process.returncode in (0, 4), out  # 4 on a machine with much else to do
    assert b"throughput" in drawn
    assert b"trueload http" in drawn
    assert "\x1b" not in out


def test_the_reference_server_says_where_it_listens_and_what_it_saw(trueload: Trueload) -> None:
    process = trueload.start("serve", "http", "--listen", "127.0.0.1:0", "--json", "-")
    assert process.stderr is not None
    line = process.stderr.readline()
    match = re.fullmatch(r"listening on http://127\.0\.0\.1:(\d+)/\n", line)
    assert match, line
    record = measure(trueload, line.split()[-1], "--requests", "100", "-c", "4")
    assert record["counts"]["ok"] == 100
    client = http.client.HTTPConnection("127.0.0.1", int(match[1]), timeout=10)
    client.request("GET", "/perf")
    assert len(client.getresponse().read()) == 84
    client.close()
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    served = json.loads(out)
    assert served["requests"] == served["responses"] == 101
    assert served["accepted"] == 5
    assert "101 responses to 101 requests" in err


def test_a_port_that_is_taken_is_told(trueload: Trueload, server: Server) -> None:
    done = trueload.run("serve", "http", "--listen", f"127.0.0.1:{server.port}")
    assert done.code == 2, done
    assert len(done.err.splitlines()) == 2, done.err
    assert f"cannot listen on 127.0.0.1:{server.port}" in done.err


def test_the_engine_keeps_off_the_cpus_of_a_pinned_server(trueload: Trueload) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("it takes two CPUs")
    cpu = min(os.sched_getaffinity(0))
    server = start_server(trueload, "--cpus", str(cpu))
    record = measure(trueload, server.url, "-d", "300ms", "--warmup", "0", "-c", "4")
    assert record["server"]["allowed_cpus"] == [cpu]
    assert cpu not in record["generator"]["allowed_cpus"]
    apart = next(check for check in record["checks"] if check["name"] == "same-host")
    assert apart["status"] == "pass"
    assert record["cpu_distance"]["cpus"] == [min(record["generator"]["allowed_cpus"]), cpu]
    speeds = {each["cpu"]: each for each in record["cpu_speeds"]}
    assert set(speeds) == {cpu}
    # There is one look every 50 ms.
    assert len(speeds[cpu]["work_ns"]) <= 7
    assert any(speeds[cpu]["work_ns"])
    kill_group(server.process)


def measure_at_a_rate(trueload: Trueload, url: str, *flags: str) -> Any:
    """Measure at a rate; a busy machine may send late, which makes the record invalid."""
    done = trueload.run("http", url, "--json", "-", *flags)
    assert done.code in (0, 4), done
    return done.json()


def test_a_rate_is_sent_by_schedule_and_both_times_are_kept(
    trueload: Trueload, server: Server
) -> None:
    flags = ("--rate", "1k/s", "--arrivals", "poisson", "--seed", "7", "--requests", "200")
    record = measure_at_a_rate(trueload, server.url, *flags, "-c", "4")
    load = record["plan"]["window"]["load"]
    assert (load["kind"], load["arrivals"], load["seed"]) == ("open", "poisson", 7)
    assert load["stages"][0]["from"] == load["stages"][0]["to"] == 1_000
    assert record["counts"]["ok"] == record["counts"]["scheduled"] == 200
    assert record["latency_ns"]["mean"] >= record["service_ns"]["mean"]
    assert record["generator"]["send_lag_p99_ns"] is not None
    assert record["generator"]["lateness"]["waited_ns"] >= 0


def test_stages_change_the_load(trueload: Trueload, server: Server) -> None:
    record = measure_at_a_rate(
        trueload, server.url, "--stages", "200ms@100,400ms@100..1k", "--warmup", "0", "-c", "4"
    )
    # 100/s for 0.2 s, then 550/s on average for 0.4 s.
    assert record["counts"]["scheduled"] == 240
    assert record["plan"]["window"]["stop"] == {"kind": "duration", "ns": 600_000_000}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--stages", "1s@5,2s"), "at character 6"),
        (("--stages", "1s@"), "at its end"),
        (("--rate", "x"), "'x' is not a rate"),
        (("--rate", "1k", "--stages", "1s@1"), "cannot be used together"),
        (("--stages", "1s@1", "-d", "1s"), "cannot be used together"),
        (("--arrivals", "poisson"), "no rate is given"),
        (
            ("--rate", "1k", "--arrivals", "possion"),
            "invalid value for '--arrivals': 'possion' is not one of 'constant', 'poisson'",
        ),
    ],
)
def test_a_mistake_in_a_load_is_one_line_and_a_hint(
    trueload: Trueload, flags: tuple[str, ...], message: str
) -> None:
    done = trueload.run("http", "http://127.0.0.1:9/", *flags)
    assert done.code == 2
    assert message in done.err
    assert [line.partition(":")[0] for line in done.err.splitlines()] == ["error", "hint"]
