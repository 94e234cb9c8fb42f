"""What is sent to other hosts: programs, scripts with their quoting, and samples as lines.

It also tests the agent, as a process of this machine.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from harness import put_script
from trueload.commands import http
from trueload.commands.command_line import understand
from trueload.engines.engine import EngineError
from trueload.errors import HostError, UserError
from trueload.machine.accounting import ProcessTree, parse_sample, sample_json
from trueload.places import Channel, Sink
from trueload.places.local import LocalPlace
from trueload.places.names import SshHost
from trueload.places.program import needs, read_program
from trueload.places.ssh import SshPlace, connection, refusals, scripts
from trueload.runner import remote_agent as agent_module
from trueload.runner.agent import Agent
from trueload.runner.agent_file import agent_file, pack
from trueload.runner.process import Orders, Program, StartError
from trueload.runner.remote_agent import RemoteAgent
from trueload.runner.remote_host import RemoteProcesses
from waiting import has_ended, wait_until

DROPPED = "dropped the login"


@pytest.mark.parametrize(
    ("output", "words", "may_pass"),
    [
        ("me@h: Permission denied (publickey).", "accepts none of your keys", True),
        ("Host key verification failed.", "does not know the key", False),
        (
            "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.",
            "is not the one that ssh knows",
            False,
        ),
        ("ssh: connect to host h port 22: No route to host", "no route", True),
        ("ssh: connect to host h port 22: Connection refused", "refuses connections", True),
        ("ssh: connect to host h port 22: Connection timed out", "does not answer", True),
        ("ssh: Could not resolve hostname h: Name or service not known", "knows no host", True),
        ("Timeout, server h not responding.", "does not answer", True),
        ("Connection closed by 10.0.0.1 port 22", "h cannot be used: Connection closed", True),
        ("command-line: line 0: Bad configuration option: x", "config cannot be used", False),
        ("kex_exchange_identification: Connection closed by remote host", DROPPED, True),
        ("kex_exchange_identification: read: Connection reset by peer", DROPPED, True),
        ("Exceeded MaxStartups\r\nConnection closed", DROPPED, True),
        ("something new\n\n", "h cannot be used: something new", False),
        ("\x1b[31mred\x07", "h cannot be used: ?[31mred?", False),
        ("", "h cannot be used: ssh ended with 255", False),
    ],
)
def test_what_ssh_says_is_told_in_words_that_help(output: str, words: str, may_pass: bool) -> None:
    error = refusals.explain("h", output, "ssh ended with 255")
    assert words in error.message
    assert "\n" not in error.message
    assert error.hint
    assert isinstance(error, HostError) is may_pass
    assert refusals.is_dropped(output) is (words == DROPPED)


@pytest.mark.parametrize(
    ("ssh", "words"),
    [
        ("echo user me; echo hostname 10.0.0.1", None),
        ("exec sleep 60", "has not read its config for h within 2 s"),
        ("echo 'h: terminating, 1 bad configuration options' >&2; exit 255", "cannot be used"),
        (None, "ssh is not installed"),
    ],
)
def test_the_address_of_a_host_is_what_the_ssh_config_says(
    ssh: str | None, words: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if words is not None and "within 2 s" in words:
        monkeypatch.setattr(connection, "LOG_IN_S", 2.0)
    if ssh is not None:
        put_script(tmp_path / "ssh", f"PATH=/usr/bin:/bin\n{ssh}")
    monkeypatch.setenv("PATH", str(tmp_path))
    if words is None:
        assert connection.host_name("h") == "10.0.0.1"
        return
    with pytest.raises(UserError, match=words):
        connection.host_name("h")


def test_an_argument_of_a_script_is_one_word_whatever_is_in_it(tmp_path: Path) -> None:
    odd = "a b;touch x $(touch y) `touch z` 'q' \"d\" \\ \n"
    line = scripts.command('printf "%s" "$1" "$#"', odd)
    assert shlex.split(line)[:3] == ["exec", "sh", "-c"]
    for shell in ("sh", "bash"):
        done = subprocess.run([shell, "-c", line], cwd=tmp_path, capture_output=True, text=True)
        assert done.stdout == odd + "1"
    assert list(tmp_path.iterdir()) == []


class _Here(connection.Connection):
    """Runs the scripts on this machine, with a cache folder of its own."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache

    def argv(self, script: str, *arguments: str) -> list[str]:
        env = ["env", f"TRUELOAD_CACHE={self._cache}"]
        return [*env, *shlex.split(scripts.command(script, *arguments))[1:]]


def _place_here(cache: Path) -> SshPlace:
    place = SshPlace("h1")
    place._connection = _Here(cache)
    return place


@pytest.mark.parametrize(
    ("pack", "words"),
    [
        ("tar: ./secret: Cannot open: Permission denied", "secret: Cannot open"),
        ("", "tar ended with 2"),
    ],
)
def test_a_folder_that_was_not_packed_whole_is_not_kept(
    pack: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, cache, programs = tmp_path / "built", tmp_path / "cache", tmp_path / "bin"
    for each in (folder, programs):
        each.mkdir()
    (folder / "one").write_text("1")
    (folder / "secret").write_text("2")
    # Behave like tar: pack what is readable, and report the rest by the exit code.
    real = shutil.which("tar")
    put_script(
        programs / "tar",
        f'[ "$1" = -cf ] || exec {real} "$@"\n'
        f"{real} --exclude=./secret \"$@\"\n[ -z '{pack}' ] || echo '{pack}' >&2\nexit 2",
    )
    place = _place_here(cache)
    with monkeypatch.context() as there:
        there.setenv("PATH", f"{programs}:{os.environ['PATH']}")
        with pytest.raises(UserError, match=f"built cannot be packed for h1: .*{words}"):
            place.put_folder(folder, "a1")
    kept = cache / "builds" / "there"
    assert list(kept.iterdir()) == []

    assert place.put_folder(folder, "a1") == kept / "a1"
    assert sorted(each.name for each in (kept / "a1").iterdir()) == ["one", "secret"]
    assert list(kept.iterdir()) == [kept / "a1"]
    # A folder that is already there is not sent again.
    (folder / "one").unlink()
    assert place.put_folder(folder, "a1") == kept / "a1"
    assert (kept / "a1" / "one").exists()


def test_a_program_says_which_machine_and_loader_it_needs(tmp_path: Path) -> None:
    machine, loader = needs(Path(sys.executable).resolve().read_bytes())
    assert machine == os.uname().machine
    assert loader is None or Path(loader).exists()
    assert needs(b"#!/bin/sh\n") == (None, None)
    assert needs(b"\x7fELF") == (None, None)
    odd = tmp_path / "-odd name;$(x)"
    odd.write_bytes(b"#!/bin/sh\n")
    name = read_program(odd).kept_name
    assert name.startswith("odd-name---x--")
    assert len(name.rpartition("-")[2]) == 64


def test_a_sample_is_the_same_at_the_other_end_of_a_line() -> None:
    sample = ProcessTree(os.getpid()).sample()
    assert parse_sample(sample_json(sample)) == sample


def test_the_agent_is_the_same_file_every_time_and_of_our_modules_alone() -> None:
    assert pack() == pack()
    with zipfile.ZipFile(agent_file()) as packed:
        names = set(packed.namelist())
    ours = {"machine/accounting.py", "runner/supervisor.py"}
    assert {"__main__.py", *(f"trueload/{name}" for name in ours)} <= names


class _Late(Channel):
    """A place and its channel: an agent whose answers come as the script says.

    Each line of the script holds what can be read after one more question: answers, or None for a
    timeout.
    """

    name = "late"

    def __init__(self, *script: Sequence[Mapping[str, object] | None]) -> None:
        self._script = list(script)
        self._ready: list[Mapping[str, object] | None] = []
        self.asked: list[dict[str, Any]] = []

    @property
    def pid(self) -> int:
        return 1

    def open(self, argv: Sequence[str]) -> _Late:
        return self

    def send(self, line: bytes, timeout_s: float) -> None:
        asked = json.loads(line)
        if asked["call"] != "lease":
            self.asked.append(asked)
            self._ready += self._script.pop(0)
        else:  # from the thread that renews the lease
            self._ready.append({"id": asked["id"], "result": None})

    def read_line(self, timeout_s: float) -> bytes | None:
        found = self._ready.pop(0)
        return None if found is None else json.dumps(found).encode()

    def divert(self, sink: Sink) -> None:
        raise NotImplementedError

    def close_input(self) -> None: ...

    def wait(self, timeout_s: float) -> int | None:
        return 0

    def kill(self) -> None: ...

    def log_tail(self) -> str:
        return ""


ABOUT = {"id": 1, "result": {"cpus": [0], "scratch": "/tmp/x"}}


@pytest.fixture
def unleased(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send no lease meanwhile, so that the calls have the numbers 1, 2, 3."""
    monkeypatch.setattr(agent_module, "LEASE_EVERY_S", 1000.0)


@pytest.mark.usefixtures("unleased")
def test_a_late_answer_is_never_that_of_the_next_call() -> None:
    late = _Late(
        [ABOUT],
        [None],
        [{"id": 2, "result": 1111}, {"id": 3, "result": 2222}],
        [{"id": 4, "result": "nobody"}],
    )
    with RemoteAgent(late) as host:
        with pytest.raises(EngineError, match="no answer for 10 s"):
            host.call("free_port", host="a")
        assert host.call("free_port", host="b") == 2222
        assert host.dropped == 1
        assert host.call("taken_by", host="a", port=1) == "nobody"
        assert host.dropped == 1
    assert [each["id"] for each in late.asked] == [1, 2, 3, 4]


@pytest.mark.usefixtures("unleased")
def test_answers_to_other_calls_are_dropped_until_there_are_no_more() -> None:
    other: list[Mapping[str, object] | None] = [
        {"id": 9, "result": 1},
        {"result": 1},
        {"id": 1, "error": "late"},
    ]
    with RemoteAgent(_Late([ABOUT], [*other, None])) as host:
        with pytest.raises(EngineError, match="3 answers to other calls were dropped"):
            host.call("free_port", host="a")
        assert host.dropped == 3


def test_an_agent_repeats_the_number_of_its_call(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    for asked in ({"call": "lease"}, {"call": "_kept"}, {"call": "sample"}):
        answer = agent.answer(json.dumps({"id": 7, **asked}).encode())
        assert answer["id"] == 7
        assert ("error" in answer) is (asked["call"] != "lease")


@pytest.fixture
def far() -> Iterator[RemoteAgent]:
    with RemoteAgent(LocalPlace()) as host:
        yield host


def sleeping(folder: Path) -> Orders:
    program = Program((sys.executable, "-c", "import signal; signal.pause()"))
    return Orders(programs=(program,), cwd=folder, env={}, log=folder / "log")


def test_a_agent_accounts_for_a_process_as_this_machine_does(far: RemoteAgent) -> None:
    far.watch(os.getpid())
    sample = far.sample()
    assert os.getpid() in sample.pids
    here = ProcessTree(os.getpid()).sample()
    assert here.at_ns >= sample.at_ns
    assert sum(each.cpu_ns for each in sample.processes.values()) > 0


def test_a_subject_that_a_agent_starts_has_no_secrets_of_who_logs_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "DATABASE_URL"):
        monkeypatch.setenv(name, "hush")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    program = Program(("sh", "-c", "env > env"))
    own = {"OWN": "1", "HOME": str(tmp_path)}
    orders = Orders(programs=(program,), cwd=tmp_path, env=own, log=tmp_path / "log")
    with RemoteAgent(LocalPlace()) as host, RemoteProcesses(host, orders) as kept:
        wait_until(lambda: not kept.alive(), "it ends")
    env = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines())
    assert "hush" not in env.values()
    assert (env["OWN"], env["HOME"], env["LC_ALL"]) == ("1", str(tmp_path), "C.UTF-8")
    assert env["PATH"]


def test_a_agent_starts_and_ends_a_subject(far: RemoteAgent, tmp_path: Path) -> None:
    with RemoteProcesses(far, sleeping(tmp_path)) as kept:
        assert kept.alive()
        assert set(kept.started) <= kept.tree.sample().pids
        pid = kept.started[0]
    assert not Path(f"/proc/{pid}").exists()


def test_a_program_that_cannot_be_started_there_is_told(far: RemoteAgent, tmp_path: Path) -> None:
    orders = Orders(programs=(Program(("./none",)),), cwd=tmp_path, env={}, log=tmp_path / "log")
    with pytest.raises(StartError, match=r"\./none: No such file"), RemoteProcesses(far, orders):
        pass


def test_what_a_agent_started_ends_with_it(tmp_path: Path) -> None:
    host = RemoteAgent(LocalPlace())
    kept = RemoteProcesses(host, sleeping(tmp_path)).__enter__()
    pid = kept.started[0]
    host.close()
    # An agent that is not done in time is killed, and its supervisor then ends the program.
    wait_until(lambda: has_ended(pid), "the program ends with its agent")
    with pytest.raises(EngineError, match="the server's host local is lost"):
        kept.alive()


def test_places_are_options_of_the_functions_too() -> None:
    options: dict[str, object] = {"place": ["ssh:a", "ssh:b"], "server_place": "ssh:c"}
    value = understand(("http",), http.read_job, ("http://10.0.0.1/",), options, {}).value
    assert [each.place for each in value.placement.generators] == [SshHost("a"), SshHost("b")]
    assert value.placement.server is not None
