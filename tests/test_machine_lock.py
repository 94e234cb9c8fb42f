"""One measurement at a time on a machine: who waits for whom, for how long, and what is said."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Server, Trueload, kill_group
from trueload.machine import lock
from trueload.machine.lock import LocalLock
from waiting import wait_until

pytestmark = pytest.mark.engine
FEW = ("-c", "2", "--requests", "20", "--no-save")
LONG = ("-c", "2", "-d", "60s", "--rate", "10/s", "--no-save")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "runtime"
    made.mkdir()
    return made


@pytest.fixture
def env(folder: Path) -> dict[str, str]:
    """A machine of its own: nobody holds its lock, and nothing is inherited."""
    return {"TRUELOAD_LOCK": "", "XDG_RUNTIME_DIR": str(folder)}


def measuring(
    trueload: Trueload, url: str, env: dict[str, str], *flags: str
) -> subprocess.Popen[str]:
    """Start a long run, and return once it holds the lock."""
    process = trueload.start("http", url, *LONG, *flags, env=env)
    file = Path(env["XDG_RUNTIME_DIR"]) / "trueload.lock"
    wait_until(lambda: file.exists() and "process" in file.read_text(), "the lock is held")
    return process


def test_a_second_run_waits_until_the_first_has_ended_and_says_for_whom(
    trueload: Trueload, server: Server, env: dict[str, str]
) -> None:
    first = measuring(trueload, server.url, env)
    second = trueload.start("http", f"{server.url}/perf", *FEW, env=env)
    assert second.stderr is not None
    told = second.stderr.readline()
    assert told.startswith(f"waiting for trueload http {server.url}"), told
    assert told.endswith("), at most 10m (--wait)\n"), told
    assert second.poll() is None
    kill_group(first)  # it ends in whatever way
    _, err = second.communicate(timeout=60)
    assert second.returncode in (0, 4), err
    assert (Path(env["XDG_RUNTIME_DIR"]) / "trueload.lock").stat().st_mode & 0o777 == 0o600


def test_who_has_waited_long_enough_measures_nothing(
    trueload: Trueload, server: Server, env: dict[str, str]
) -> None:
    measuring(trueload, server.url, env)
    for command in (("http", server.url), ("compare", server.url, server.url)):
        ended = trueload.run(*command, *FEW, "--wait", "200ms", env=env)
        assert (ended.code, ended.out) == (3, ""), ended
        error, hint = ended.err.splitlines()
        assert error.startswith(f"error: trueload http {server.url}"), error
        assert error.endswith("has measured for longer than --wait 200ms"), error
        assert hint == "hint: wait longer, or measure at the same time: --wait 0"


def test_who_does_not_wait_measures_at_the_same_time_and_the_verdict_says_so(
    trueload: Trueload, server: Server, env: dict[str, str]
) -> None:
    measuring(trueload, server.url, env)
    found = trueload.run("http", server.url, *FEW, "--wait", "0", "--json", "-", env=env).json()
    (noise,) = (check for check in found["checks"] if check["name"] == "noise")
    assert noise["status"] in ("warn", "fail")
    assert noise["why"].startswith(f"measured at the same time: trueload http {server.url}")
    assert found["environment"]["measured_beside"].startswith("trueload http ")


def test_what_the_holder_starts_does_not_wait_for_it(
    trueload: Trueload, server: Server, env: dict[str, str]
) -> None:
    measuring(trueload, server.url, env)
    child = {**env, "TRUELOAD_LOCK": "the holder's"}
    ended = trueload.run("http", server.url, *FEW, "--wait", "200ms", "--json", "-", env=child)
    assert ended.code in (0, 4), ended
    assert "measured_beside" not in ended.json()["environment"]


def test_a_wrong_wait_is_refused(trueload: Trueload, server: Server) -> None:
    ended = trueload.run("http", server.url, "--wait", "soon")
    assert (ended.code, ended.out) == (2, "")
    assert "--wait" in ended.err
    assert "hint: " in ended.err


def test_another_host_is_locked_there_and_this_machine_is_not(
    trueload: Trueload, server: Server, env: dict[str, str], tmp_path: Path
) -> None:
    other = tmp_path / "other host"
    other.mkdir()
    place = ("--place", f"exec:env 'XDG_RUNTIME_DIR={other}'")
    trueload.start("http", server.url, *LONG, *place, env=env)
    file = other / "trueload.lock"
    wait_until(lambda: file.exists() and "process" in file.read_text(), "the lock is held there")
    assert trueload.run("http", server.url, *FEW, "--wait", "10ms", env=env).code in (0, 4)
    refused = trueload.run("http", server.url, *FEW, *place, "--wait", "10ms", env=env)
    assert refused.code == 3, refused
    assert " on exec:env " in refused.err


def test_engines_of_one_run_do_not_wait_for_each_other(
    trueload: Trueload, server: Server, env: dict[str, str]
) -> None:
    places = ("--place", "local", "--place", "exec:env", "--place", "exec:env A=1")
    ended = trueload.run("http", server.url, "-c", "6", "-n", "60", *places, "--no-save", env=env)
    assert ended.code in (0, 4), ended


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[None]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    monkeypatch.delenv(lock.VARIABLE)
    yield
    assert lock.beside() is None


@pytest.mark.usefixtures("alone")
def test_threads_of_one_process_share_the_lock_and_the_verdict_knows() -> None:
    with LocalLock("one") as one, LocalLock("two") as two:
        one.ask()
        assert (one.answer(), lock.is_inherited(), lock.beside()) == (None, False, None)
        thread = threading.Thread(target=two.ask)
        thread.start()
        thread.join(10)
        assert lock.beside() == "another thread of this process"
        one.release()
        assert lock.beside() is None
        two.ask()
        assert two.answer() is None, "asked again, it is still ours"


@pytest.mark.usefixtures("alone")
def test_without_a_folder_nobody_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/proc")
    with LocalLock("one") as one:
        one.ask()
        assert one.answer() is None
