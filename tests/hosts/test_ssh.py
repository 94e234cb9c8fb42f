"""A host reached by ssh: the engine is copied there once, runs, and ends, however the run ends."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from trueload.engines.engine import Engine, EngineError
from trueload.places.program import read_program
from trueload.places.ssh import SshPlace
from waiting import wait_until

from hosts.network import Host
from hosts.sshd import Ssh, logins

ENGINE = "programs/trueload-engine"


@pytest.fixture
def place(ssh: Ssh, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshPlace]:
    """The first of three hosts."""
    monkeypatch.setenv("PATH", ssh.env["PATH"])
    with SshPlace("h1") as made:
        yield made


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder whose path leaves room for that of a socket."""
    with tempfile.TemporaryDirectory(prefix="t", dir="/tmp") as folder:
        yield Path(folder)


def kept(host: Host) -> list[Path]:
    return sorted((host.cache / "trueload" / "programs").glob("trueload-engine-*"))


def test_the_engine_is_copied_once_and_by_its_digest(
    ssh: Ssh, place: SshPlace, engine_path: Path
) -> None:
    host = ssh.network.hosts[0]
    place.prepare(engine_path)
    (file,) = kept(host)
    assert file.name == f"trueload-engine-{read_program(file).sha256}"
    assert file.read_bytes() == engine_path.read_bytes()
    assert stat.S_IMODE(file.stat().st_mode) == 0o700
    first = file.stat()
    with SshPlace("h1") as again, Engine.start(again):
        assert kept(host) == [file]
        assert file.stat().st_ino == first.st_ino


def test_a_channel_that_is_killed_takes_even_a_stopped_engine_along(
    place: SshPlace, ssh: Ssh
) -> None:
    engine = Engine.start(place)
    assert ssh.network.hosts[0].kill(ENGINE, 19) == 1  # SIGSTOP: it does not react to its input
    engine.close()
    wait_until(lambda: not ssh.network.hosts[0].processes(ENGINE), "the engine has gone")


def test_a_link_that_goes_down_ends_the_engine_there_and_is_told_here(
    place: SshPlace, ssh: Ssh
) -> None:
    host = ssh.network.hosts[0]
    with Engine.start(place) as engine:
        host.link("down")
        wait_until(lambda: not host.processes(ENGINE), "the engine has gone without its lease")
        with pytest.raises(
            EngineError, match=r"ssh has lost h1: .*; nothing is known of its engine"
        ):
            engine.receive(10)


def test_an_ssh_that_is_killed_here_is_told(place: SshPlace) -> None:
    with Engine.start(place) as engine:
        (here,) = (
            each for each in psutil.Process().children() if "ControlMaster=no" in each.cmdline()
        )
        here.kill()
        with pytest.raises(EngineError, match=r"ssh has lost h1: ssh here was killed: signal 9"):
            engine.receive(10)


def test_nothing_of_ours_is_left_here_or_there_when_a_place_is_closed(
    ssh: Ssh, engine_path: Path, monkeypatch: pytest.MonkeyPatch, short_folder: Path
) -> None:
    monkeypatch.setenv("PATH", ssh.env["PATH"])
    monkeypatch.setattr("tempfile.tempdir", str(short_folder))
    host = ssh.network.hosts[1]
    with SshPlace("h2") as place:
        place.prepare(engine_path)
        (folder,) = short_folder.glob("trueload-ssh-*")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_ISSOCK((folder / "s").stat().st_mode)
    assert list(short_folder.glob("trueload-ssh-*")) == []
    wait_until(lambda: not logins(host), "nobody is logged in")
    assert os.path.exists(host.cache / "trueload" / "programs")


def test_a_copy_that_is_not_kept_is_removed_at_the_end(
    ssh: Ssh, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", ssh.env["PATH"])
    programs = ssh.network.hosts[0].cache / "trueload" / "programs"
    before = set(programs.iterdir()) if programs.exists() else set()
    with SshPlace("h1", keep=False) as place, Engine.start(place):
        assert len(set(programs.iterdir()) - before) == 1
    assert set(programs.iterdir()) == before
