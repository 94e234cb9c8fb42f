"""One run over hosts of a Ray cluster, with a node on each.

A host, its actor, its raylet or the head that ends is reported, and the run leaves nothing behind,
however it ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from harness import Server, Trueload, start_server
from waiting import wait_until

from hosts.network import Host, Network, missing
from hosts.raylets import RAYLET, Raylets, add_node, start_ray

ENGINE = "trueload-engine"
ACTOR = "ray::Host"
CLIENTS_SERVER = "--mode=specific-server"  # the head starts one for each client
LONG = ("--duration", "60s", "--warmup", "100ms")
WORKED_S = 0.3
GONE_S = 6.0
"""An engine is gone within 3 s of its loss; the rest is a loaded machine's share."""


@pytest.fixture(scope="session")
def ray_on_three_hosts(three_hosts: Network) -> Raylets:
    """Ray on the three hosts."""
    return start_ray(three_hosts)


@pytest.fixture
def raylets(network: Network, ray_on_three_hosts: Raylets) -> Raylets:
    """Ray on three hosts with their links up."""
    return ray_on_three_hosts


@pytest.fixture
def own_raylets(tmp_path: Path) -> Iterator[Raylets]:
    """Ray on two hosts that no other test uses, so that a test may break them."""
    if why := missing():
        pytest.skip(why)
    with Network(tmp_path / "hosts", 2) as network:
        yield start_ray(network)


def serve(trueload: Trueload, network: Network, service: str = "http") -> Server:
    return start_server(trueload, "--threads", "1", service=service, address=network.address)


def running(network: Network, containing: str) -> dict[str, int]:
    """The number of such processes on each host."""
    return {host.name: len(host.processes(containing)) for host in network.hosts}


def has_engines(network: Network) -> bool:
    return any(running(network, ENGINE).values())


def is_quiet(network: Network) -> bool:
    found = (running(network, what) for what in (ENGINE, ACTOR))
    return not any(count for each in found for count in each.values())


def places(raylets: Raylets) -> tuple[str, ...]:
    """The options that name every host."""
    return ("--place", raylets.address, "--hosts", str(len(raylets.network.hosts)))


def start(trueload: Trueload, raylets: Raylets) -> subprocess.Popen[str]:
    """Start a long run over every host; it measures when this returns."""
    network = raylets.network
    server = serve(trueload, network)
    hosts = len(network.hosts)
    process = trueload.start(
        *("http", f"{server.url}/", "-c", str(2 * hosts), *LONG),
        *places(raylets),
        stderr=subprocess.STDOUT,
    )

    def measures() -> bool:
        return connected(network, server) == 2 * hosts and all(map(is_at_work, network.hosts))

    try:
        wait_until(lambda: process.poll() is not None or measures(), "every host measures")
        assert process.poll() is None
    except AssertionError as error:
        process.kill()
        raise AssertionError(f"{error}: {process.communicate()[0]}") from None
    return process


def is_at_work(host: Host) -> bool:
    """Whether the host's engine has worked for longer than it takes to start."""
    with contextlib.suppress(psutil.NoSuchProcess):
        times = [psutil.Process(pid).cpu_times() for pid in host.processes(ENGINE)]
        return any(used.user + used.system > WORKED_S for used in times)
    return False


def connected(network: Network, server: Server) -> int:
    """The number of connections that the hosts have to the server."""
    words = ("ss", "-Htn", "state", "established", "dst", f"{network.address}:{server.port}")
    return sum(len(host.run(*words).stdout.splitlines()) for host in network.hosts)


@pytest.mark.parametrize("service", ["http", "tcp"])
def test_a_run_over_three_hosts_is_whole(
    raylets: Raylets, trueload: Trueload, service: str
) -> None:
    server = serve(trueload, raylets.network, service)
    where = f"{server.url}/" if service == "http" else server.url.split("/")[2]
    done = trueload.run(
        *(service, where, "-c", "7", "--requests", "301", "--warmup", "50ms", "--json", "-"),
        *places(raylets),
    )
    assert done.code in (0, 4), done  # a busy machine may make it suspect or invalid, never lost
    record = done.json()
    assert record["trouble"] is None
    assert {host["place"] for host in record["hosts"]} == {"h1", "h2", "h3"}
    assert sorted(host["connections"] for host in record["hosts"]) == [2, 2, 3]
    counts = record["counts"]
    assert counts["scheduled"] == 301
    assert sum(host["ok"] for host in record["hosts"]) == counts["ok"] > 0
    wait_until(lambda: is_quiet(raylets.network), "engines and actors have gone")


def test_more_hosts_than_there_are_is_told_with_those_that_there_are(
    raylets: Raylets, trueload: Trueload
) -> None:
    server = serve(trueload, raylets.network)
    done = trueload.run("http", server.url, "--place", raylets.address, "--hosts", "4")
    assert done.code == 2
    error, hint = done.err.splitlines()
    assert "Ray did not find 4 hosts (1 CPU each) within 30 s" in error
    assert all(f"h{number} (1 CPU)" in error for number in (1, 2, 3))
    assert hint.startswith("hint: ask for fewer with --hosts")
    assert is_quiet(raylets.network)


def pull_the_link(raylets: Raylets) -> None:
    raylets.network.hosts[1].link("down")


def kill_the_engine(raylets: Raylets) -> None:
    assert raylets.network.hosts[1].kill(ENGINE) == 1


def kill_the_actor(raylets: Raylets) -> None:
    assert raylets.network.hosts[1].kill(ACTOR) == 1


def kill_the_raylet(raylets: Raylets) -> None:
    assert raylets.network.hosts[1].kill(RAYLET) == 1


def freeze_the_engine(raylets: Raylets) -> None:
    (pid,) = raylets.network.hosts[1].processes(ENGINE)
    os.kill(pid, signal.SIGSTOP)


def lose(raylets: Raylets, trueload: Trueload, strike: Any, words: str) -> None:
    """Run until host ``h2`` is lost, and check what is reported."""
    process = start(trueload, raylets)
    strike(raylets)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 4, out
    assert "host lost: h2" in out
    assert re.search(words, out), out
    wait_until(lambda: not has_engines(raylets.network), "the engines have gone", GONE_S)
    record = trueload.run("runs", "show", "last", "--json").json()["rows"][0]["record"]
    assert (record["verdict"], record["partial"]) == ("invalid", True)
    assert record["trouble"]["kind"] == "lost"
    assert record["throughput"]["ok_per_s"] is None


@pytest.mark.parametrize(
    ("strike", "words"),
    [
        (pull_the_link, "nothing was heard of it for |has not answered for 1.5 s"),
        (kill_the_engine, r"signal 9 \(SIGKILL\)"),
        (kill_the_actor, "the process of its actor has died"),
        (freeze_the_engine, "nothing was heard of it for |has told of no work for"),
    ],
)
def test_a_host_that_is_lost_is_named_and_the_run_saved_as_invalid(
    raylets: Raylets, trueload: Trueload, strike: Any, words: str
) -> None:
    lose(raylets, trueload, strike, words)
    raylets.network.mend()
    wait_until(lambda: is_quiet(raylets.network), "the actors have gone, too")


def test_a_host_whose_raylet_is_killed_is_lost(own_raylets: Raylets, trueload: Trueload) -> None:
    lose(own_raylets, trueload, kill_the_raylet, r"its Ray node \(raylet\) has died")
    wait_until(lambda: is_quiet(own_raylets.network), "the actors have gone, too")


def test_a_head_that_is_not_heard_any_more_holds_nobody_up(
    own_raylets: Raylets, trueload: Trueload
) -> None:
    process = start(trueload, own_raylets)
    own_raylets.network.hosts[0].link("down")
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 4, out
    assert f"the Ray cluster at {own_raylets.address} is lost: none of its hosts answers" in out
    assert "host lost: h" not in out
    wait_until(lambda: not has_engines(own_raylets.network), "the engines have gone everywhere")


def test_a_connection_to_the_head_that_breaks_is_no_hosts_fault(
    raylets: Raylets, trueload: Trueload
) -> None:
    process = start(trueload, raylets)
    assert raylets.network.hosts[0].kill(CLIENTS_SERVER) > 0
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 4, out
    assert f"the Ray cluster at {raylets.address} is lost: the connection to its head broke" in out
    assert "host lost: h" not in out
    assert "Traceback" not in out
    wait_until(lambda: is_quiet(raylets.network), "engines and actors have gone")


def break_the_connection(raylets: Raylets) -> None:
    assert raylets.network.hosts[0].kill(CLIENTS_SERVER) > 0


def pull_the_heads_link(raylets: Raylets) -> None:
    raylets.network.hosts[0].link("down")


@pytest.mark.parametrize(
    ("strike", "words"),
    [
        (break_the_connection, "is lost: the connection to its head broke"),
        (pull_the_heads_link, "is lost: no answer for 10"),
    ],
)
def test_a_head_that_is_lost_while_hosts_are_waited_for_is_named(
    raylets: Raylets, trueload: Trueload, strike: Any, words: str
) -> None:
    process = await_a_fourth(raylets, trueload, "--hosts-wait", "60s")
    assert process.stderr is not None
    said = next((line for line in process.stderr if "waiting for hosts" in line), "")
    assert "0 of 4 are there" in said or "3 of 4 are there" in said
    strike(raylets)
    _, err = process.communicate(timeout=60)
    raylets.network.mend()
    assert process.returncode == 2, err
    assert re.search(re.escape(f"the Ray cluster at {raylets.address} ") + words, err), err
    assert "bug" not in err
    assert "Traceback" not in err


def test_ctrl_c_while_hosts_are_waited_for_ends_the_wait(
    raylets: Raylets, trueload: Trueload
) -> None:
    head = raylets.network.hosts[0]
    before = set(head.processes(CLIENTS_SERVER))
    process = await_a_fourth(raylets, trueload)
    wait_until(lambda: bool({*head.processes(CLIENTS_SERVER)} - before), "it has joined")
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err.splitlines()[0]) == (130, "error: interrupted")


def await_a_fourth(raylets: Raylets, trueload: Trueload, *options: str) -> subprocess.Popen[str]:
    """Start a run that needs one host more than there are."""
    server = serve(trueload, raylets.network)
    return trueload.start("http", server.url, "--place", raylets.address, "--hosts", "4", *options)


def test_a_host_that_the_cluster_gets_later_joins_the_run(
    tmp_path: Path, trueload: Trueload
) -> None:
    if why := missing():
        pytest.skip(why)
    result = tmp_path / "result.json"
    with Network(tmp_path / "hosts", 2) as network:
        raylets = start_ray(network, 1)
        server = serve(trueload, network)
        process = trueload.start(
            *("http", f"{server.url}/", "-c", "4", *LONG, "--json", result),
            *("--place", raylets.address, "--hosts", "1..2"),
        )
        wait_until(lambda: connected(network, server) == 4, "the first has connected")
        add_node(raylets, network.hosts[1])
        assert process.stderr is not None
        said = next((line for line in process.stderr if " join" in line), "")
        assert said.startswith("h2 joins: from second ")
        wait_until(lambda: is_at_work(network.hosts[1]), "the second one works")
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
        wait_until(lambda: is_quiet(network), "engines and actors have gone")
    hosts = json.loads(result.read_text())["hosts"]
    assert [(host["place"], host["joined_s"] is None) for host in hosts] == [
        ("h1", True),
        ("h2", False),
    ]
    assert all(host["ok"] for host in hosts)


@pytest.mark.parametrize(
    "how",
    [signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP],
)
def test_a_front_that_ends_leaves_nothing_on_any_host(
    raylets: Raylets, trueload: Trueload, how: signal.Signals
) -> None:
    process = start(trueload, raylets)
    os.kill(process.pid, how)
    if how is signal.SIGSTOP:
        wait_until(lambda: not has_engines(raylets.network), "the engines have gone", GONE_S)
        os.kill(process.pid, signal.SIGCONT)
    process.communicate(timeout=60)
    wait_until(lambda: not has_engines(raylets.network), "the engines have gone", GONE_S)
    wait_until(lambda: is_quiet(raylets.network), "the actors have gone")
