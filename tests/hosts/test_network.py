"""Tests of the network under the tests of places: links, processes, ssh."""

from __future__ import annotations

import subprocess
from pathlib import Path

from hosts.network import Network, lines_of
from hosts.sshd import Ssh


def reaches(network: Network, number: int, address: str) -> bool:
    """Tell whether a host can reach an address; a refused connection counts, too."""
    code = (
        "import socket, sys\n"
        "s = socket.socket(); s.settimeout(1)\n"
        f"e = s.connect_ex(('{address}', 9))\n"
        "sys.exit(0 if e == 111 else 1)\n"
    )
    done = network.hosts[number].run("/usr/bin/env", "python3", "-c", code, check=False)
    return done.returncode == 0


def test_hosts_reach_each_other_and_this_machine_until_a_link_is_down(network: Network) -> None:
    first, second, _ = network.hosts
    assert reaches(network, 0, second.address)
    assert reaches(network, 0, network.address)
    second.link("down")
    assert not reaches(network, 0, second.address)
    assert reaches(network, 0, network.address)
    second.link("up")
    assert reaches(network, 0, second.address)
    assert first.address != second.address


def test_what_runs_on_a_host_is_seen_and_is_of_that_host_alone(network: Network) -> None:
    first, second, _ = network.hosts
    process = first.start("cat", "-", stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write("there\n")
    process.stdin.flush()
    lines_of(process, "there")
    assert "cat -" in first.processes().values()
    assert "cat -" not in second.processes().values()
    assert first.kill("cat -") == 1
    process.wait(10)
    assert "cat -" not in first.processes().values()


def test_a_host_is_logged_in_to_by_its_name(ssh: Ssh) -> None:
    for host in ssh.network.hosts:
        result = ssh.run("-o", "BatchMode=yes", host.name, "echo $XDG_CACHE_HOME; ip -br address")
        assert str(host.cache) in result.stdout
        assert host.address in result.stdout


def test_nothing_is_left_of_a_network_that_has_gone(tmp_path: Path) -> None:
    with Network(tmp_path, 2) as made:
        pids = [host.pid for host in made.hosts]
        names = [made.bridge, *(host.link_name for host in made.hosts)]
        made.hosts[0].start("sleep", "1000")
    links = subprocess.run(["ip", "-br", "link"], capture_output=True, text=True).stdout
    assert not [name for name in names if name in links]
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
