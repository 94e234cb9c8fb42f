"""Runs over three hosts by ssh, which are below an aggregator on this machine."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import psutil
import pytest
from harness import Server, Trueload, start_server
from waiting import wait_until

from hosts.network import Network
from hosts.sshd import Ssh
from hosts.test_fleet_ssh import ENGINE, connected, engines, is_quiet, record_of

LAB = "tree = true\n" + "".join(
    f'[[generators]]\nplace = "ssh:{name}"\n' for name in ("h1", "h2", "h3")
)


@pytest.fixture
def lab(tmp_path: Path) -> tuple[str, str]:
    """The options that name a lab of the three hosts."""
    path = tmp_path / "places.toml"
    path.write_text(LAB)
    return "--lab", str(path)


@pytest.fixture
def served(ssh: Ssh, trueload: Trueload) -> Server:
    """A reference server on this machine that the hosts can reach."""
    return start_server(trueload, "--threads", "1", service="http", address=ssh.network.address)


def aggregators(network: Network, front: int) -> list[psutil.Process]:
    """The engines of a front on this machine that have children."""
    below = psutil.Process(front).children(recursive=True)
    return [each for each in below if each.name() == "trueload-engine" and each.children()]


def test_a_run_below_an_aggregator_is_the_sum_of_its_hosts(
    ssh: Ssh, trueload: Trueload, served: Server, lab: tuple[str, str]
) -> None:
    words = ("http", f"{served.url}/", "-c", "7", "--requests", "301", "--warmup", "50ms")
    done = trueload.run(*words, *lab, "--json", "-", env=ssh.env)
    assert done.code in (0, 4), done  # a busy machine may make it suspect or invalid, never lost
    record = done.json()
    assert record["trouble"] is None
    assert [host["place"] for host in record["hosts"]] == ["ssh:h1", "ssh:h2", "ssh:h3"]
    assert [host["connections"] for host in record["hosts"]] == [3, 2, 2]
    assert record["counts"]["scheduled"] == 301
    assert sum(host["ok"] for host in record["hosts"]) == record["counts"]["ok"] > 0
    seconds = sum(second["ok"] for second in record["series"])
    assert seconds == record["counts"]["ok"] == record["latency_ns"]["count"]
    assert all(host["clock_bound_ns"] > 0 for host in record["hosts"])
    wait_until(lambda: is_quiet(ssh.network), "the engines have gone")


def start(
    trueload: Trueload, ssh: Ssh, served: Server, lab: tuple[str, str]
) -> subprocess.Popen[str]:
    """Start a long run, and wait until all have connected."""
    words = ("http", f"{served.url}/", "-c", "6", "--duration", "60s", "--warmup", "100ms")
    process = trueload.start(*words, *lab, env=ssh.env, stderr=subprocess.STDOUT)
    wait_until(lambda: all(engines(ssh.network).values()), "an engine runs on each host")
    wait_until(lambda: connected(ssh.network, served) == 6, "all are connected")
    assert len(aggregators(ssh.network, process.pid)) == 1
    return process


@pytest.mark.parametrize(
    ("strike", "words"),
    [("link", "nothing was heard of it for "), ("kill", "signal 9 (SIGKILL)")],
)
def test_a_host_below_an_aggregator_that_is_lost_is_named(
    ssh: Ssh,
    trueload: Trueload,
    served: Server,
    lab: tuple[str, str],
    strike: str,
    words: str,
) -> None:
    process = start(trueload, ssh, served, lab)
    if strike == "link":
        ssh.network.hosts[1].link("down")
    else:
        assert ssh.network.hosts[1].kill(ENGINE) == 1
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 4, out
    assert "host lost: ssh:h2" in out
    assert words in out
    record = record_of(trueload)
    assert (record["verdict"], record["partial"]) == ("invalid", True), "what was heard is saved"
    assert [host["lost"] is not None for host in record["hosts"]] == [False, True, False]
    wait_until(lambda: is_quiet(ssh.network), "the engines have gone, on the lost host, too")


@pytest.mark.parametrize("whom", ["front", "aggregator"])
def test_nothing_runs_on_when_the_front_or_an_aggregator_is_killed(
    ssh: Ssh, trueload: Trueload, served: Server, lab: tuple[str, str], whom: str
) -> None:
    process = start(trueload, ssh, served, lab)
    (aggregator,) = aggregators(ssh.network, process.pid)
    if whom == "front":
        process.kill()
    else:
        aggregator.send_signal(signal.SIGKILL)
    out, _ = process.communicate(timeout=60)
    if whom == "aggregator":
        assert process.returncode == 4, out
        assert "the aggregator above it has failed" in out
    wait_until(lambda: is_quiet(ssh.network), "the engines have gone")
    wait_until(lambda: not aggregator.is_running(), "the aggregator has gone")
