"""Metrics of real runs: scraped by a Prometheus parser, received by an OpenTelemetry stand-in."""

from __future__ import annotations

import contextlib
import http.client
import json
import math
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from client_world import add_client, clients_command
from harness import Server, Trueload, start_server
from otlp_collector import attributes, otlp_collector
from prometheus_client.parser import text_string_to_metric_families
from subject_world import World

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]
SCRAPES_MAX = 20_000  # at a hundred a second at most: far beyond any test's time limit


def printed_line(process: subprocess.Popen[str]) -> str:
    """Return the URL of the metrics from a command's output."""
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(r"metrics at (http://\S+)", line):
            return found[1]
    raise AssertionError("it did not say where the metrics are")


def scrape(url: str) -> Samples:
    """Scrape once: every sample by name and labels, parsed strictly."""
    with urllib.request.urlopen(url, timeout=30) as answer:
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        text = answer.read().decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def until(url: str, wanted: Callable[[Samples], bool]) -> Samples:
    """Return the first scrape that meets the condition."""
    for _ in range(SCRAPES_MAX):
        found = scrape(url)
        if wanted(found):
            return found
    raise AssertionError("it never came to that")


def last_of(url: str) -> Samples:
    """Return the last scrape before the server stops answering."""
    found: Samples = {}
    with contextlib.suppress(OSError, http.client.HTTPException):
        while True:
            found = scrape(url)
    return found


def total(found: Samples, name: str, **labels: str) -> float:
    """The sum of the samples with that name and these labels."""
    return sum(
        value
        for (one, own), value in found.items()
        if one == name and labels.items() <= dict(own).items()
    )


def has_verdict(found: Samples) -> bool:
    return total(found, "trueload_verdict") > 0


def has_verdict_of(labels: dict[str, str]) -> Callable[[Samples], bool]:
    return lambda found: total(found, "trueload_verdict", **labels) > 0


def test_a_run_is_scraped_while_it_goes_on_and_its_last_scrape_agrees_with_the_record(
    trueload: Trueload, server: Server, tmp_path: Path
) -> None:
    out = tmp_path / "result.json"
    process = trueload.start(
        *("http", server.url.replace("//", "//name:secret@"), "-c", "4", "--rate", "2k/s"),
        *("-d", "2s", "--warmup", "300ms", "--prometheus", "0", "--prometheus-linger", "60s"),
        *("--json", out),
    )
    url = printed_line(process)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/metrics", url)
    ok = "trueload_requests_ok_total"
    first = until(url, lambda found: total(found, ok, phase="window") > 0)
    assert total(first, "trueload_phase", phase="window") == 1
    assert total(first, "trueload_connections_open") == 4
    assert total(first, "trueload_connections_requested") == 4
    assert total(first, ok, phase="warm-up") > 0
    second = until(
        url,
        lambda found: total(found, ok, phase="window") > total(first, ok, phase="window"),
    )
    last = last_of(url)
    assert process.wait(timeout=60) in (0, 4)  # 4 on a machine with much else to do
    record = json.loads(out.read_text())
    for earlier, later in ((first, second), (second, last)):
        counters_only_grow(earlier, later)
    for found in (first, second, last):
        buckets_are_cumulative(found)
    agrees(last, record)
    assert "secret" not in str(last)


def counters_only_grow(earlier: Samples, later: Samples) -> None:
    for key, value in earlier.items():
        if key[0].endswith(("_total", "_bucket", "_count", "_sum")):
            assert later[key] >= value, key


def buckets_are_cumulative(found: Samples) -> None:
    for name in ("trueload_latency_seconds", "trueload_service_seconds"):
        for phase in ("warm-up", "window"):
            buckets = sorted(
                (float(dict(labels)["le"]), value)
                for (one, labels), value in found.items()
                if one == f"{name}_bucket" and dict(labels)["phase"] == phase
            )
            counts = [count for _, count in buckets]
            assert counts == sorted(counts)
            assert counts[-1] == total(found, f"{name}_count", phase=phase) > 0


def agrees(found: Samples, record: Any) -> None:
    counts = record["counts"]
    for name in ("scheduled", "issued", "ok", "stale", "cancelled", "unsent"):
        shown = total(found, f"trueload_requests_{name}_total", phase="window")
        assert shown == counts[name], name
    assert total(found, "trueload_statuses_total", phase="window") == sum(
        counts["statuses"].values()
    )
    assert total(found, "trueload_requests_failed_total", phase="window") == sum(
        counts["failed"].values()
    )
    assert (
        total(found, "trueload_requests_ok_total", phase="warm-up")
        == (record["warmup"]["counts"]["ok"])
    )
    for name in ("latency", "service"):
        count = total(found, f"trueload_{name}_seconds_count", phase="window")
        assert count == counts["ok"], name
        mean_s = total(found, f"trueload_{name}_seconds_sum", phase="window") / count
        assert mean_s == pytest.approx(record[f"{name}_ns"]["mean"] / 1e9, rel=0.02)
    per_s = record["throughput"]
    assert total(found, "trueload_throughput_per_second") == pytest.approx(per_s["ok_per_s"])
    received = total(found, "trueload_received_bytes_total", phase="window")
    assert received == pytest.approx(per_s["bytes_in"])
    p99 = total(found, "trueload_latency_percentile_seconds", quantile="0.99")
    # A machine that is very busy may leave more than 1 % of the requests unsent.
    above = counts["scheduled"] - counts["ok"] > counts["scheduled"] / 100
    assert p99 == (math.inf if above else record["latency_ns"]["p99"] / 1e9)
    assert total(found, "trueload_verdict", verdict=record["verdict"]) == 1
    for check in record["checks"]:
        labels = {"check": check["name"], "status": check["status"]}
        assert total(found, "trueload_check", **labels) == 1, check["name"]


def test_openmetrics_is_spoken_where_it_is_asked_for(trueload: Trueload, server: Server) -> None:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as strict

    process = trueload.start(
        *("http", server.url, "-c", "1", "--requests", "10", "--prometheus", "127.0.0.1:0"),
        *("--prometheus-linger", "60s", "--no-save"),
    )
    url = printed_line(process)
    until_verdict = urllib.request.Request(url, headers={"Accept": OPENMETRICS})
    for _ in range(SCRAPES_MAX):
        with urllib.request.urlopen(until_verdict, timeout=30) as answer:
            kind, text = answer.headers["Content-Type"], answer.read().decode()
        if "trueload_verdict{" in text:
            break
    assert kind.startswith("application/openmetrics-text; version=1.0.0")
    families = {family.name: family for family in strict(text)}  # type: ignore[no-untyped-call]
    assert families["trueload_requests_ok"].samples[0].value == 10
    assert families["trueload_latency_seconds"].unit == "seconds"


OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"


def test_each_trial_of_a_repetition_and_of_a_search_is_told_apart(
    trueload: Trueload, server: Server
) -> None:
    for flags, labels in (
        (("--repeat", "2", "--requests", "20"), {"trial": "2"}),
        (("--limit", "p99<1us", "-d", "200ms", "--rate", "50"), {"load": "50 requests/s"}),
    ):
        process = trueload.start(
            *("http", server.url, "-c", "1", *flags, "--warmup", "0"),
            *("--prometheus", "0", "--prometheus-linger", "60s"),
        )
        url = printed_line(process)
        found = until(url, has_verdict_of(labels))
        assert total(found, "trueload_requests_ok_total", **labels) > 0
        # A search takes a step again in which the machine was busy.
        assert total(found, "trueload_info", command="http", **labels) >= 1


def test_both_sides_of_a_comparison_are_told_apart(trueload: Trueload, server: Server) -> None:
    process = trueload.start(
        *("compare", server.url, f"{server.url}/perf"),
        *("-c", "1", "--requests", "20", "--repeat", "1"),
        *("--prometheus", "0", "--prometheus-linger", "60s"),
    )
    url = printed_line(process)
    found = until(url, lambda found: total(found, "trueload_verdict") == 2)
    for side, subject in (("a", server.url), ("b", f"{server.url}/perf")):
        labels = {"side": side, "subject": subject, "pair": "1"}
        assert total(found, "trueload_requests_ok_total", **labels) == 20


def test_a_suite_tells_its_subjects_and_loads_apart(world: World) -> None:
    world.add("fine")
    process = world.trueload.start(
        *("suite", "run", "quick", "-c", "2", "--subjects", "python", "--requests", "50"),
        *("--share-cpus", "--repeat", "1", "--prometheus", "0", "--prometheus-linger", "60s"),
        cwd=world.folder,
        env=world.env,
    )
    url = printed_line(process)
    found = last_of(url)
    infos = [dict(labels) for (name, labels) in found if name == "trueload_info"]
    expected = {"suite": "quick", "command": "suite", "trial": "1", "repetition": "1"}
    assert expected.items() <= infos[0].items()
    assert "fine" in infos[0]["subject"]
    assert infos[0]["load"]
    process.communicate(timeout=60)


def test_a_suite_of_clients_is_told_of_trial_by_trial(world: World) -> None:
    add_client(world, "fine")
    command = clients_command(world, "--prometheus", "0", "--prometheus-linger", "60s")
    process = world.trueload.start(*command, cwd=world.folder, env=world.env)
    found = last_of(printed_line(process))
    trials = {dict(labels)["trial"] for name, labels in found if name == "trueload_verdict"}
    assert trials
    for trial in trials:
        assert total(found, "trueload_requests_ok_total", trial=trial) > 0
        assert total(found, "trueload_throughput_per_second", trial=trial) > 0


@pytest.mark.parametrize(
    ("service", "path", "flags"),
    [
        ("tcp", "", ("--requests", "40")),
        ("ws", "/echo", ("--requests", "40")),
        ("ws", "/ws", ("--mode", "broadcast", "--step", "4", "--steps", "2", "--samples", "40")),
    ],
    ids=["tcp", "ws", "broadcast"],
)
def test_other_protocols_have_the_same_metrics(
    service: str, path: str, flags: tuple[str, ...], trueload: Trueload
) -> None:
    server = start_server(trueload, service=service)
    scheme = {"tcp": "", "ws": "ws://"}[service]
    process = trueload.start(
        *(service, f"{scheme}127.0.0.1:{server.port}{path}", *flags),
        *("--prometheus", "0", "--prometheus-linger", "60s"),
    )
    found = last_of(printed_line(process))
    first = {"trial": "1", "phase": "window"}
    assert total(found, "trueload_requests_ok_total", **first) == 40
    assert total(found, "trueload_latency_seconds_count", **first) == 40
    assert total(found, "trueload_info", command=service, trial="1") == 1
    if "--mode" in flags:
        assert total(found, "trueload_deliveries_delivered_total", **first) == 40 * 4
        assert total(found, "trueload_deliveries_lost_total", **first) == 0
        assert total(found, "trueload_verdict", trial="2", load="8 clients") == 1


BAD = [
    (("--prometheus", "abc"), "has no port"),
    (("--prometheus", "65536"), "has no port"),
    (("--prometheus", "-1"), "has no port"),
    (("--prometheus", ":9464"), "has no host"),
    (("--prometheus", "::1:9464"), "like [::1]:9464"),
    (("--prometheus", "192.0.2.1:0"), "Cannot assign requested address"),
    (("--prometheus", "no-such-host.invalid:0"), "no-such-host.invalid"),
    (("--prometheus-linger", "5s"), "no --prometheus"),
    (("--prometheus", "0", "--prometheus-linger", "0s"), "must be greater than 0"),
    (("--otlp", "collector:4318"), "not a URL"),
    (("--otlp", "ftp://collector/"), "not a URL"),
    (("--otlp", "http://"), "not a URL"),
    (("--otlp", "http://collector:99999"), "not a URL"),
    (("--otlp", "http://name:hunter2@collector"), "holds no secrets"),
    (("--otlp", "http://collector/?api-key=hunter2"), "holds no secrets"),
]


@pytest.mark.parametrize(("flags", "word"), BAD, ids=[" ".join(flags) for flags, _ in BAD])
def test_what_cannot_be_is_one_line_and_one_hint_and_nothing_is_started(
    flags: tuple[str, ...], word: str, trueload: Trueload
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as untouched:
        untouched.setblocking(False)
        address = f"http://127.0.0.1:{untouched.getsockname()[1]}/"
        done = trueload.run("http", address, "--requests", "1", *flags)
        with pytest.raises(BlockingIOError):
            untouched.accept()
    refused(done.code, done.err, word)
    assert "hunter2" not in done.err
    assert not trueload.store.exists()


def refused(code: int, err: str, word: str) -> None:
    lines = err.splitlines()
    assert (code, len(lines)) == (2, 2), err
    assert lines[0].startswith("error: ")
    assert lines[1].startswith("hint: ")
    assert word in lines[0]


@pytest.mark.parametrize(
    "command",
    [("http", "http://127.0.0.1:1/"), ("tcp", "127.0.0.1:1"), ("ws", "ws://127.0.0.1:1/")],
    ids=lambda command: command[0],
)
def test_a_port_that_is_taken_is_refused_by_every_command(
    command: tuple[str, ...], trueload: Trueload
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for more in ((), ("--mode", "broadcast")) if command[0] == "ws" else ((),):
            done = trueload.run(*command, *more, "--prometheus", str(port))
            refused(done.code, done.err, "Address already in use")
            assert "port 0" in done.err
    assert not trueload.store.exists()


def test_a_port_of_the_systems_is_refused(trueload: Trueload) -> None:
    if os.geteuid() == 0 or int(Path(UNPRIVILEGED).read_text()) < 2:
        # Here every user may bind low ports, so nothing is refused.
        done = trueload.run(*("http", "http://127.0.0.1:1/", "--prometheus", "x"))
        assert done.code == 2
        return
    done = trueload.run("http", "http://127.0.0.1:1/", "--prometheus", "1")
    refused(done.code, done.err, "Permission denied")


UNPRIVILEGED = "/proc/sys/net/ipv4/ip_unprivileged_port_start"


def test_ctrl_c_ends_the_waiting_and_not_the_result(trueload: Trueload, server: Server) -> None:
    process = trueload.start(
        *("http", server.url, "-c", "1", "--requests", "5", "--prometheus", "0"),
        *("--prometheus-linger", "1h"),
    )
    assert process.stderr is not None
    while "waiting up to 3600 s" not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert "5 ok" in out
    assert process.returncode in (0, 4)


def test_a_run_ends_while_clients_hold_its_metrics(trueload: Trueload) -> None:
    ok = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    with socket.create_server(("127.0.0.1", 0)) as late:
        process = trueload.start(
            *("http", f"http://127.0.0.1:{late.getsockname()[1]}/", "-c", "1", "--requests", "1"),
            *("--timeout", "60s", "--prometheus", "0", "--no-save"),
        )
        port = int(printed_line(process).rsplit(":", 1)[1].partition("/")[0])
        with hostile_clients(port, 40):
            # The run continues until all of them are connected.
            connection, _ = late.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(ok)
                out, err = process.communicate(timeout=60)
    assert process.returncode in (0, 4), err
    assert "throughput" in out


class hostile_clients:  # noqa: N801 - it reads as a block
    """Many hostile connections: some send nothing, some half a request, some read no answer."""

    def __init__(self, port: int, count: int) -> None:
        self.held = [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]

    def __enter__(self) -> None:
        for number, connection in enumerate(self.held):
            connection.sendall((b"", b"GET /met", b"GET /metrics HTTP/1.1\r\n\r\n")[number % 3])

    def __exit__(self, *_: object) -> None:
        for connection in self.held:
            connection.close()


def test_the_export_is_received_and_agrees_with_the_record(
    trueload: Trueload, server: Server, tmp_path: Path
) -> None:
    out = tmp_path / "result.json"
    with otlp_collector() as collector:
        done = trueload.run(
            *("http", server.url.replace("//", "//name:secret@"), "-c", "2"),
            *("--requests", "3000", "--otlp", collector.url, "--json", out),
            env={
                "OTEL_EXPORTER_OTLP_HEADERS": "x-token=abc",
                "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
                "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=test",
            },
        )
        assert done.code in (0, 4), done.err
        assert done.err == "", done.err
        record, metrics = json.loads(out.read_text()), collector.last()
        assert set(collector.paths) == {"/v1/metrics"}
        assert collector.headers[-1]["x-token"] == "abc"
        assert b"secret" not in collector.requests[-1].SerializeToString()
        who = collector.resource()
    assert who["service.name"] == "trueload"
    assert who["deployment.environment"] == "test"
    assert who["service.instance.id"]
    ok = metrics["trueload.requests.ok"].sum
    assert (ok.is_monotonic, ok.aggregation_temporality) == (True, 2)
    assert [point.as_int for point in ok.data_points] == [record["counts"]["ok"]] == [3000]
    latency = metrics["trueload.latency"].histogram.data_points[0]
    assert latency.count == sum(latency.bucket_counts) == 3000
    assert attributes(latency) == {"trial": "1", "phase": "window"}
    verdict = [attributes(p)["verdict"] for p in metrics["trueload.verdict"].gauge.data_points
               if p.as_double]  # fmt: skip
    assert verdict == [record["verdict"]]
    assert metrics["trueload.latency"].unit == "s"


@pytest.mark.parametrize(
    ("manner", "word"),
    [
        (500, "answers 500"),
        (503, "answers 503"),
        (404, "answers 404"),
        (307, "redirects elsewhere"),
        ("silent", "within 2 s"),
        ("refusing", "connection refused"),
    ],
)
def test_a_collector_that_fails_costs_one_line_and_changes_nothing(
    manner: Any, word: str, trueload: Trueload, server: Server, refusing_port: int
) -> None:
    with otlp_collector("well" if manner == "refusing" else manner) as collector:
        url = f"http://127.0.0.1:{refusing_port}" if manner == "refusing" else collector.url
        # The silent collector is released only after the command has ended.
        done = trueload.run(
            "http", server.url, "-c", "1", "--requests", "50", "--otlp", url, "--json", "-"
        )
    assert done.code in (0, 4), done.err
    assert done.json()["counts"]["ok"] == 50
    warnings = [line for line in done.err.splitlines() if line.startswith("warning:")]
    assert len(warnings) == 1, done.err
    assert word in warnings[0]
    assert url in warnings[0]
    assert "Traceback" not in done.err
    assert "opentelemetry" not in done.err


def test_what_the_environment_has_wrong_is_told_without_its_secrets(
    trueload: Trueload, server: Server
) -> None:
    flags = ("http", server.url, "-c", "1", "--requests", "5", "--no-save")
    others = {"REQUESTS_CA_BUNDLE": "", "CURL_CA_BUNDLE": ""}  # they have precedence in requests
    missing = {"OTEL_EXPORTER_OTLP_CERTIFICATE": "/missing.pem", **others}
    done = trueload.run(*flags, "--otlp", "https://127.0.0.1:1", env=missing)
    assert "/missing.pem" in done.err
    assert len(done.err.splitlines()) == 1, done.err
    for headers in ("hunter2", "x-token=hunter2%0d%0aa: b", "x token=hunter2"):
        with otlp_collector() as collector:
            env = {"OTEL_EXPORTER_OTLP_HEADERS": headers}
            done = trueload.run(*flags, "--otlp", collector.url, env=env)
        assert done.code in (0, 4), done.err
        assert "hunter2" not in done.err, headers


def test_an_answer_without_an_end_is_left_unread(trueload: Trueload, server: Server) -> None:
    with otlp_collector("endless") as collector:
        done = trueload.run(
            "http", server.url, "-c", "1", "--requests", "50", "--otlp", collector.url
        )
    assert done.code in (0, 4)
    assert done.err == ""


@pytest.mark.parametrize(
    ("name", "path", "posted"),
    [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "", "/v1/metrics"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "/otlp/", "/otlp/v1/metrics"),
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "/own", "/own"),
    ],
)
def test_the_environment_names_the_collector_if_it_is_asked(
    name: str, path: str, posted: str, trueload: Trueload, server: Server
) -> None:
    flags = ("http", server.url, "-c", "1", "--requests", "5", "--no-save")
    with otlp_collector() as collector:
        env = {name: collector.url + path}
        assert trueload.run(*flags, env=env).err == ""
        assert not collector.requests, "nothing is sent unasked"
        done = trueload.run(*flags, "--otlp", "env", env=env)
    assert done.err == ""
    assert set(collector.paths) == {posted}


def test_a_bad_address_in_the_environment_is_refused(trueload: Trueload) -> None:
    done = trueload.run(
        *("http", "http://127.0.0.1:1/", "--otlp", "env"),
        env={"OTEL_EXPORTER_OTLP_ENDPOINT": "collector"},
    )
    refused(done.code, done.err, "OTEL_EXPORTER_OTLP_ENDPOINT")


def test_from_python_the_address_is_among_the_notes(trueload: Trueload, server: Server) -> None:
    program = (
        "import trueload\n"
        f"done = trueload.http({server.url!r}, connections=1, requests=5, prometheus='0')\n"
        "print(done.notes)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=trueload.env(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "metrics at http://127.0.0.1:" in done.stdout
    assert done.stderr == ""


def test_libraries_of_metrics_are_imported_only_when_metrics_are_asked_for() -> None:
    heavy = ("prometheus_client", "opentelemetry", "requests", "asyncio")
    program = (
        "import sys, trueload.cli.load\n"
        "from trueload.cli.app import run\n"
        "run(['http', '--help'])\n"
        f"print([name for name in {heavy} if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr.strip() == "[]"
