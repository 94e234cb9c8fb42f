"""``--server-place``: the reference server on another host.

It is observed as if it ran here, and ends with the command that started it.
"""

from __future__ import annotations

import re
import signal
import subprocess

import pytest
from harness import Trueload, against
from waiting import wait_until

from hosts.network import Host
from hosts.sshd import Ssh

OURS = "/programs/trueload-"
PORT = 8080


def ours(host: Host) -> dict[int, str]:
    return host.processes(OURS)


@pytest.mark.parametrize(
    ("command", "scheme", "path"),
    [("http", "http://", "/perf"), ("ws", "ws://", "/echo"), ("tcp", "", "")],
)
def test_a_server_that_was_started_there_is_accounted_for_as_one_here(
    trueload: Trueload, ssh: Ssh, command: str, scheme: str, path: str
) -> None:
    host = ssh.network.hosts[0]
    record = trueload.run(
        *(command, f"{scheme}{host.address}:{PORT}{path}", "-c", "4", "-d", "1s"),
        *("--place", "ssh:h2", "--server-place", "ssh:h1", "--json", "-"),
        env=ssh.env,
    ).json()
    server = record["server"]
    assert server["source"] == "started"
    assert server["cpu_s"] > 0
    assert server["peak_rss_bytes"] > 2**20
    assert 0 < server["saturation"] <= 1
    assert server["threads"] >= 1
    assert record["counts"]["ok"] > 10
    assert against(record) == set()
    wait_until(lambda: not ours(host), "server and agent have gone")
    assert list((host.folder / "tmp").iterdir()) == []


def test_the_cpus_of_a_lab_are_those_of_the_server(trueload: Trueload, ssh: Ssh) -> None:
    host = ssh.network.hosts[0]
    lab = trueload.folder.parent / "places.toml"
    lab.write_text('[[generators]]\nplace = "ssh:h2"\n[server]\nplace = "ssh:h1"\ncpus = "0"\n')
    record = trueload.run(
        *("http", f"http://{host.address}:{PORT}/", "-c", "2", "--requests", "500"),
        *("--lab", lab, "--server-place", "ssh:h1", "--json", "-"),
        env=ssh.env,
    ).json()
    assert record["server"]["source"] == "started"
    assert [each["place"] for each in record["hosts"]] == ["ssh:h2"]


def test_a_broadcast_has_its_server_there_for_all_its_steps(trueload: Trueload, ssh: Ssh) -> None:
    host = ssh.network.hosts[0]
    found = trueload.run(
        *("ws", f"ws://{host.address}:{PORT}/ws", "--mode", "broadcast", "--step", "2"),
        *("--steps", "2", "--samples", "20", "--place", "ssh:h2", "--server-place", "ssh:h1"),
        *("--json", "-"),
        env=ssh.env,
    ).json()
    assert len(found["steps"]) >= 2
    for step in found["steps"]:
        assert step["server"]["source"] == "started"
        assert step["hosts"][0]["place"] == "ssh:h2"
    assert not ours(host)


def test_what_cannot_be_served_there_is_told(trueload: Trueload, ssh: Ssh) -> None:
    host = ssh.network.hosts[0]
    for url, words in (
        (f"https://{host.address}:{PORT}/", "without TLS"),
        ("http://192.0.2.7:8080/", "ssh:h1: cannot listen on 192.0.2.7:8080"),
    ):
        done = trueload.run("http", url, "--server-place", "ssh:h1", env=ssh.env)
        assert done.code == 2
        error, hint = done.err.splitlines()
        assert words in error
        assert hint.startswith("hint: ")
    assert not ours(host)


def test_a_host_without_python_is_told(trueload: Trueload, own_ssh: Ssh) -> None:
    host = own_ssh.network.hosts[0]
    folder = host.only("sh uname cat cut mkdir chmod mv mktemp rm sha256sum env")
    own_ssh.restart(host, env=f"PATH={folder}")
    done = trueload.run(
        *("http", f"http://{host.address}:{PORT}/", "-d", "1s", "--server-place", "ssh:h1"),
        env=own_ssh.env,
    )
    assert done.code == 2
    assert "h1 has no python3" in done.err
    wait_until(lambda: not ours(host), "the server has gone")


@pytest.mark.parametrize("lost", ["front", "link"])
def test_nothing_is_left_there_when_the_front_or_the_link_is_lost(
    trueload: Trueload, ssh: Ssh, lost: str
) -> None:
    host = ssh.network.hosts[0]
    front = trueload.start(
        *("http", f"http://{host.address}:{PORT}/", "-d", "60s", "--timeout", "1s"),
        *("--server-place", "ssh:h1"),
        env=ssh.env,
    )
    wait_until(lambda: len(ours(host)) >= 2, "server and agent run")
    host.await_packets()
    if lost == "link":
        host.link("down")
    else:
        front.send_signal(signal.SIGKILL)
    wait_until(lambda: not ours(host), "server and agent have gone")
    front.send_signal(signal.SIGINT)
    front.communicate(timeout=60)


def test_serve_runs_there_until_it_is_told_to_end(trueload: Trueload, ssh: Ssh) -> None:
    host = ssh.network.hosts[0]
    served = trueload.start(
        *("serve", "http", "--listen", f"{host.address}:0", "--server-place", "ssh:h1"),
        env=ssh.env,
        stderr=subprocess.STDOUT,
    )
    assert served.stdout is not None
    line = served.stdout.readline()
    found = re.search(r"http://\S+", line)
    assert found, line
    done = trueload.run("http", found[0], "--requests", "100", "--json", "-")
    assert done.json()["counts"]["ok"] == 100
    served.send_signal(signal.SIGINT)
    output, _ = served.communicate(timeout=30)
    assert served.returncode == 0
    assert re.search(r"served 1\d\d responses", output)
    assert not ours(host)
