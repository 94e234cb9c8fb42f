"""A suite like `c10k`, but small: priming, kept connections, a staircase, ab's figures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from harness import ROOT, Trueload
from subject_world import World

pytestmark = pytest.mark.engine

SUITE = """
about = "small"
contract = "{contract}"
requests = 400
prime = true
timeout = "10s"
repeat = {repeat}
report = "apachebench"
connect_rate = "20k/s"

[[loads]]
connections = [200]
close = [true, false]

[[loads]]
connections = [4]
close = [false]
idle = [0, 50, 200]
"""


def write_suite(folder: Path, contract: str, repeat: int = 1) -> Path:
    path = folder / "small.toml"
    path.write_text(SUITE.format(contract=contract, repeat=repeat))
    return path


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, str, str, Any]:
    """The suite on the reference server: its JSON and text, and the run in the store."""
    folder = tmp_path_factory.mktemp("c10k")
    trueload = Trueload(folder)
    try:
        path = write_suite(folder, "http-perf", repeat=2)
        words = ("suite", "run", str(path), "--subjects", "rust/trueload", "--share-cpus")
        whole = folder / "whole.json"
        ended = trueload.run(*words, "--json", str(whole), cwd=ROOT)
        assert ended.code in (0, 4), ended
        shown = trueload.run("runs", "show", "last")
        stored = trueload.run("runs", "show", "last", "--json").json()
        import json

        return json.loads(whole.read_text()), ended.out, shown.out, stored
    finally:
        trueload.close()


def test_a_priming_run_comes_first_and_is_like_the_one_that_counts(ran: Any) -> None:
    whole = ran[0]
    assert whole["plan"]["warmup"] == whole["plan"]["stop"] == {"kind": "requests", "count": 400}
    for record in whole["trials"]:
        assert record["warmup"]["counts"]["ok"] == 400
        assert record["counts"]["ok"] == 400, "the priming run is not in it"


def test_what_apachebench_says_is_in_the_json_of_each_row(ran: Any) -> None:
    rows = ran[0]["rows"]
    assert [(row["connections"], row["close"], row["idle"]) for row in rows] == [
        (200, True, []), (200, False, []), (4, False, [0, 50, 200]),
    ]  # fmt: skip
    for row in rows:
        found = row["figures"]["apachebench"]
        assert (found["path"], found["document_bytes"]) == ("/perf", 84)
        assert (found["complete"], found["failed_count"]) == (400, 0)
        assert found["html_bytes"] == 400 * 84 < found["transferred_bytes"]
        assert found["per_s"] == pytest.approx(400 / found["taken_s"])
        assert found["percentiles"][-1]["percent"] == 100
        assert found["priming"]["complete"] == 400
        assert found["server_peak_rss_bytes"] > 0
        assert found["total"]["min"] <= found["total"]["median"] <= found["total"]["max"]
    closed, kept, _ = (row["figures"]["apachebench"] for row in rows)
    assert (closed["connects"], kept["connects"]) == (400, 0)
    assert closed["connect"]["min"] > 0
    assert kept["connect"]["max"] == 0


def test_a_staircase_tells_what_an_idle_connection_costs(ran: Any) -> None:
    rows = ran[0]["rows"]
    assert rows[0]["figures"]["idle"] is None
    idle = rows[2]["figures"]["idle"]
    assert [(step["idle"], step["established"]) for step in idle["steps"]] == [
        (0, 4), (50, 54), (200, 204),
    ]  # fmt: skip
    assert idle["held"] == 200
    assert all(step["server_rss_bytes"] > 0 for step in idle["steps"])


def test_the_text_is_as_apachebench_prints_it_and_the_store_shows_the_same(ran: Any) -> None:
    _, text, shown, stored = ran
    blocks = text.split("== rust/trueload: ")[1:]
    assert [block.partition("\n")[0] for block in blocks] == [
        "200 connections, one per request, single core",
        "200 connections, kept, single core",
        "4 connections beside 200 idle ones, kept, single core",
    ]
    for block in blocks:
        assert re.search(r"^Complete requests: +400$", block, re.M), block
        assert re.search(r"^Requests per second: +[\d.]+ \[#/sec\] \(mean\)$", block, re.M)
        assert re.search(r"^Connect: +\d+ +\d+ +[\d.]+ +\d+ +\d+$", block, re.M)
        assert re.search(r"^ 100% +\d+ \(longest request\)$", block, re.M)
        assert "Server peak memory:" in block
        assert "Priming run:            400 complete, none failed" in block
        assert block in shown
    assert "200 idle: " in blocks[2]
    assert len(stored["tables"]) == 3
    assert stored["tables"][0]["figures"]["apachebench"]["complete"] == 400


def test_a_subject_that_dies_is_a_row_with_its_reason_and_the_suite_goes_on(world: World) -> None:
    world.add("dies", "dies-in-mid-run")
    world.add("fine")
    path = write_suite(world.folder, "http-plaintext")
    words = ("suite", "run", str(path), "--subjects", "python", "--share-cpus", "--json", "-")
    rows = world.run(*words).json()["rows"]
    found = {(row["framework"], row["connections"], row["close"]): row for row in rows}
    assert len(found) == 6
    for (name, _, _), row in found.items():
        if name == "dies":
            assert row["verdict"] in ("invalid", None), row
            assert "exit code 3" in row["why"], row
        else:
            assert row["outcome"] == "measured", row
    world.wait_until_nothing_is_left()


def test_a_suite_that_needs_more_files_than_there_are_says_so_before_it_starts(
    world: World,
) -> None:
    world.add("fine")
    words = ("suite", "run", "quick", "--subjects", "fine", "-c", "900000", "--requests", "5")
    ended = world.run(*words)
    assert (ended.code, ended.out) == (2, ""), ended
    lines = [line for line in ended.err.splitlines() if not line.startswith("note: ")]
    assert len(lines) == 2, ended
    assert "900,000 connections need" in lines[0]
    assert "ulimit -Hn" in lines[1]
    assert not world.cache.exists() or not list(world.cache.glob("builds/*"))
