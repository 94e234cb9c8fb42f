"""`trueload doctor --place ssh:HOST`: hosts as they are, and one that is lost meanwhile."""

from __future__ import annotations

import json

from harness import Trueload
from waiting import wait_until

from hosts.sshd import Ssh

PLACES = ("--place", "ssh:h1", "--place", "ssh:h2")


def test_each_host_is_examined_by_its_own_files(trueload: Trueload, ssh: Ssh) -> None:
    first = ssh.network.hosts[0]
    first.run("sysctl", "-w", "net.core.somaxconn=100")
    first.run("sysctl", "-w", "net.ipv4.ip_local_port_range=20000 20999")
    try:
        ended = trueload.run("doctor", "--quick", "--json", *PLACES, env=ssh.env)
    finally:
        first.run("sysctl", "-w", "net.core.somaxconn=4096")
        first.run("sysctl", "-w", "net.ipv4.ip_local_port_range=32768 60999")
    assert ended.code == 0, ended
    hosts = ended.json()["hosts"]
    assert [host["place"] for host in hosts] == ["ssh:h1", "ssh:h2"]
    found = [{each["name"]: each for each in host["findings"]} for host in hosts]
    for name, value in (("backlog", "somaxconn 100"), ("local-ports", "1,000 ports")):
        assert [host[name]["status"] for host in found] == ["warn", "pass"], name
        assert found[0][name]["value"] == value
    assert all(host["engine"]["status"] == "pass" for host in found)
    assert not any(host.processes("programs/trueload-") for host in ssh.network.hosts)


def test_one_that_is_lost_later_keeps_what_was_found_of_it_and_of_the_others(
    trueload: Trueload, ssh: Ssh
) -> None:
    front = trueload.start("doctor", "--json", *PLACES, env=ssh.env)
    lost = ssh.network.hosts[1]
    wait_until(lambda: bool(lost.processes("programs/trueload-engine")), "an engine runs on h2")
    lost.link("down")
    out, err = front.communicate(timeout=60)
    assert front.returncode == 0, err
    first, second = (
        {each["name"]: each for each in host["findings"]} for host in json.loads(out)["hosts"]
    )
    assert first["engine"]["status"] == "pass"
    assert second["engine"]["status"] == "fail"
    assert "h2" in second["engine"]["value"]
    assert second["backlog"]["status"] == "pass"
