"""Suites of protocols other than HTTP, with the reference server as their subject."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from harness import Trueload

ONE = ("--repeat", "1", "--share-cpus")
BROADCAST = """
about    = "two steps of a few clients"
contract = "ws-shootout"
subjects = ["rust/trueload:ws"]
requests = 10

[broadcast]
limit = "p95<5s"
steps = 2

[[loads]]
connections = [4]
"""


@pytest.fixture
def cached(trueload: Trueload, tmp_path: Path) -> dict[str, str]:
    """The environment of a suite with its own cache of builds."""
    return {"TRUELOAD_CACHE": str(tmp_path / "cache")}


def test_a_suite_of_tcp_echo_has_a_row_and_the_published_figures(
    trueload: Trueload, cached: dict[str, str]
) -> None:
    few = ("--subjects", "rust/trueload:tcp", "--requests", "500", "-c", "640", *ONE)
    done = trueload.run("suite", "run", "tcp-echo", *few, "--json", "-", env=cached)
    found = done.json()
    (row,) = found["rows"]
    assert (row["outcome"], row["figures"]["errors"]) == ("measured", 0), done
    assert found["trials"][0]["plan"]["generate"]["exchange"]["kind"] == "tcp_echo"
    assert {each["connections"] for each in found["published"]} == {640, 128}
    shown = trueload.run("suite", "run", "tcp-echo", *few, env=cached)
    assert "As published (bench1: 64 threads of 10 connections), beside ours:" in shown.out
    assert "mioco (8 threads)" in shown.out
    assert "bench2" not in shown.out, "128 connections were not asked for"


def test_a_suite_of_broadcasts_has_a_row_and_the_steps_of_each_subject(
    trueload: Trueload, cached: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "few.toml"
    file.write_text(BROADCAST)
    done = trueload.run("suite", "run", str(file), *ONE, env=cached)
    assert "broadcast to 4 clients more with each step, single core" in done.out, done
    assert "rust/trueload:ws, the steps of its last repetition:" in done.out
    # A busy machine may spoil a step, which is then repeated.
    steps = [line for line in done.out.splitlines() if re.search(", (kept|exceeded|limited)", line)]
    loads = dict.fromkeys(step.split()[0] for step in steps)
    assert list(loads)[:2] == ["4", "8"]
    rows = trueload.run("runs", "list", "--json").json()
    assert [(run["kind"], run["row_count"]) for run in rows] == [("suite", len(steps))]
    shown = trueload.run("runs", "show", "last")
    assert shown.code == 0, shown
    again = trueload.run("suite", "run", "--resume", "last", "--json", "-", env=cached)
    found = again.json()
    (row,) = found["rows"]
    assert row["repetitions"] == 1, "nothing was done twice"
    assert all(trial["deliveries"]["lost"] == 0 for trial in found["trials"])
    compared = trueload.run("runs", "compare", "last", "last", "--format", "json")
    assert compared.code in (0, 2, 4), compared  # 4: a busy machine spoiled it


HTTP2 = """
about    = "ten streams, in plain text and over TLS"
contract = "http2-bytes"
subjects = ["rust/trueload:http2"]
requests = 500

[http2]
window = "rfc"

[[loads]]
connections = [2]
streams     = [10]
path        = ["/bytes/65536"]
tls         = [false, true]
"""


def test_a_suite_over_http2_has_a_table_in_plain_text_and_one_over_tls(
    trueload: Trueload, cached: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "http2.toml"
    file.write_text(HTTP2)
    done = trueload.run("suite", "run", str(file), *ONE, "--json", "-", env=cached)
    found = done.json()
    assert [row["http"] for row in found["rows"]] == [
        {"streams": 10, "tls": tls, "path": "/bytes/65536"} for tls in (False, True)
    ], done
    for row, trial in zip(found["rows"], found["trials"], strict=True):
        assert (row["outcome"], row["figures"]["requests"]) == ("measured", 500), done
        assert trial["plan"]["generate"]["pipeline"] == 10
        assert trial["plan"]["generate"]["http2"]["stream_window"] == 65_535
    shown = trueload.run("suite", "run", "--resume", "last", "--format", "csv", env=cached)
    header, plain, secured = shown.out.splitlines()
    where = header.split(",").index("streams")
    assert plain.split(",")[where : where + 3] == ["10", "", "/bytes/65536"]
    assert secured.split(",")[where : where + 3] == ["10", "yes", "/bytes/65536"]
