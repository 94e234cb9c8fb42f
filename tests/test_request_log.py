"""``--request-log``: a row for each request of the window, which agrees with the result."""

from __future__ import annotations

import csv
import os
import socket
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trueload
from harness import Server, Trueload, start_server
from test_fleet_live import hosts, spec_of
from test_http_cli import OneAnswer
from trueload.commands.request_log import write_request_log
from trueload.record.schema import RequestLogCounts
from trueload.trial.request_log import TIMES, RequestLog
from trueload.trial.run import run_trial
from trueload.trial.spec import TrialSpec

pytestmark = pytest.mark.engine

COLUMNS = ["connection", "target", "status", "class", *TIMES, "one_in"]


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def logged(
    trueload: Trueload, folder: Path, url: str | None, *flags: str | Path
) -> tuple[Any, list[dict[str, str]]]:
    """The record of a run, and the rows of its log."""
    path = folder / "log.csv"
    named = () if url is None else (url,)
    done = trueload.run("http", *named, "--json", "-", "--request-log", path, *flags)
    assert done.code in (0, 4), done  # 4: a busy machine, or a server that fails
    record, rows = done.json(), read(path)
    check(record, rows)
    return record, rows


def check(record: Any, rows: Sequence[dict[str, str]]) -> None:
    """The rows agree with the counts and times of the record."""
    counts = record["counts"]
    classes = Counter(row["class"] for row in rows)
    expected = {"ok": counts["ok"], "cancelled": counts["cancelled"], **counts["failed"]}
    assert classes == Counter(expected) + Counter(), "each request has one row"
    assert len(rows) == counts["issued"]
    found = {"rows": len(rows), "requests": len(rows), "one_in": 1}
    assert record["request_log"] == found
    statuses = Counter(row["status"] for row in rows if row["status"])
    assert statuses == counts["statuses"]
    for row in rows:
        known = [int(row[name]) for name in TIMES if row[name]]
        assert known == sorted(known), row
        assert row["class"] != "ok" or len(known) == 4, row
        assert bool(row["connection"]) is bool(row["sent_at_ns"])
        if row["connection"]:
            assert 1 <= int(row["connection"]) <= record["plan"]["generate"]["connections"]
        assert row["one_in"] == "1"
    good = [row for row in rows if row["class"] == "ok"]
    for name, since in (("latency_ns", "due_at_ns"), ("service_ns", "sent_at_ns")):
        times = [int(row["end_at_ns"]) - int(row[since]) for row in good]
        if times:  # times of the record have three digits
            assert sum(times) / len(times) == pytest.approx(record[name]["mean"], rel=0.002)
            assert max(times) == pytest.approx(record[name]["max"], rel=0.002)
    due = [int(row["due_at_ns"]) for row in rows]
    assert due == sorted(due)


@pytest.mark.parametrize(
    "flags",
    [
        ("--requests", "1003", "-c", "4"),
        ("--requests", "1003", "-c", "4", "--threads", "2", "--warmup", "100ms"),
        ("--requests", "1000", "-c", "4", "--pipeline", "8", "--driver", "epoll"),
        ("--requests", "300", "-c", "4", "--http", "2", "--streams", "5"),
        ("--requests", "100", "-c", "4", "--close"),
        ("-d", "300ms", "--rate", "1k/s", "--arrivals", "poisson", "-c", "4"),
    ],
    ids=["count", "threads", "pipeline", "http 2", "close", "rate"],
)
def test_each_request_of_the_window_has_a_row(
    trueload: Trueload, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    server = start_server(trueload, "--http", "2") if "--http" in flags else start_server(trueload)
    _, rows = logged(trueload, tmp_path, server.url, *flags)
    assert list(rows[0]) == COLUMNS
    assert {row["connection"] for row in rows} == {"1", "2", "3", "4"}
    assert {row["target"] for row in rows} == {""}


@pytest.mark.parametrize("http", ["1.1", "2"])
def test_a_redirected_request_has_one_row(trueload: Trueload, tmp_path: Path, http: str) -> None:
    server = start_server(trueload, "--http", "2")
    flags = ("--requests", "40", "-c", "4", "--follow", "3", "--http", http)
    record, rows = logged(trueload, tmp_path, f"{server.url}/redirect/3", *flags)
    assert (len(rows), record["redirects"]["followed"]) == (40, 120)


def test_failures_have_their_classes(trueload: Trueload, tmp_path: Path) -> None:
    faults = ("--error-share", "0.1", "--reset-share", "0.1", "--cut-share", "0.1")
    server = start_server(trueload, *faults)
    record, rows = logged(trueload, tmp_path, server.url, "--requests", "2000", "-c", "8")
    assert len(record["counts"]["failed"]) > 1
    for row in rows:
        assert row["first_byte_at_ns"] or row["class"] in ("reset", "empty"), row


def test_an_answer_that_more_bytes_follow_is_a_failure_in_its_row(
    trueload: Trueload, tmp_path: Path
) -> None:
    server = OneAnswer(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok, and more")
    url = f"http://127.0.0.1:{server.port}/"
    record, _ = logged(trueload, tmp_path, url, "--requests", "50", "-c", "4")
    assert record["counts"]["failed"]


def test_requests_that_could_not_be_sent_have_rows_without_a_send(
    trueload: Trueload, tmp_path: Path
) -> None:
    listener = socket.create_server(("127.0.0.1", 0))

    def answer_some() -> None:
        with listener:
            for _ in range(10):
                with listener.accept()[0] as connection:
                    connection.recv(1_000)
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    threading.Thread(target=answer_some, daemon=True).start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    record, rows = logged(trueload, tmp_path, url, "--requests", "20", "-c", "1", "--close")
    unsent = [row for row in rows if row["sent_at_ns"] == ""]
    assert len(unsent) == record["counts"]["failed"]["connect.refused"] > 0
    assert all(row["first_byte_at_ns"] == "" and row["end_at_ns"] for row in unsent)


def test_targets_and_steps_have_their_names(trueload: Trueload, tmp_path: Path) -> None:
    server = start_server(trueload)
    targets = tmp_path / "targets.jsonl"
    targets.write_text('{"url": "/", "weight": 3}\n{"url": "/perf", "name": "=perf"}\n')
    record, rows = logged(
        trueload, tmp_path, server.url, "--targets", targets, "--requests", "100", "-c", "2"
    )
    counted = {each["name"] or each["url"]: each["counts"]["ok"] for each in record["targets"]}
    counted["'=perf"] = counted.pop("=perf")  # no formula of a spreadsheet
    assert Counter(row["target"] for row in rows) == counted
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(
        '[[step]]\nname = "once"\nrequest = { url = "/" }\n\n'
        '[[step]]\nname = "twice"\nrequest = { url = "/perf" }\nrepeat = 2\n'
    )
    _, rows = logged(
        trueload, tmp_path, server.url, "--scenario", scenario, "--requests", "10", "-c", "2"
    )
    assert Counter(row["target"] for row in rows) == {"once": 10, "twice": 20}


def test_targets_of_several_origins_have_their_own_rows(trueload: Trueload, tmp_path: Path) -> None:
    first, second = start_server(trueload), start_server(trueload)
    targets = tmp_path / "targets.jsonl"
    lines = [f'{{"url": "{url}"}}\n' for url in (first.url, second.url, f"{first.url}/perf")]
    targets.write_text("".join(lines))
    record, rows = logged(trueload, tmp_path, None, "--targets", targets, "--requests", "99")
    counted = {each["url"]: each["counts"]["ok"] for each in record["targets"]}
    assert Counter(row["target"] for row in rows) == counted


def test_the_result_says_how_many_rows_there_are(trueload: Trueload, tmp_path: Path) -> None:
    server, path = start_server(trueload), tmp_path / "log.parquet"
    done = trueload.run("http", server.url, "--requests", "500", "--request-log", path)
    assert "request log  all 500 requests" in done.out
    pyarrow = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.read_table(path)
    assert (table.column_names, table.num_rows) == (COLUMNS, 500)
    assert set(table["class"].to_pylist()) == {"ok"}
    latencies = [
        end - due
        for end, due in zip(
            table["end_at_ns"].to_pylist(), table["due_at_ns"].to_pylist(), strict=True
        )
    ]
    shown = trueload.run("runs", "show", "last", "--json").json()["rows"][0]["record"]
    assert sum(latencies) / 500 == pytest.approx(shown["latency_ns"]["mean"], rel=0.002)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--request-log", "x.txt"), "its ending is not known"),
        (("--request-log", "-"), "its ending is not known"),
        (("--request-log", "/nowhere/x.csv"), "cannot be written"),
        (("--request-log", "x.csv", "--repeat", "2"), "--request-log and --repeat cannot be used"),
        (("--request-log", "x.csv", "--limit", "p99<1s"), "--request-log and --limit cannot be"),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_is_sent(
    trueload: Trueload, tmp_path: Path, flags: tuple[str, ...], says: str
) -> None:
    done = trueload.run("http", "http://127.0.0.1:1/", *flags, cwd=tmp_path)
    error, hint, *more = done.err.splitlines()
    assert (done.code, more, os.listdir(tmp_path)) == (2, [], []), done
    assert says in error
    assert hint.startswith("hint: ")


def test_a_log_that_is_lost_is_an_error_after_the_result(
    trueload: Trueload, server: Server, tmp_path: Path
) -> None:
    full = tmp_path / "full.csv"
    full.symlink_to("/dev/full")
    done = trueload.run("http", server.url, "--requests", "20", "--request-log", full)
    assert done.code in (74, 4), done  # 4: the machine of the tests is busy
    assert "20 ok" in done.out
    assert f"{full} could not be written" in done.err


def test_a_function_writes_it_too(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    trueload.http(server.url, requests=30, connections=2, request_log=path, no_save=True)
    assert len(read(path)) == 30


@pytest.fixture
def spec(server: Server) -> TrialSpec:
    return replace(spec_of(server), request_log=RequestLog())


def test_the_rows_of_several_hosts_have_their_names(spec: TrialSpec, tmp_path: Path) -> None:
    spec, path = replace(spec, hosts=hosts(3)), tmp_path / "log.csv"
    record = run_trial(spec)
    assert write_request_log(path, spec.request_log, spec.traffic, record) is None
    rows = read(path)
    assert list(rows[0]) == ["host", *COLUMNS]
    ok = {host.place: host.counts.ok for host in record.hosts if host.counts is not None}
    assert Counter(row["host"] for row in rows) == ok
    of_host = {(row["connection"], row["host"]) for row in rows}
    assert sorted(int(connection) for connection, _ in of_host) == list(range(1, 12))


@pytest.mark.parametrize("count", [0, 3])
def test_too_many_requests_leave_a_sample_that_says_so(
    spec: TrialSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr("trueload.trial.plan.ROWS_MOST", 120)
    spec, path = replace(spec, hosts=hosts(count)), tmp_path / "log.csv"
    record = run_trial(spec)
    assert write_request_log(path, spec.request_log, spec.traffic, record) is None
    rows, found = read(path), record.request_log
    assert found is not None
    one_in = found.one_in
    assert one_in > 1
    assert one_in & (one_in - 1) == 0
    assert found == RequestLogCounts(rows=len(rows), requests=1_000, one_in=one_in)
    assert len(rows) <= 120
    assert {row["one_in"] for row in rows} == {str(one_in)}
