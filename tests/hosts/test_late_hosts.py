"""A host that joins while the others send: what it takes over, and that nothing is lost by it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from harness import Server, Trueload, start_server
from waiting import wait_until

LATE = 'test -e {flag} && {cache} exec "$@"'
SECONDS, RATE = 10, 600


@pytest.fixture
def server(trueload: Trueload) -> Iterator[Server]:
    found = start_server(trueload)
    yield found
    found.process.terminate()


def late_place(flag: Path, cache: str = "") -> str:
    """A place that is there once the flag is."""
    return f"exec:sh -c '{LATE.format(flag=flag, cache=cache)}' sh"


def has_connections(server: Server) -> bool:
    found = psutil.net_connections("tcp4")
    return any(each.raddr and each.raddr[1] == server.port for each in found)


def test_a_host_that_comes_later_joins_and_every_arrival_is_sent_once(
    trueload: Trueload, server: Server, tmp_path: Path
) -> None:
    flag, result = tmp_path / "flag", tmp_path / "result.json"
    # The engine of the last one can be kept nowhere, so it can never join, and that stops nobody.
    places = ("exec:env HOST=one", "exec:env HOST=two", late_place(flag))
    broken = late_place(flag, "TRUELOAD_CACHE=/proc/none")
    running = trueload.start(
        *("http", f"{server.url}/", "-c", "12", "--rate", f"{RATE}/s", "-d", f"{SECONDS}s"),
        *("--warmup", "200ms", "--json", result, "--hosts", "2..4"),
        *(f"--place={place}" for place in (*places, broken)),
        env={"TRUELOAD_CACHE": str(tmp_path / "cache")},
    )
    wait_until(lambda: has_connections(server), "the first have connected")
    flag.touch()
    _, err = running.communicate()
    assert running.returncode in (0, 4), err  # a busy machine may make it invalid
    record = json.loads(result.read_text())
    assert record["trouble"] is None, err
    first, second, third = record["hosts"]
    assert [each["joined_s"] for each in (first, second)] == [None, None]
    joined_s = third["joined_s"]
    assert f"joins: from second {joined_s} on, each of 3 hosts has 1/3 of the load" in err
    assert "cannot join: the engine cannot be copied to" in err
    assert [each["connections"] for each in record["hosts"]] == [4, 4, 4]
    assert (record["connections"]["requested"], record["connections"]["established"]) == (12, 12)
    assert not any(each["ok"] for each in third["series"] if each["t_s"] < joined_s)
    # A busy machine may send an arrival too late, but each is the turn of one host.
    scheduled = [host["counts"]["scheduled"] for host in record["hosts"]]
    assert (record["counts"]["scheduled"], sum(scheduled)) == (RATE * SECONDS, RATE * SECONDS)
    assert scheduled[2] == RATE * (SECONDS - joined_s) // 3
    assert sum(each["ok"] for each in record["series"]) == record["counts"]["ok"]


def test_a_run_that_is_interrupted_before_the_host_has_joined_is_saved(
    trueload: Trueload, server: Server, tmp_path: Path
) -> None:
    flag, result = tmp_path / "flag", tmp_path / "result.json"
    running = trueload.start(
        *("http", f"{server.url}/", "-c", "4", "-d", "60s", "--hosts", "1..2", "--json", result),
        *("--place", "exec:env HOST=one", "--place", late_place(flag)),
        env={"TRUELOAD_CACHE": str(tmp_path / "cache")},
    )
    wait_until(lambda: has_connections(server), "the first has connected")
    flag.touch()
    assert running.stderr is not None
    said = next((line for line in running.stderr if " join" in line), "")
    assert "joins: from second" in said, "it is told before that second"
    os.killpg(running.pid, signal.SIGINT)
    _, err = running.communicate()
    assert running.returncode == 130, err
    record = json.loads(result.read_text())
    assert (record["partial"], record["trouble"]) == (True, None), err
    assert record["counts"]["ok"] > 0
    assert record["slots"]["asked"] == 4, "the first engine's own account is in it"
    assert record["hosts"][0]["place"] == "exec:env HOST=one"
