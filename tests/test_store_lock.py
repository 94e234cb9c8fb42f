"""A run has one writer at a time; the next can write as soon as that one has ended, in any way."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import ROOT
from subject_world import World
from trueload.errors import UserError
from trueload.store import lock as store_lock
from trueload.store.lock import lock_path
from trueload.store.runs import Store

HOLD = """
import signal, sys
from pathlib import Path
from trueload.store.runs import Store
with Store.open(Path(sys.argv[1])) as store:
    store.hold_run(store.find_run("last"))
    print("held", flush=True)
    signal.pause()
"""


def test_a_run_has_one_holder_until_its_store_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "store"
    (tmp_path / "link").symlink_to(path)
    with Store.open(path) as other:
        with Store.open(path) as store:
            one = store.new_run(kind="suite", title="a suite")
            for at in (path, tmp_path / "link"):
                with (
                    Store.open(at) as third,
                    pytest.raises(UserError, match=f"run {one.id} is still running"),
                ):
                    third.hold_run(one)
            two = other.new_run(kind="suite", title="another")
        other.hold_run(one)
        with Store.open(path) as third, pytest.raises(UserError, match=two.id):
            third.hold_run(two)
    assert lock_path(path).stat().st_size == 0


def test_a_holder_that_is_killed_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with Store.open(path) as first:
        run = first.new_run(kind="suite", title="a suite")
    with Store.open(path) as store:
        assert [each.state for each in store.runs()] == ["interrupted"]
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, path],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        )
        with process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"held\n"
            assert store.find_run("last").state == "running"
            with pytest.raises(UserError, match="is still running"):
                store.hold_run(run)
            process.kill()
        assert store.find_run("last").state == "interrupted"
        store.hold_run(run)
        assert store.find_run("last").state == "running", "it goes on"


def test_in_a_copy_of_a_store_no_run_goes_on(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as store:
        store.new_run(kind="suite", title="a suite")
        with contextlib.closing(sqlite3.connect(tmp_path / "copy")) as copy:
            store._db.backup(copy)
        assert store.find_run("last").state == "running"
        with Store.open(tmp_path / "copy") as other:
            assert other.find_run("last").state == "interrupted"
            other.hold_run(other.find_run("last"))


def no_locks(*_: object) -> None:
    raise OSError(errno.ENOLCK, "No locks available")


def no_file(*_: object) -> int:
    raise PermissionError(errno.EACCES, "Permission denied")


@pytest.mark.parametrize(
    ("module", "name", "fails"), [("fcntl", "fcntl", no_locks), ("os", "open", no_file)]
)
def test_where_nothing_can_be_locked_nobody_is_kept_out(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    module: str,
    name: str,
    fails: Callable[..., object],
) -> None:
    with Store.open(tmp_path / "store") as store, Store.open(tmp_path / "store") as other:
        with monkeypatch.context() as patched:
            patched.setattr(getattr(store_lock, module), name, fails)
            run = store.new_run(kind="suite", title="a suite")
            other.hold_run(run)
            assert store.find_run("last").state == "running", "nobody can tell"
        store.add_row(run, "skipped", "no toolchain")


READERS = [
    ("runs", "list"),
    ("runs", "list", "--json"),
    ("runs", "show", "last"),
    ("runs", "show", "last", "--json"),
    *(
        ("runs", "export", "last", "--format", name)
        for name in ("json", "jsonl", "csv", "markdown")
    ),
    ("report", "last", "-o", "report.html"),
]


@pytest.mark.engine
def test_a_run_that_is_going_on_can_be_looked_at_and_not_resumed(world: World) -> None:
    world.add("fine")
    words = ("suite", "run", "quick", "--subjects", "python", "-d", "60s", "--share-cpus")
    first = world.trueload.start(*words, cwd=world.folder, env=world.env)
    world.wait_for_trial()
    (run,) = world.run("runs", "list", "--json").json()
    for reader in READERS:
        assert world.run(*reader).code == 0, reader
    resume = ("suite", "run", "--resume", run["id"])
    refused = world.run(*resume)
    assert (refused.code, refused.out) == (2, ""), refused
    error, hint = refused.err.splitlines()
    assert error == f"error: run {run['id']} is still running: another trueload adds to it"
    assert hint.startswith("hint: ")
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    world.wait_until_nothing_is_left()
    second = world.trueload.start(*resume, cwd=world.folder, env=world.env)
    world.wait_for_trial()
    second.send_signal(signal.SIGINT)
    out, err = second.communicate(timeout=60)
    assert second.returncode == 130, (out, err)
    assert "go on with: trueload suite run --resume" in err
    world.wait_until_nothing_is_left()
