"""Places behind a command: what runs there, what a user is told if it cannot, and what is left.

`env` stands for `docker exec` and the like: it runs what is appended to it.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import platform
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from harness import Server, Trueload, engines_of, put_script
from limited import limited_group
from trueload.errors import UserError
from trueload.places import CutOffError
from trueload.places.command import CommandPlace
from trueload.places.ssh import scripts
from trueload.runner.sockets import free_port
from waiting import wait_until

WAIT_S = 10.0
ECHO = 'while read -r line; do echo "said $line"; done\nexit 7'


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return put_script(tmp_path / "echo-program", ECHO)


def place(cache: Path, *argv: str) -> CommandPlace:
    return CommandPlace("exec:test", ["env", f"TRUELOAD_CACHE={cache}", *argv])


def test_a_program_is_copied_once_and_its_lines_come_back(tmp_path: Path, program: Path) -> None:
    there = place(tmp_path / "cache")
    there.prepare(program)
    (kept,) = (tmp_path / "cache" / "programs").iterdir()
    assert ECHO in kept.read_text()
    first = kept.stat().st_ino
    channel = place(tmp_path / "cache").open([str(program)])
    channel.send(b"hello\n", WAIT_S)
    assert channel.read_line(WAIT_S) == b"said hello"
    assert psutil.pid_exists(channel.pid)
    channel.close_input()
    assert channel.wait(WAIT_S) == 7
    assert kept.stat().st_ino == first, "it is not copied again"


def test_a_damaged_copy_is_replaced(tmp_path: Path, program: Path) -> None:
    place(tmp_path / "cache").prepare(program)
    (kept,) = (tmp_path / "cache" / "programs").iterdir()
    kept.write_text("#!/bin/sh\nexit 1\n")
    place(tmp_path / "cache").prepare(program)
    assert ECHO in kept.read_text()


@pytest.mark.needs("root", "util-linux", "namespaces")
def test_containers_that_share_a_folder_do_not_share_a_copy(tmp_path: Path, program: Path) -> None:
    folder, data = tmp_path / "cache" / "programs", program.read_bytes()
    # Process 1 of each container copies.
    there = place(tmp_path / "cache", "unshare", "--pid", "--fork")
    argv = there.script(scripts.KEEP, f"echo-{hashlib.sha256(data).hexdigest()}")
    copies = [subprocess.Popen(argv, stdin=subprocess.PIPE) for _ in range(2)]
    wait_until(lambda: folder.exists() and len(list(folder.iterdir())) == 2, "both have begun")
    for copy in copies:
        copy.communicate(data)
    assert [copy.returncode for copy in copies] == [0, 0]
    (kept,) = folder.iterdir()
    assert kept.read_bytes() == data


def test_a_copy_that_is_not_kept_is_removed_at_the_end(tmp_path: Path, program: Path) -> None:
    cache = tmp_path / "cache"
    place(cache).prepare(program)
    (kept,) = (cache / "programs").iterdir()
    with CommandPlace("exec:test", ["env", f"TRUELOAD_CACHE={cache}"], keep=False) as there:
        channel = there.open([str(program)])
        channel.send(b"hello\n", WAIT_S)
        assert channel.read_line(WAIT_S) == b"said hello"
        assert len(list((cache / "programs").iterdir())) == 2, "it has a copy of its own"
        channel.close_input()
        assert channel.wait(WAIT_S) == 7
    assert list((cache / "programs").iterdir()) == [kept]


def test_a_killed_program_leaves_nothing(tmp_path: Path) -> None:
    program = Path("/bin/cat")
    channel = place(tmp_path / "cache").open([str(program)])
    assert psutil.Process(channel.pid).is_running()
    channel.kill()
    wait_until(lambda: not psutil.pid_exists(channel.pid), "the program has gone")


def test_a_signal_that_ends_it_is_told(tmp_path: Path) -> None:
    channel = place(tmp_path / "cache").open(["/bin/cat"])
    os.kill(channel.pid, signal.SIGKILL)
    assert channel.wait(WAIT_S) == -signal.SIGKILL


# Passes on what it reads and writes, as `kubectl exec -i` does.
PROXY = (sys.executable, "-IS", str(Path(__file__).with_name("proxy_command.py")))


def test_a_command_that_is_killed_here_is_told_by_its_name(tmp_path: Path) -> None:
    channel = place(tmp_path / "cache", *PROXY).open(["/bin/cat"])
    commands = [each for each in psutil.Process().children() if PROXY[-1] in each.cmdline()]
    commands[0].kill()
    with pytest.raises(CutOffError) as caught:
        channel.read_line(WAIT_S)
    assert str(caught.value) == "the command here, `env …`, was killed: signal 9 (SIGKILL)"


def test_a_command_that_ends_before_its_program_is_told_in_its_own_words(tmp_path: Path) -> None:
    channel = place(tmp_path / "cache", *PROXY).open(["/bin/cat"])
    channel.send(b"give up\n", WAIT_S)
    with pytest.raises(CutOffError, match="`env …`, ended with exit code 1: no way"):
        channel.read_line(WAIT_S)


OTHER = "x86_64" if platform.machine() == "aarch64" else "aarch64"


def another_machine(tmp_path: Path) -> str:
    """Return a PATH for a host: its ``uname`` says that it is a machine of the other kind."""
    folder = tmp_path / "another"
    folder.mkdir()
    script = f'case "$1" in -s) echo Linux;; *) echo {OTHER};; esac'
    put_script(folder / "uname", script)
    return f"{folder}:/usr/bin:/bin"


def test_a_machine_of_another_kind_gets_the_program_for_it(tmp_path: Path) -> None:
    (tmp_path / "cat").write_bytes(Path("/bin/cat").read_bytes())
    put_script(tmp_path / f"cat-{OTHER}", ECHO)
    path = another_machine(tmp_path)
    for _ in "and again, with the copy":
        with place(tmp_path / "cache", f"PATH={path}") as there:
            there.prepare(tmp_path / "cat")
            channel = there.open([str(tmp_path / "cat")])
            channel.send(b"hello\n", WAIT_S)
            assert channel.read_line(WAIT_S) == b"said hello"
            channel.kill()
    (kept,) = (tmp_path / "cache" / "programs").iterdir()
    assert ECHO in kept.read_text(), "the other one is not copied"


def test_a_machine_without_a_program_for_it_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "cat"
    program.write_bytes(Path("/bin/cat").read_bytes())
    with pytest.raises(UserError) as caught:
        place(tmp_path / "cache", f"PATH={another_machine(tmp_path)}").prepare(program)
    assert caught.value.message.startswith(f"exec:test is {OTHER}, and the engine here is for ")
    assert f"beside {program}, with the name cat-{OTHER}" in caught.value.hint
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("argv", "words", "hint"),
    [
        (("no-such-command-at-all",), "cannot be started: No such file", "correct the command"),
        (("false",), "exec:test runs no commands", "`false echo ok` must print ok"),
        (("sh", "-c", "exit 127"), "it needs a shell", "must print ok"),
        (
            ("sh", "-c", "echo gone >&2; exit 1"),
            "exec:test runs no commands: gone",
            "must print ok",
        ),
        (
            ("sh", "-c", 'exec "$@" </dev/null', "sh"),
            "does not pass on its input",
            "docker exec and kubectl exec need -i",
        ),
        (("env", "TRUELOAD_CACHE=/proc/none"), "cannot be copied to exec:test", "TRUELOAD_CACHE="),
    ],
)
def test_a_command_that_does_not_serve_is_refused(
    program: Path, argv: tuple[str, ...], words: str, hint: str
) -> None:
    with pytest.raises(UserError) as caught:
        CommandPlace("exec:test", argv).prepare(program)
    assert words in caught.value.message
    assert hint in caught.value.hint
    assert "\n" not in caught.value.message + caught.value.hint


PLACES = ("--place", "exec:env HOST=one", "--place", "exec:env HOST=two")


def environment(tmp_path: Path) -> dict[str, str]:
    return {"TRUELOAD_CACHE": str(tmp_path / "cache")}


def test_a_run_over_two_of_them(trueload: Trueload, server: Server, tmp_path: Path) -> None:
    words = ("-c", "5", "--requests", "301", "--warmup", "50ms", "--json", "-", "--no-cache")
    ended = trueload.run("http", f"{server.url}/", *words, *PLACES, env=environment(tmp_path))
    assert ended.code in (0, 4), ended  # a busy machine may make it invalid
    record = ended.json()
    assert record["trouble"] is None
    assert [host["place"] for host in record["hosts"]] == ["exec:env HOST=one", "exec:env HOST=two"]
    assert [host["connections"] for host in record["hosts"]] == [3, 2]
    assert record["counts"]["scheduled"] == 301
    assert not any((tmp_path / "cache" / "programs").iterdir()), "no copy is kept"
    lines = trueload.run("runs", "export", "last", "--format", "hosts").out.splitlines()
    rows = list(csv.DictReader(lines))
    assert [row["place"] for row in rows] == ["exec:env HOST=one", "exec:env HOST=two"]
    assert sum(int(row["issued"]) for row in rows) == 301
    assert all(int(row["latency_p50_ns"]) > 0 and int(row["clock_bound_ns"]) > 0 for row in rows)
    page = tmp_path / "report.html"
    assert trueload.run("report", "last", "-o", str(page)).code == 0
    assert "By host" in page.read_text()


@pytest.mark.parametrize("more", [(), ("--rate", "3k/s")], ids=["closed", "open"])
def test_a_heavier_one_has_its_share(
    trueload: Trueload, server: Server, tmp_path: Path, more: tuple[str, ...]
) -> None:
    lab, data = tmp_path / "places.toml", tmp_path / "rows.csv"
    data.write_text("row\n" + "".join(f"{number}\n" for number in range(400)))
    lab.write_text(
        '[[generators]]\nplace = "exec:env HOST=one"\n\n'
        '[[generators]]\nplace = "exec:env HOST=two"\nweight = 2\n'
    )
    url, rows = f"{server.url}/?{{row}}", ("--data", str(data), "--data-order", "unique")
    words = ("-c", "9", "--requests", "300", "--warmup", "0s", "--json", "-", "--lab", str(lab))
    ended = trueload.run("http", url, *words, *rows, *more, env=environment(tmp_path))
    assert ended.code in (0, 4), ended
    hosts = ended.json()["hosts"]
    assert [host["weight"] for host in hosts] == [1, 2]
    assert [host["connections"] for host in hosts] == [3, 6]
    assert [host["counts"]["scheduled"] for host in hosts] == [100, 200]
    assert ended.json()["data"]["taken"] == 300


def start_two(
    trueload: Trueload, server: Server, tmp_path: Path, *words: str
) -> subprocess.Popen[str]:
    """Start a run over two hosts; they have connected when this returns."""
    front = trueload.start(
        *("http", f"{server.url}/", "-c", "6", "--warmup", "0s", *words),
        env=environment(tmp_path),
        stderr=subprocess.STDOUT,
    )
    wait_until(lambda: len(engines_of(front.pid)) == 2, "both engines run")
    wait_until(lambda: all(each.net_connections() for each in engines_of(front.pid)), "connected")
    return front


def test_a_lost_one_is_named_and_the_other_goes_on(
    trueload: Trueload, server: Server, tmp_path: Path
) -> None:
    front = start_two(trueload, server, tmp_path, "-d", "3s", "--allow-lost", "1", *PLACES)
    engines_of(front.pid)[0].kill()
    out, _ = front.communicate(timeout=60)
    assert front.returncode in (0, 4), out
    told, result = out.index(": host lost: exec:env HOST="), out.index("1 of 2 hosts lost: exec:")
    assert told < result
    assert "the engine died: signal 9" in out
    assert "3 of 6 connections" in str(trueload.last_rows()[0]["record"]["checks"])
    hosts = trueload.last_rows()[0]["record"]["hosts"]
    assert [host["lost"] is None for host in hosts].count(True) == 1


def test_commands_that_are_killed_at_once_blame_no_host(
    trueload: Trueload, server: Server, tmp_path: Path
) -> None:
    names = [f"exec:{shlex.join(PROXY)} env HOST={name}" for name in ("one", "two")]
    places = (f"--place={name}" for name in names)
    front = start_two(trueload, server, tmp_path, "-d", "60s", *places)
    here = psutil.Process(front.pid).children()
    commands = [each for each in here if scripts.ENDED in " ".join(each.cmdline())]
    assert len(commands) == 2
    for command in commands:
        command.kill()
    out, _ = front.communicate(timeout=60)
    assert front.returncode == 4, out
    killed = f"the command here, `{PROXY[0]} …`, was killed: signal 9 (SIGKILL)"
    cause = f"the way to all 2 hosts is lost: {killed}"
    assert cause in out
    assert "host lost" not in out
    assert f"warning: {' and '.join(names)} are one machine" in out
    record = trueload.last_rows()[0]["record"]
    assert record["trouble"]["what"].startswith(cause)
    checks = {check["name"]: check for check in record["checks"]}
    lost = checks["hosts-lost"]
    assert lost["why"] == f"2 of 2 hosts lost: {record['trouble']['what']}"
    assert checks["one-machine"]["status"] == "warn"
    assert all(host["way_lost"] for host in record["hosts"])


def test_the_reference_server_can_run_there_but_a_subject_cannot(
    trueload: Trueload, tmp_path: Path
) -> None:
    place = ("--server-place", "exec:env HOST=one")
    words = ("-c", "2", "--requests", "50", "--warmup", "0s", "--json", "-")
    url = f"http://127.0.0.1:{free_port('127.0.0.1')}/"
    ended = trueload.run("http", url, *words, *place, env=environment(tmp_path))
    assert ended.code in (0, 4), ended
    assert ended.json()["server"]["source"] == "started"
    refused = trueload.run("suite", "run", "http-servers", "--subjects", "python", *place)
    assert refused.code == 2
    assert "a subject cannot be started through exec:" in refused.err


LATER = "[ -e {there} ] || {{ echo 'the container is not running' >&2; exit 1; }}; exec \"$@\""


def test_a_host_that_comes_later_is_waited_for(
    trueload: Trueload, server: Server, tmp_path: Path
) -> None:
    there = tmp_path / "there"
    later = put_script(tmp_path / "later", LATER.format(there=there))
    front = trueload.start(
        *("http", f"{server.url}/", "-c", "2", "--requests", "50", "--warmup", "0s"),
        *("--place", "local", "--place", f"exec:{later}", "--hosts-wait", "60s", "--json", "-"),
        env=environment(tmp_path),
    )
    assert front.stderr is not None
    line = front.stderr.readline()
    assert line.startswith("waiting for hosts: 1 of 2 are there, "), line
    assert line.endswith(f"exec:{later} runs no commands: the container is not running\n")
    there.touch()
    out, err = front.communicate(timeout=60)
    assert front.returncode in (0, 4), (out, err)
    assert [host["place"] for host in json.loads(out)["hosts"]] == ["local", f"exec:{later}"]


# Reads nothing of a program that is copied.
SLOW = 'case "$3" in *"exit 73"*) exec sleep 60;; *) exec "$@";; esac'


def test_a_copy_is_shown_and_ctrl_c_ends_it(
    trueload: Trueload, server: Server, tmp_path: Path
) -> None:
    slow = put_script(tmp_path / "slow", SLOW)
    front = trueload.start(
        *("http", f"{server.url}/", "--place", f"exec:{slow}"),
        env=environment(tmp_path),
        stderr=subprocess.PIPE,
    )
    assert front.stderr is not None
    assert front.stderr.readline().startswith("copying to 1 host, ")
    children = psutil.Process(front.pid).children(recursive=True)
    front.send_signal(signal.SIGINT)
    front.communicate(timeout=60)
    assert front.returncode == 130
    wait_until(lambda: not any(each.is_running() for each in children), "nothing is left")


@pytest.mark.parametrize(
    ("hosts", "words"),
    [("0", "--hosts"), ("3..2", "'3..2' must go up"), ("2..67", "at most 64 hosts may join later")],
)
def test_a_range_of_hosts_that_cannot_be_is_refused(
    trueload: Trueload, hosts: str, words: str
) -> None:
    ended = trueload.run("http", "http://127.0.0.1:1/", "--place", "exec:env", "--hosts", hosts)
    assert ended.code == 2, ended
    assert words in ended.err


def test_a_cpu_limit_there_is_judged(trueload: Trueload, server: Server, tmp_path: Path) -> None:
    with limited_group() as group:
        enter = f"exec:sh -c 'echo $$ >{group}/cgroup.procs; exec \"$@\"' sh"
        words = ("-c", "2", "-d", "1s", "--warmup", "100ms", "--json", "-", "--place", enter)
        ended = trueload.run("http", f"{server.url}/", *words, env=environment(tmp_path))
    record = ended.json()
    assert record["hosts"][0]["generator"]["throttled_share"] > 0.05
    (found,) = (each for each in record["checks"] if each["name"] == "cpu-limit")
    assert found["status"] == "fail"
