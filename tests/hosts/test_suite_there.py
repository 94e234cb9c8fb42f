"""A suite whose subjects run on one host and whose load comes from another.

Subjects are built here and copied there once; their resource use is measured there, and they end
with the suite.
"""

from __future__ import annotations

import signal
import subprocess
from typing import Any

import pytest
from subject_world import World
from waiting import wait_until

from hosts.network import Host
from hosts.sshd import Ssh

SHORT = ("--requests", "200", "-c", "4", "--repeat", "1", "--cores", "single")


def run(world: World, ssh: Ssh, *flags: str) -> Any:
    return world.run(
        *("suite", "run", "quick", "--subjects", "python", *SHORT, "--server-place", "ssh:h1"),
        *flags,
        env=ssh.env,
    )


def subjects(host: Host) -> dict[int, str]:
    return host.processes("program.py")


def test_a_subject_is_built_here_and_measured_there(world: World, ssh: Ssh) -> None:
    host = ssh.network.hosts[0]
    world.add("fine", build=[["touch", "built-here"]])
    ended = run(world, ssh, "--place", "ssh:h2", "--json", "-")
    assert ended.code in (0, 4), ended
    (trial,) = ended.json()["trials"]
    assert trial["hosts"][0]["place"] == "ssh:h2"
    server = trial["server"]
    assert server["source"] == "started"
    assert server["cpu_s"] > 0
    assert server["peak_rss_bytes"] > 2**20
    assert len(server["allowed_cpus"]) == 1
    (address,) = trial["plan"]["generate"]["addresses"]
    assert address.startswith(f"{host.address}:")
    (copy,) = (host.cache / "trueload" / "builds" / "there").iterdir()
    assert (copy / "built-here").exists()
    assert not subjects(host)
    first = copy.stat().st_ino
    assert run(world, ssh).code in (0, 4)
    assert copy.stat().st_ino == first, "it is not copied again"


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("exits-at-once", "it ended before it was ready: exit code 0"),
        ("elsewhere", "instead of"),
        ("wrong", "it did not answer"),
        ("dies-after-ready", "exit code 3"),
        ("daemonises", ""),
        ("ignores-sigterm", ""),
    ],
)
def test_what_a_subject_does_wrong_there_is_told_as_it_is_here(
    world: World, ssh: Ssh, how: str, words: str
) -> None:
    world.add("odd", how, ready_s=3)
    ended = run(world, ssh, "--json", "-")
    assert words in ended.out + ended.err
    wait_until(lambda: not subjects(ssh.network.hosts[0]), "the subject has gone")


def start(world: World, ssh: Ssh, *words: str) -> Any:
    """Start a suite of one trial; it is under load when this returns."""
    world.add("fine")
    front = world.trueload.start(
        *("suite", "run", "quick", "--subjects", "python", "-c", "4", "--repeat", "1"),
        *("--cores", "single", "--server-place", "ssh:h1", *words),
        cwd=world.folder,
        env={**world.env, **ssh.env},
        stderr=subprocess.STDOUT,
    )
    host = ssh.network.hosts[0]
    wait_until(lambda: bool(subjects(host)), "the subject runs")
    host.await_packets()
    return front


ENGINE = "programs/trueload-engine"
TWO = ("-d", "2s", "--place", "ssh:h2", "--place", "ssh:h3")


def test_a_repetition_that_lost_a_host_is_measured_again(world: World, ssh: Ssh) -> None:
    front = start(world, ssh, *TWO)
    assert ssh.network.hosts[2].kill(ENGINE) == 1
    out, _ = front.communicate(timeout=60)
    assert front.returncode in (0, 4), out
    assert "host lost: ssh:h3" in out
    assert "measuring it again" in out
    rows = world.trueload.last_rows()
    assert [row["key"].endswith(" partial") for row in rows] == [True, False]
    lost, whole = (row["record"] for row in rows)
    assert [host["lost"] is None for host in lost["hosts"]] == [True, False]
    assert whole["trouble"] is None


def test_a_host_that_stays_away_ends_the_suite_and_resume_goes_on(world: World, ssh: Ssh) -> None:
    front = start(world, ssh, *TWO)
    ssh.network.hosts[2].link("down")
    out, _ = front.communicate(timeout=120)
    assert front.returncode == 4, out
    assert "bring the host back, then go on with: trueload suite run --resume" in out
    (run,) = world.trueload.run("runs", "list", "--json").json()
    assert run["state"] == "interrupted"
    ssh.network.fix()
    words = ("--resume", run["id"], "--server-place", "ssh:h1", "--place", "ssh:h2")
    ended = world.run("suite", "run", *words, "--place", "ssh:h3", env=ssh.env)
    assert ended.code in (0, 4), ended
    rows = world.trueload.last_rows()
    assert rows[-1]["record"]["trouble"] is None
    assert not rows[-1]["key"].endswith(" partial")


def test_a_program_that_is_not_there_is_told(world: World, ssh: Ssh) -> None:
    world.add("none", run=["./no-such-program", "{host}", "{port}"])
    ended = run(world, ssh)
    assert ended.code == 3
    assert "no-such-program: No such file or directory" in ended.out + ended.err


@pytest.mark.parametrize("lost", ["front", "link"])
def test_no_subject_is_left_there_when_the_front_or_the_link_is_lost(
    world: World, ssh: Ssh, lost: str
) -> None:
    host = ssh.network.hosts[0]
    front = start(world, ssh, "-d", "60s")
    if lost == "link":
        host.link("down")
    else:
        front.send_signal(signal.SIGKILL)
    wait_until(lambda: not subjects(host), "the subject has gone")
    front.send_signal(signal.SIGINT)
    front.communicate(timeout=60)
    assert front.returncode == (130 if lost == "link" else -signal.SIGKILL)


def test_a_subject_has_no_secrets_of_whoever_logs_in(world: World, own_ssh: Ssh) -> None:
    host = own_ssh.network.hosts[0]
    own_ssh.restart(host, env="GITHUB_TOKEN=hush TZ=Asia/Tokyo")
    noted = host.folder / "noted"
    serve = "exec python3 program.py fine {host} {port}"
    world.add("noting", run=["sh", "-c", f"env > '{noted}'; {serve}"])
    ended = run(world, own_ssh, "--json", "-")
    assert ended.code in (0, 4), ended
    env = dict(line.split("=", 1) for line in noted.read_text().splitlines() if "=" in line)
    assert "GITHUB_TOKEN" not in env
    assert env["TZ"] == "Asia/Tokyo", "what it may have of that login it has"
    assert env["HOME"] == env["TMPDIR"]


def test_a_load_that_cannot_reach_the_subjects_is_refused(world: World, ssh: Ssh) -> None:
    world.add("fine")
    words = ("suite", "run", "quick", "--subjects", "python", *SHORT)
    ended = world.run(*words, "--place", "ssh:h2", env=ssh.env)
    assert ended.code == 2
    assert "do not reach subjects on 127.0.0.1" in ended.err
    assert not world.trueload.store.exists()


def test_a_suite_of_clients_stays_here(world: World, ssh: Ssh) -> None:
    for more in ((), ("--dry-run",)):
        ended = world.run("suite", "run", "http-clients", "--place", "ssh:h2", *more, env=ssh.env)
        assert ended.code == 2
        assert "their server on this machine" in ended.err


def test_two_subjects_are_compared_on_another_host(world: World, ssh: Ssh) -> None:
    world.add("one")
    world.add("two")
    words = ("python/one", "python/two", "--requests", "200", "-c", "2", "--repeat", "1")
    ended = world.run(
        *("compare", *words, "--place", "ssh:h2", "--server-place", "ssh:h1", "--json", "-"),
        env=ssh.env,
    )
    assert ended.code in (0, 4), ended
    trials = ended.json()["trials"]
    assert len(trials) == 2
    for trial in trials:
        assert trial["hosts"][0]["place"] == "ssh:h2"
        assert trial["server"]["cpu_s"] > 0
    assert not subjects(ssh.network.hosts[0])
    refused = world.run("compare", "python/one", "http://127.0.0.1:1/", "--server-place", "ssh:h1")
    assert refused.code == 2
    assert "is a server that runs" in refused.err
