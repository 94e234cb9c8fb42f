"""One run over three hosts by ssh, as a user starts it, with every protocol.

A lost host is named, and the run leaves nothing behind, however it ends.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator

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


def is_quiet(network: Network) -> bool:
    return not any(host.processes(ENGINE) for host in network.hosts)


def start(
    trueload: Trueload, ssh: Ssh, server: Server, connections: int, *words: str
) -> subprocess.Popen[str]:
    """Start a long run; all its connections are there when this returns."""
    process = trueload.start(
        *("http", f"{server.url}/", "-c", str(connections), *LONG, *words),
        env=ssh.env,
        stderr=subprocess.STDOUT,
    )
    network = ssh.network
    words = ("ss", "-Htn", "state", "established", "dst", f"{network.address}:{server.port}")

    def connected() -> int:
        return sum(len(host.run(*words).stdout.splitlines()) for host in network.hosts)

    wait_until(lambda: connected() == connections, "all are connected")
    return process


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


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (None, "nothing was heard from it for "),
        (signal.SIGSTOP, "nothing was heard from it for "),
        (signal.SIGKILL, "signal 9 (SIGKILL)"),
    ],
    ids=["link down", "engine frozen", "engine killed"],
)
def test_a_host_that_is_lost_is_named_and_the_run_saved_as_invalid(
    ssh: Ssh, trueload: Trueload, served: Server, number: int | None, words: str
) -> None:
    process = start(trueload, ssh, served, 6, *PLACES)
    lost = ssh.network.hosts[1]
    if number is None:
        lost.link("down")
    else:
        assert lost.kill(ENGINE, number) == 1
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


@pytest.mark.parametrize("by_link", [False, True])
def test_a_lost_jump_host_is_the_one_cause_and_blames_no_host(
    ssh: Ssh,
    trueload: Trueload,
    served: Server,
    behind_a_jump_host: tuple[str, ...],
    by_link: bool,
) -> None:
    process = start(trueload, ssh, served, 4, "--json", "-", *behind_a_jump_host)
    jump_host = ssh.network.hosts[2]
    if by_link:
        jump_host.link("down")
    else:
        assert jump_host.kill("sshd: root") > 0
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
