"""``--place ssh:HOST`` on the command line: the same measurement from another host.

With any protocol; and whatever ends, on either side, leaves nothing running on the other.
"""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from harness import Server, Trueload, against, put_script, start_server
from waiting import wait_until

from hosts.network import Host
from hosts.sshd import Ssh, logins

ENGINE = "programs/trueload-engine"


@pytest.fixture(scope="module")
def far(ssh_to_three_hosts: Ssh, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A reference server on this machine that the hosts can reach."""
    command = Trueload(tmp_path_factory.mktemp("far"))
    yield start_server(command, address=ssh_to_three_hosts.network.address)
    command.close()


def engines(host: Host) -> dict[int, str]:
    return host.processes(ENGINE)


def test_load_comes_from_the_host_and_the_record_says_so(
    trueload: Trueload, ssh: Ssh, far: Server
) -> None:
    done = trueload.run(
        *("http", far.url, "-c", "8", "-d", "1s", "--place", "ssh:h1", "--json", "-"), env=ssh.env
    )
    assert done.code in (0, 4), done
    record = done.json()
    assert [host["place"] for host in record["hosts"]] == ["ssh:h1"]
    assert record["hosts"][0]["environment"]["versions"]["engine"]
    assert record["counts"]["ok"] > 100
    assert record["server"] is None, "a server on another machine than the load is not seen"
    assert against(record) == set()
    assert not engines(ssh.network.hosts[0])


def test_a_lab_is_loaded_from_its_hosts(
    trueload: Trueload, ssh: Ssh, far: Server, tmp_path: Path
) -> None:
    lab = tmp_path / "places.toml"
    second = ssh.network.hosts[1]
    second.run("ip", "address", "replace", f"{second.address}/24", "dev", "eth0")
    lab.write_text(
        '[[generators]]\nplace = "ssh:h1"\ncpus = "0"\n'
        f'[[generators]]\nplace = "ssh:root@h2"\nlocal_addresses = ["{second.address}"]\n'
    )
    record = trueload.run(
        *("http", far.url, "-c", "4", "--requests", "2001", "--lab", lab, "--json", "-"),
        env=ssh.env,
    ).json()
    assert [host["place"] for host in record["hosts"]] == ["ssh:h1", "ssh:root@h2"]
    assert record["hosts"][0]["generator"]["cpus"] == [0]
    assert record["counts"]["issued"] == 2001


def start_long(trueload: Trueload, ssh: Ssh, far: Server, *flags: str) -> Any:
    """Start a run of a minute; it sends when this returns."""
    front = trueload.start(
        *("http", far.url, "-c", "4", "-d", "60s", "--warmup", "0", *flags), env=ssh.env
    )
    host = ssh.network.hosts[0]
    wait_until(lambda: bool(engines(host)), "the engine has started")
    host.await_packets()
    return front


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_anywhere_when_the_front_is_ended(
    trueload: Trueload, ssh: Ssh, far: Server, how: signal.Signals
) -> None:
    host = ssh.network.hosts[0]
    front = start_long(trueload, ssh, far, "--place", "ssh:h1", "--place", "ssh:h2")
    below = psutil.Process(front.pid).children(recursive=True)
    assert any("ssh" in each.name() for each in below)
    front.send_signal(how)
    front.communicate(timeout=60)
    for each in ssh.network.hosts:
        wait_until(lambda each=each: not engines(each), f"the engine on {each.name} has gone")  # type: ignore[misc]
    wait_until(lambda: not any(each.is_running() for each in below), "every ssh here has gone")
    wait_until(lambda: not logins(host), "nobody is logged in there")


def test_an_interrupt_ends_the_engine_there_and_the_run_is_saved(
    trueload: Trueload, ssh: Ssh, far: Server
) -> None:
    front = start_long(trueload, ssh, far, "--place", "ssh:h1")
    front.send_signal(signal.SIGINT)
    out, _ = front.communicate(timeout=30)
    assert front.returncode == 130
    assert "saved" in out
    assert not engines(ssh.network.hosts[0])


def ssh_that_leaves_a_file(folder: Path) -> dict[str, str]:
    """The environment of an ``ssh`` that creates a file when it is started."""
    folder.mkdir()
    put_script(folder / "ssh", f"touch {folder}/started\nexit 255")
    return {"PATH": f"{folder}:/usr/bin:/bin"}


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--place", "nowhere"), "'nowhere' is not a place"),
        (("--place", "ssh:-oProxyCommand=touch"), "begins with '-'"),
        (("--place", "ssh:$(touch x)"), "not a host"),
        (("--place", "ssh:h1", "--place", "ssh:h1"), "ssh:h1 is given twice"),
        (("--place", "ssh:h1", "--hosts", "3"), "--hosts is for a cluster, Ray or Kubernetes"),
        (("--lab", "none.toml"), "none.toml cannot be read"),
        (("--place", "ssh:h1", "--lab", "none.toml"), "--lab and --place cannot be used together"),
    ],
)
def test_bad_places_get_a_line_and_a_hint_and_nothing_is_started(
    trueload: Trueload, tmp_path: Path, flags: tuple[str, ...], words: str
) -> None:
    env = ssh_that_leaves_a_file(tmp_path / "bin")
    done = trueload.run("http", "http://127.0.0.1:1/", *flags, env=env, cwd=tmp_path)
    assert done.code == 2
    error, hint = done.err.splitlines()
    assert error.startswith("error: ")
    assert words in error
    assert hint.startswith("hint: ")
    assert not (tmp_path / "bin" / "started").exists()
    assert not (tmp_path / "x").exists()


def test_a_host_that_cannot_be_used_ends_the_command_before_a_run_is_begun(
    trueload: Trueload, ssh: Ssh, far: Server
) -> None:
    ssh.network.hosts[1].link("down")
    done = trueload.run("http", far.url, "--place", "ssh:h1", "--place", "ssh:h2", env=ssh.env)
    assert done.code == 2
    assert done.out == ""
    error, hint = done.err.splitlines()
    assert "h2" in error
    assert hint == "hint: is it up, and its network reachable from here?"
    assert not engines(ssh.network.hosts[0])
    if trueload.store.exists():
        with sqlite3.connect(trueload.store) as store:
            assert store.execute("SELECT count(*) FROM runs").fetchone() == (0,)
