"""One run over three hosts by ssh, as a user starts it, with every protocol.

A lost host is named, and the run leaves nothing behind, however it ends.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from harness import Server, Trueload, start_server
from waiting import wait_until

from hosts.network import Network
from hosts.sshd import Ssh

ENGINE = "programs/trueload-engine"
PLACES = ("--place", "ssh:h1", "--place", "ssh:h2", "--place", "ssh:h3")
LONG = ("--duration", "60s", "--warmup", "100ms")


def serve(trueload: Trueload, network: Network, service: str) -> Server:
    return start_server(trueload, "--threads", "1", service=service, address=network.address)


@pytest.fixture
def served(ssh: Ssh, trueload: Trueload) -> Server:
    """A reference server on this machine that the hosts can reach."""
    return serve(trueload, ssh.network, "http")


def engines(network: Network) -> dict[str, int]:
    """The number of engines on each host."""
    return {host.name: len(host.processes(ENGINE)) for host in network.hosts}


def is_quiet(network: Network) -> bool:
    return not any(engines(network).values())


def start(trueload: Trueload, ssh: Ssh, *words: str) -> subprocess.Popen[str]:
    return trueload.start(*words, env=ssh.env, stderr=subprocess.STDOUT)


PROTOCOLS = [
    ("http", "http", ("http", "{url}/", "-c", "7", "--requests", "301")),
    ("http, open loop", "http", ("http", "{url}/", "-c", "7", "--rate", "500/s", "-d", "1s")),
    ("tcp echo", "tcp", ("tcp", "{address}", "-c", "7", "--requests", "301")),
    ("WebSocket echo", "ws", ("ws", "{ws}/echo", "--mode", "echo", "-c", "7", "--requests", "301")),
]


@pytest.mark.parametrize(("what", "service", "words"), PROTOCOLS)
def test_every_protocol_runs_over_three_hosts(
    ssh: Ssh, trueload: Trueload, what: str, service: str, words: tuple[str, ...]
) -> None:
    server = serve(trueload, ssh.network, service)
    address = server.url.split("/")[2]
    asked = [word.format(url=server.url, address=address, ws=f"ws://{address}") for word in words]
    done = trueload.run(*asked, *PLACES, "--warmup", "50ms", "--json", "-", env=ssh.env)
    assert done.code in (0, 4), done  # a busy machine may make it suspect or invalid, never lost
    record = done.json()
    assert record["trouble"] is None, what
    assert [host["place"] for host in record["hosts"]] == ["ssh:h1", "ssh:h2", "ssh:h3"]
    assert [host["connections"] for host in record["hosts"]] == [3, 2, 2]
    counts = record["counts"]
    assert counts["scheduled"] == (500 if "--rate" in words else 301)
    assert counts["ok"] + sum(counts["failed"].values()) + counts["cancelled"] == counts["issued"]
    assert sum(host["ok"] for host in record["hosts"]) == counts["ok"] > 0
    assert all(host["clock_bound_ns"] > 0 for host in record["hosts"])
    wait_until(lambda: is_quiet(ssh.network), "the engines have gone")


def test_a_search_runs_over_three_hosts(ssh: Ssh, trueload: Trueload, served: Server) -> None:
    words = ("http", f"{served.url}/", "-c", "6", "--limit", "p99<1ns", *PLACES)
    done = trueload.run(*words, env=ssh.env)
    assert done.code in (1, 4), done  # 4 if a busy machine makes the result invalid
    assert "the lowest tried was" in done.out
    wait_until(lambda: is_quiet(ssh.network), "the engines have gone")


def pull_the_link(ssh: Ssh) -> None:
    ssh.network.hosts[1].link("down")


def kill_an_engine(ssh: Ssh) -> None:
    assert ssh.network.hosts[1].kill(ENGINE) == 1


def freeze_an_engine(ssh: Ssh) -> None:
    assert ssh.network.hosts[1].kill(ENGINE, signal.SIGSTOP) == 1


@pytest.mark.parametrize(
    ("strike", "words"),
    [
        (pull_the_link, "nothing was heard of it for "),
        (freeze_an_engine, "nothing was heard of it for "),
        (kill_an_engine, "signal 9 (SIGKILL)"),
    ],
)
def test_a_host_that_is_lost_is_named_and_the_run_saved_as_invalid(
    ssh: Ssh, trueload: Trueload, served: Server, strike: Any, words: str
) -> None:
    process = start(trueload, ssh, "http", f"{served.url}/", "-c", "6", *LONG, *PLACES)
    wait_until(lambda: all(engines(ssh.network).values()), "an engine runs on each host")
    wait_until(lambda: connected(ssh.network, served) == 6, "all are connected")
    strike(ssh)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 4, out
    assert "host lost: ssh:h2" in out
    assert words in out
    wait_until(lambda: is_quiet(ssh.network), "the engines have gone, on the lost host, too")
    record = trueload.last_rows()[0]["record"]
    assert (record["verdict"], record["partial"]) == ("invalid", True)
    assert record["trouble"]["kind"] == "lost"
    assert record["throughput"]["ok_per_s"] is None
    assert [host["place"] for host in record["hosts"]] == ["ssh:h1", "ssh:h2", "ssh:h3"]
    assert [host["lost"] is None for host in record["hosts"]] == [True, False, True]
    assert trueload.run("runs", "list", "--json").json()[0]["state"] == "partial"


@pytest.fixture
def behind_a_jump_host(ssh: Ssh) -> Iterator[tuple[str, ...]]:
    """The places of two hosts that the user reaches through the third one."""
    config, jump = ssh.config.read_text(), ssh.folder / "bin" / "ssh"
    wrapped = f"ProxyCommand {jump} -W %h:%p h3"
    ssh.config.write_text(f"Match host h1,h2\n    {wrapped}\n{config}")
    yield PLACES[:4]
    ssh.config.write_text(config)


def cut_off(ssh: Ssh) -> None:
    assert ssh.network.hosts[2].kill("sshd: root") > 0


def pull_its_link(ssh: Ssh) -> None:
    ssh.network.hosts[2].link("down")


@pytest.mark.parametrize("strike", [cut_off, pull_its_link])
def test_a_lost_jump_host_is_the_one_cause_and_blames_no_host(
    ssh: Ssh,
    trueload: Trueload,
    served: Server,
    behind_a_jump_host: tuple[str, ...],
    strike: Callable[[Ssh], None],
) -> None:
    words = ("-c", "4", "--json", "-", *LONG, *behind_a_jump_host)
    process = start(trueload, ssh, "http", f"{served.url}/", *words)
    wait_until(lambda: connected(ssh.network, served) == 4, "all are connected")
    strike(ssh)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 4, out
    record = trueload.last_rows()[0]["record"]
    cause = record["trouble"]["what"]
    assert cause.startswith("the way to all 2 hosts through the ProxyCommand `"), cause
    assert "host lost" not in out
    assert out.splitlines()[0].endswith(cause)
    checks = {check["name"]: check for check in record["checks"]}
    assert checks["hosts-lost"]["why"] == f"2 of 2 hosts lost: {cause}"
    wait_until(lambda: is_quiet(ssh.network), "the engines have gone")


def connected(network: Network, server: Server) -> int:
    """The number of connections that the hosts have to the server."""
    words = ("ss", "-Htn", "state", "established", "dst", f"{network.address}:{server.port}")
    return sum(len(host.run(*words).stdout.splitlines()) for host in network.hosts)
