"""One run over hosts of a Ray cluster, with a node on each.

A host, its actor or the head that is lost is reported, and the run leaves nothing behind, however
it ends. What needs no network between the hosts is tested in ``test_ray``.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from harness import Server, Trueload, start_server
from waiting import wait_until

from hosts.network import Host, Network
from hosts.raylets import Raylets, add_node, start_ray

ENGINE = "trueload-engine"
ACTOR = "ray::Host"
CLIENTS_SERVER = "--mode=specific-server"  # the head starts one for each client
LONG = ("--duration", "60s", "--warmup", "100ms")
WORKED_S = 0.3
GONE_S = 6.0
"""An engine is gone within 3 s of its loss; the rest is a loaded machine's share."""


pytestmark = pytest.mark.timeout(120, func_only=True)  # not while it waits for others


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Wait until no other worker process is here. What starts on Ray takes ten seconds of CPU time,
    and four at once would find each other silent."""
    with Path(tempfile.gettempdir(), "trueload-ray.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def ray_on_three_hosts(three_hosts: Network) -> Raylets:
    """Ray on the three hosts."""
    with alone():
        return start_ray(three_hosts)


@pytest.fixture(autouse=True)
def no_others() -> Iterator[None]:
    """Run one test of these at a time."""
    with alone():
        yield


@pytest.fixture
def raylets(network: Network, ray_on_three_hosts: Raylets) -> Raylets:
    """Ray on three hosts with their links up."""
    return ray_on_three_hosts


def serve(trueload: Trueload, network: Network) -> Server:
    return start_server(trueload, "--threads", "1", address=network.address)


def is_quiet(network: Network, *but: str) -> bool:
    """Whether no host runs an engine or an actor."""
    return not any(
        host.processes(what) for host in network.hosts for what in {ENGINE, ACTOR}.difference(but)
    )


def start(trueload: Trueload, raylets: Raylets) -> subprocess.Popen[str]:
    """Start a long run over every host; it measures when this returns."""
    network = raylets.network
    server = serve(trueload, network)
    hosts = len(network.hosts)
    process = trueload.start(
        *("http", f"{server.url}/", "-c", str(2 * hosts), *LONG),
        *("--place", raylets.address, "--hosts", str(hosts)),
        stderr=subprocess.STDOUT,
    )

    def measures() -> bool:
        connected = raylets.connections(server.host, server.port)
        return connected == 2 * hosts and all(map(is_at_work, network.hosts))

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


def test_a_run_over_three_hosts_is_whole(raylets: Raylets, trueload: Trueload) -> None:
    server = serve(trueload, raylets.network)
    done = trueload.run(
        *("http", f"{server.url}/", "-c", "7", "--requests", "301", "--warmup", "50ms"),
        *("--json", "-", "--place", raylets.address, "--hosts", "3"),
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


OF_HOST = "host lost: h2: "
SILENT = f"{OF_HOST}(nothing was heard from it|it has not answered|its engine has told of no work)"
OF_CLUSTER = "the Ray cluster at .* is lost: "


@pytest.mark.parametrize(
    ("strike", "words"),
    [
        (lambda hosts: hosts[1].link("down"), SILENT),
        (lambda hosts: hosts[1].kill(ENGINE, signal.SIGSTOP), SILENT),
        (lambda hosts: hosts[1].kill(ACTOR), f"{OF_HOST}the process of its actor has died"),
        (lambda hosts: hosts[0].kill(CLIENTS_SERVER), f"{OF_CLUSTER}the connection to its head"),
        (lambda hosts: hosts[0].link("down"), f"{OF_CLUSTER}none of its hosts answers"),
    ],
    ids=["link down", "engine frozen", "actor killed", "connection broken", "head's link down"],
)
def test_what_is_lost_is_named_and_the_run_saved_as_invalid(
    raylets: Raylets, trueload: Trueload, strike: Callable[[list[Host]], object], words: str
) -> None:
    process = start(trueload, raylets)
    strike(raylets.network.hosts)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 4, out
    assert re.search(words, out), out
    assert ("host lost: " in out) == words.startswith(OF_HOST)
    assert "Traceback" not in out
    wait_until(lambda: is_quiet(raylets.network, ACTOR), "the engines have gone", GONE_S)
    record = trueload.run("runs", "show", "last", "--json").json()["rows"][0]["record"]
    assert (record["verdict"], record["partial"]) == ("invalid", True)
    assert record["trouble"]["kind"] == "lost"
    assert record["throughput"]["ok_per_s"] is None
    raylets.network.fix()
    wait_until(lambda: is_quiet(raylets.network), "the actors have gone, too")


@pytest.mark.parametrize(
    ("strike", "code", "words"),
    [
        (lambda head, front: head.link("down"), 2, f"{OF_CLUSTER}no answer for 10"),
        (lambda head, front: os.kill(front, signal.SIGINT), 130, "^error: interrupted\n"),
    ],
    ids=["head's link down", "Ctrl-C"],
)
def test_what_ends_the_wait_for_hosts_is_told(
    raylets: Raylets,
    trueload: Trueload,
    strike: Callable[[Host, int], None],
    code: int,
    words: str,
) -> None:
    server = serve(trueload, raylets.network)
    process = trueload.start(
        *("http", server.url, "--place", raylets.address, "--hosts", "4", "--hosts-wait", "60s")
    )
    assert process.stderr is not None
    said = next((line for line in process.stderr if "waiting for hosts" in line), "")
    assert "0 of 4 are there" in said or "3 of 4 are there" in said
    strike(raylets.network.hosts[0], process.pid)
    _, err = process.communicate(timeout=60)
    raylets.network.fix()
    assert process.returncode == code, err
    assert re.search(words, err), err
    assert "bug" not in err
    assert "Traceback" not in err


def test_a_host_that_the_cluster_gets_later_joins_the_run(
    trueload: Trueload, tmp_path: Path
) -> None:
    result = tmp_path / "result.json"
    with Network(tmp_path / "hosts", 2) as network:
        raylets = start_ray(network, 1)
        server = serve(trueload, network)
        process = trueload.start(
            *("http", f"{server.url}/", "-c", "4", *LONG, "--json", result),
            *("--place", raylets.address, "--hosts", "1..2"),
        )
        wait_until(lambda: raylets.connections(server.host, server.port) == 4, "it has connected")
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


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_front_that_ends_leaves_nothing_on_any_host(
    raylets: Raylets, trueload: Trueload, how: signal.Signals
) -> None:
    process = start(trueload, raylets)
    os.kill(process.pid, how)
    if how is signal.SIGSTOP:
        wait_until(lambda: is_quiet(raylets.network, ACTOR), "the engines have gone", GONE_S)
        os.kill(process.pid, signal.SIGCONT)
    process.communicate(timeout=60)
    wait_until(lambda: is_quiet(raylets.network, ACTOR), "the engines have gone", GONE_S)
    wait_until(lambda: is_quiet(raylets.network), "the actors have gone")
