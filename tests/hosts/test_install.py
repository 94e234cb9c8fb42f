"""trueload installed on a host by ssh: what is there, what is replaced, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Trueload
from trueload.commands.installing import own_abi
from trueload.errors import UserError
from trueload.places.ssh import SshPlace
from trueload.places.ssh.connection import Connection
from trueload.places.ssh.install import Python, find_python, put

from hosts.network import Host
from hosts.sshd import Ssh
from hosts.test_ssh_refusals import restart_sshd

# This Python's own, so that the packages of here fit.
PATH = f"{sys.base_prefix}/bin:/usr/bin:/bin"
LEAST = (3, 11)
AWAIT = "print('on', flush=True); input()"


@pytest.fixture
def home(own_ssh: Ssh) -> Path:
    """The home folder of the user on the host; it is empty."""
    host = own_ssh.network.hosts[0]
    folder = host.folder / "home"
    folder.mkdir()
    restart_sshd(host, own_ssh, env=f"HOME={folder} PATH={PATH}")
    return folder


@pytest.fixture
def connection(
    own_ssh: Ssh, home: Path, engine_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Connection]:
    """A connection to the host."""
    monkeypatch.setenv("PATH", own_ssh.env["PATH"])
    with SshPlace("h1") as place:
        place.prepare(engine_path)
        yield place.connection


def small(tmp_path: Path, word: str) -> Path:
    """A folder to install; its command prints a word."""
    command = tmp_path / word / "bin" / "tell"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho {word}\n")
    command.chmod(0o755)
    return tmp_path / word


def python_there(connection: Connection) -> Python:
    return find_python(connection, LEAST, own_abi())


def said(command: str) -> str:
    """What an installed command says: the hosts share this machine's files."""
    return subprocess.run([command], check=True, capture_output=True, text=True).stdout.strip()


def test_trueload_is_installed_and_looks_at_the_host(
    trueload: Trueload, own_ssh: Ssh, home: Path
) -> None:
    ended = trueload.run(*("doctor", "--install", "ssh:h1", "--quick", "--json"), env=own_ssh.env)
    assert ended.code == 0, ended
    command = home / ".local" / "bin" / "trueload"
    assert ended.err.endswith(f" is installed on h1, as {command}\n")
    engine = next(each for each in ended.json()["findings"] if each["name"] == "engine")
    assert engine["status"] == "pass"
    assert str(home / ".local" / "lib" / "trueload") in engine["value"]
    there = own_ssh.run("h1", f"cd /; {command} suite list; {command} --version").stdout
    assert "http-servers" in there, "it has a catalogue of its own"
    assert there.splitlines()[-1] == trueload.run("--version").out.strip()


def test_a_newer_one_takes_its_place(connection: Connection, home: Path, tmp_path: Path) -> None:
    python = python_there(connection)
    first = put(connection, python, small(tmp_path, "first"), "1.0", "tell")
    assert first == str(home / ".local" / "bin" / "tell")
    assert said(first) == "first"
    assert put(connection, python, small(tmp_path, "second"), "1.1", "tell") == first
    assert said(first) == "second"
    (kept,) = (home / ".local" / "lib" / "tell").iterdir()
    assert kept.name.startswith("1.1-")


def test_one_that_still_runs_is_kept(
    connection: Connection, own_ssh: Ssh, home: Path, tmp_path: Path
) -> None:
    host, python = own_ssh.network.hosts[0], python_there(connection)
    put(connection, python, small(tmp_path, "first"), "1.0", "tell")
    (first,) = (home / ".local" / "lib" / "tell").iterdir()
    waits = host.start(first / "bin" / "python3", "-c", AWAIT, stdin=subprocess.PIPE)
    assert waits.stdout is not None
    assert waits.stdout.readline() == "on\n"
    put(connection, python, small(tmp_path, "second"), "1.1", "tell")
    assert first.exists(), "it runs"
    waits.communicate()  # the end of its input is its end
    put(connection, python, small(tmp_path, "third"), "1.2", "tell")
    (kept,) = (home / ".local" / "lib" / "tell").iterdir()
    assert kept.name.startswith("1.2-")


def test_another_command_of_that_name_is_left_alone(
    connection: Connection, home: Path, tmp_path: Path
) -> None:
    other = home / ".local" / "bin" / "tell"
    other.parent.mkdir(parents=True)
    other.write_text("#!/bin/sh\necho mine\n")
    other.chmod(0o755)
    command = put(connection, python_there(connection), small(tmp_path, "ours"), "1.0", "tell")
    assert said(command) == "ours"
    assert said(str(other)) == "mine"


def test_a_home_that_cannot_be_written_is_told(
    connection: Connection, home: Path, tmp_path: Path
) -> None:
    python = python_there(connection)
    (home / ".local").write_text("")
    with pytest.raises(UserError, match=r"^tell cannot be installed on h1: mkdir: .*"):
        put(connection, python, small(tmp_path, "first"), "1.0", "tell")


def without_python(host: Host) -> str:
    """A PATH on which there is everything but Python."""
    folder = host.folder / "bin"
    folder.mkdir()
    for tool in ("sh", "uname", "cat", "cut", "sha256sum", "mkdir", "chmod", "mv", "rm", "find"):
        (folder / tool).symlink_to(f"/usr/bin/{tool}")
    return str(folder)


def test_a_host_without_python_is_refused(trueload: Trueload, own_ssh: Ssh) -> None:
    host = own_ssh.network.hosts[0]
    restart_sshd(host, own_ssh, env=f"PATH={without_python(host)}")
    ended = trueload.run("doctor", "--install", "ssh:h1", "--quick", env=own_ssh.env)
    assert ended.code == 2, ended
    assert ended.err.startswith("error: h1 has no Python 3.11 or newer\n")


def test_a_stream_that_breaks_installs_nothing(
    connection: Connection, own_ssh: Ssh, home: Path, tmp_path: Path
) -> None:
    folder = small(tmp_path, "first")
    broken = own_ssh.folder / "bin" / "tar"
    broken.write_text('#!/bin/sh\n/usr/bin/tar "$@"\nexit 2\n')
    broken.chmod(0o755)
    with pytest.raises(UserError, match=r"cannot be packed for h1: tar ended with 2"):
        put(connection, python_there(connection), folder, "1.0", "tell")
    assert not list((home / ".local" / "lib" / "tell").iterdir())
    assert not (home / ".local" / "bin").exists()
