"""Parsing the output of the other generators: errors are never read as figures."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from harness import ROOT

WRK = "  39812 requests in 1.10s, 5.05MB read\nRequests/sec:  36192.71\n"
AB = """Time taken for tests:   2.000 seconds
Complete requests:      81000
Failed requests:        0
Keep-Alive requests:    81000
"""
H2LOAD = """requests: 36000 total, 36064 started, 36000 done, 36000 succeeded, 0 failed, 0 errored
status codes: 36000 2xx, 0 3xx, 0 4xx, 0 5xx
"""
HEY = """
Summary:
  Total:\t1.0137 secs
  Requests/sec:\t12845.8787

Status code distribution:
  [200]\t13022 responses
"""
OHA = {
    "summary": {"total": 1.5},
    "statusCodeDistribution": {"200": 43000},
    "errorDistribution": {"aborted due to deadline": 64},
}
K6 = {
    "http_reqs": {"count": 9000, "rate": 4500.0},
    "http_req_failed": {"passes": 0, "fails": 9000},
}


def read(bench: Any, name: str, out: str) -> tuple[int, float]:
    """The requests and seconds in a generator's output."""
    ended = bench["process"].Ended(out=out, cpu_s=0.25, peak_rss_bytes=None)
    more = {"h2load": (2.0,), "k6": (out,)}.get(name, ())
    took = getattr(bench["generators"], f"read_{name}")(ended, *more)
    assert took.cpu_s == 0.25
    return took.requests, took.wall_s


@pytest.mark.parametrize(
    ("name", "out", "figures"),
    [
        ("wrk", WRK, (39812, 1.10)),
        ("wrk", WRK.replace("1.10s", "900.00ms"), (39812, 0.9)),
        ("ab", AB, (81000, 2.0)),
        ("h2load", H2LOAD, (36000, 2.0)),
        ("hey", HEY, (13022, 1.0137)),
        ("oha", json.dumps(OHA), (43000, 1.5)),
        ("k6", json.dumps({"metrics": K6}), (9000, 2.0)),
    ],
)
def test_requests_and_time_are_what_the_generator_says(
    bench: Any, name: str, out: str, figures: tuple[int, float]
) -> None:
    assert read(bench, name, out) == pytest.approx(figures)


@pytest.mark.parametrize(
    ("name", "out"),
    [
        ("wrk", WRK + "  Socket errors: connect 0, read 3, write 0, timeout 0\n"),
        ("wrk", WRK + "  Non-2xx or 3xx responses: 12\n"),
        ("wrk", WRK.replace("39812", "0")),
        ("wrk", "unable to connect to 127.0.0.1:80\n"),
        ("ab", AB.replace("Failed requests:        0", "Failed requests:        7")),
        ("ab", AB + "Non-2xx responses:      81000\n"),
        ("h2load", H2LOAD.replace("36000 succeeded, 0 failed", "35990 succeeded, 10 failed")),
        ("h2load", H2LOAD.replace("36000 2xx, 0 3xx, 0 4xx", "0 2xx, 0 3xx, 36000 4xx")),
        ("hey", HEY + "\nError distribution:\n  [64]\tGet: connection refused\n"),
        ("hey", HEY.replace("[200]", "[503]")),
        ("oha", json.dumps({**OHA, "statusCodeDistribution": {"200": 4, "500": 1}})),
        ("oha", json.dumps({**OHA, "errorDistribution": {"connection refused": 1}})),
        ("oha", json.dumps({**OHA, "statusCodeDistribution": {}})),
        ("k6", json.dumps({"metrics": {**K6, "http_req_failed": {"passes": 3, "fails": 8997}}})),
        ("k6", json.dumps({"metrics": {**K6, "http_reqs": {"count": 0, "rate": 0.0}}})),
    ],
)
def test_a_run_with_errors_is_no_figure(bench: Any, name: str, out: str) -> None:
    with pytest.raises(bench["process"].BenchError):
        read(bench, name, out)


def test_the_stand_in_of_the_engine_passes_everything_on_and_writes_down_what_it_cost(
    tmp_path: Path,
) -> None:
    program = tmp_path / "program"
    program.write_text(
        "#!/bin/sh\ncat; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; exit 3\n"
    )
    program.chmod(0o755)
    cost = tmp_path / "cost"
    ran = subprocess.run(
        [ROOT / "bench" / "costed.py"],
        input="to be said\n",
        env={"PATH": "/usr/bin:/bin", "BENCH_ENGINE": str(program), "BENCH_COST": str(cost)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (3, "to be said\n", "")
    assert float(cost.read_text().split()[0]) > 0


@pytest.mark.parametrize(
    ("established", "least_ok", "peak_mb", "words"),
    [
        (100_000, 1, 50, ["met", "met"]),
        (100_000, 1, 51, ["met", "missed"]),
        (100_000, 0, 50, ["missed", "met"]),
        (99_999, 2, 40, ["missed", "not measured"]),
    ],
)
def test_100000_connections_are_reached_when_each_was_served(
    bench: Any, established: int, least_ok: int, peak_mb: int, words: list[str]
) -> None:
    many = bench["many"].Many(
        established=established,
        least_ok=least_ok,
        failed={},
        driver="io_uring",
        peak_bytes=peak_mb * 10**6,
        server_peak_bytes=10**6,
        ended=True,
    )
    marked, (line,) = bench["many"].judge(many)
    assert [mark.word for mark in marked] == words
    assert "killed" not in line
