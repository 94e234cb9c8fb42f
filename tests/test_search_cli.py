"""``--limit`` by the command line, against the reference server: structure and exit codes."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from harness import Server, Trueload, kill_group, start_server
from samples import flat
from trueload.store.runs import Store
from waiting import wait_until

STEPS = ("-d", "100ms", "--warmup", "0", "-c", "8")


def test_a_limit_that_nothing_keeps_ends_with_1(trueload: Trueload, server: Server) -> None:
    done = trueload.run("http", f"{server.url}/", "--limit", "p99<1ns", *STEPS, "--json", "-")
    found = done.measured(1)
    assert found["result"]["outcome"] == "none"
    assert found["result"]["load"] is None
    loads = dict.fromkeys(step["step"]["load"] for step in found["steps"])
    assert list(loads) == [1000, 125, 15.6, 1.95, 1]
    assert all(step["plan"]["window"]["load"]["kind"] == "open" for step in found["steps"])
    assert "no load keeps to p99<1ns; the lowest tried was 1 request/s" in done.err
    assert found["verdict"] in ("valid", "suspect", "invalid")
    listed = trueload.run("runs", "list", "--json").json()
    assert [(run["kind"], run["row_count"]) for run in listed] == [("search", len(found["steps"]))]
    shown = trueload.run("runs", "show", "last")
    assert "no load keeps to p99<1ns" in shown.out
    compared = trueload.run("runs", "compare", "last", "last")
    assert (compared.code, compared.out) == (2, "")
    assert "has confirmed no load" in compared.err


def test_each_step_of_a_search_has_arrivals_of_its_own(trueload: Trueload, server: Server) -> None:
    chance = ("--rate", "10/s", "--arrivals", "poisson", "--seed", "7", "--no-save")
    done = trueload.run(
        *("http", f"{server.url}/", "--limit", "p99<1ns", *STEPS, *chance, "--json", "-")
    )
    steps = done.json()["steps"]
    seeds = [step["plan"]["window"]["load"]["seed"] for step in steps]
    assert seeds == list(range(7, 7 + len(steps)))


def test_the_largest_number_of_connections_is_searched(trueload: Trueload, server: Server) -> None:
    # Each answer takes a tenth of a second, whatever the number of connections.
    done = trueload.run(
        *("http", f"{server.url}/wait/100", "--limit", "p50<10ms", "--search", "connections"),
        *("-d", "300ms", "--warmup", "0", "--json", "-"),
    )
    found = done.measured(1)
    assert found["result"]["unit"] == "connections"
    requested = dict.fromkeys(step["connections"]["requested"] for step in found["steps"])
    assert list(requested) == [8, 1]


def test_what_is_found_has_a_confirming_run_and_its_verdict(
    trueload: Trueload, server: Server
) -> None:
    # Eight connections that wait 20 ms each carry 400 requests a second, and no more.
    done = trueload.run(
        *("http", f"{server.url}/wait/20", "--limit", "p50<80ms and errors<50%", "--rate", "300/s"),
        *("-c", "8", "-d", "500ms", "--warmup", "0", "--json", "-"),
    )
    found = done.json()
    result = found["result"]
    assert found["partial"] is False
    if result["outcome"] == "found":
        last = found["steps"][-1]
        assert last["step"]["stage"] == "confirm"
        assert last["step"]["outcome"] == "kept"
        assert found["verdict"] == last["verdict"]
        assert result["interval"]["low"] == result["load"]
        assert done.code == 0
    else:
        assert done.code in (1, 4)
    assert {step["step"]["stage"] for step in found["steps"]} >= {"bracket"}


def test_nothing_listens(trueload: Trueload, refusing_port: int) -> None:
    url = f"http://127.0.0.1:{refusing_port}/"
    done = trueload.run("http", url, "--limit", "p99<10ms", *STEPS, "--json", "-")
    assert done.code == 3, done
    assert len(done.json()["steps"]) == 1
    assert "connect.refused" in done.err


@pytest.mark.parametrize("axis", ["rate", "connections"])
def test_who_takes_connections_and_answers_nobody_is_asked_twice(
    trueload: Trueload, axis: str
) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=512) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        flags = ("--search", axis, "--timeout", "200ms", *STEPS, "--json", "-")
        done = trueload.run("http", url, "--limit", "p99<10ms", *flags)
    assert done.code == 4, done
    found = done.json()
    loads = dict.fromkeys(step["step"]["load"] for step in found["steps"])
    assert list(loads) == [1000 if axis == "rate" else 8, 1]
    assert "and no request was ok: timeout.first_byte" in flat([done.err])


@pytest.mark.parametrize("command", ["http", "ws"])
def test_a_server_that_dies_ends_the_search_of_it(
    trueload: Trueload, command: str, tmp_path: Path
) -> None:
    server = start_server(trueload, service=command)
    flags: tuple[str, ...]
    url, flags = f"{server.url}/", ("--limit", "p99<10s", "-d", "300ms", "--warmup", "0")
    if command == "ws":
        url = f"ws://{server.host}:{server.port}/ws"
        flags = ("--mode", "broadcast", "--step", "20", "--limit", "p95<30s", "--samples", "50")
    written = tmp_path / "found.json"
    process = trueload.start(command, url, *flags, "--json", written)

    def has_two_steps() -> bool:
        assert process.poll() is None
        return kept_steps(trueload) >= 2

    wait_until(has_two_steps, "two steps are kept")
    kill_group(server.process)
    out, _ = process.communicate(timeout=90)
    assert process.returncode == 4, out
    found = json.loads(written.read_text())
    assert found["result"]["outcome"] == "gone"
    assert "the server no longer answered at" in out
    outcomes = [step["step"]["outcome"] for step in found["steps"]]
    assert len(outcomes) > 2
    assert outcomes.count("gone") == 1
    assert outcomes[-1] == "gone"


def kept_steps(trueload: Trueload) -> int:
    """The number of steps in the store."""
    # Read it without a command: on a busy machine the search would end while a command starts.
    if not trueload.store.exists():
        return 0
    with Store.open(trueload.store) as store:
        runs = store.runs()
    return runs[-1].row_count if runs else 0


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (("--limit", "p99"), "--limit 'p99', at its end: one of < <= is missing"),
        (("--limit", "p99>10ms"), "at character 4: one of < <= is missing"),
        (("--limit", "p99<10ms and"), "at its end: a metric is missing"),
        (("--limit", "throughput<1k/s"), "at character 1: 'throughput' cannot be used here"),
        (("--limit", "p99<10ms", "--repeat", "2"), "--limit and --repeat cannot be used together"),
        (
            ("--limit", "p99<10ms", "--requests", "2"),
            "--limit and --requests cannot be used together",
        ),
        (
            ("--limit", "p99<1s", "--stages", "1s@1k"),
            "--limit and --stages cannot be used together",
        ),
        (("--search", "connections"), "--search is given, but no --limit"),
        (
            ("--limit", "p99<1s", "--search", "connections", "--rate", "1k"),
            "--search connections and --rate cannot be used together",
        ),
    ],
)
def test_what_makes_no_search_is_refused_in_one_line(
    trueload: Trueload, flags: tuple[str, ...], complaint: str
) -> None:
    done = trueload.run("http", "http://127.0.0.1:9/", *flags)
    assert (done.code, done.out) == (2, "")
    assert complaint in done.err.splitlines()[0]
    assert len(done.err.splitlines()) == 2
