"""What can be wrong with a host reached by ssh, each produced for real.

It is told in one line and one hint; nothing is started and nothing is left behind.
"""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import put_script
from trueload.engines.engine import Engine
from trueload.errors import HostError, UserError
from trueload.places.copying import Copying
from trueload.places.ssh import SshPlace, connection

from hosts.network import Host
from hosts.sshd import Ssh, make_key

Spoil = Callable[[Ssh, Host], object]
FAKE_HELLO = '{"type":"hello","protocol":99,"version":"9.9.9","pid":1}'


def refuse_key(ssh: Ssh, host: Host) -> None:
    (host.folder / "authorized_keys").write_text("")


def change_host_key(ssh: Ssh, host: Host) -> None:
    make_key(host.folder / "other_key")
    kind, key, *_ = (host.folder / "other_key.pub").read_text().split()
    ssh.known_hosts.write_text(f"{host.address} {kind} {key}\n")


def forget_host_key(ssh: Ssh, host: Host) -> None:
    ssh.known_hosts.write_text("")


def pull_link(ssh: Ssh, host: Host) -> None:
    host.link("down")


def spoil_config(ssh: Ssh, host: Host) -> None:
    ssh.config.write_text("NoSuchOption yes\n" + ssh.config.read_text())


def forget_name(ssh: Ssh, host: Host) -> None:
    ssh.config.write_text(ssh.config.read_text().replace(host.address, "h1.invalid"))


def put_file_for_folder(ssh: Ssh, host: Host) -> None:
    (host.cache / "trueload").write_text("")


def mounted(options: str) -> Spoil:
    """The cache folder is a file system with these options."""
    return lambda ssh, host: host.run("mount", "-t", "tmpfs", "-o", options, "tmpfs", host.cache)


def configured(more: str) -> Spoil:
    """sshd has one more line in its config."""
    return lambda ssh, host: ssh.restart(host, more=more)


def said_by_uname(script: str) -> Spoil:
    """The host's first ``uname`` is a script."""

    def spoil(ssh: Ssh, host: Host) -> None:
        folder = host.only("")
        put_script(folder / "uname", script)
        ssh.restart(host, env=f"PATH={folder}:/usr/bin:/bin")

    return spoil


def lose_sha256sum(ssh: Ssh, host: Host) -> None:
    ssh.restart(host, env=f"PATH={host.only('sh uname cat cut mkdir mktemp chmod mv rm')}")


NO_SHELL = configured("ForceCommand /usr/sbin/nologin")
BABBLE = configured("ForceCommand yes 'what shall I do?'")
OTHER_MACHINE = said_by_uname('case "$1" in -s) echo Linux;; *) echo aarch64;; esac')


@pytest.mark.parametrize(
    ("spoil", "words", "hint"),
    [
        (refuse_key, "h1 accepts none of your keys", "ssh-add"),
        (change_host_key, "the key of h1 is not the one that ssh knows", "ssh-keygen -R"),
        (forget_host_key, "ssh does not know the key of h1", "log in once"),
        (
            lambda ssh, host: host.link("down"),
            "(there is no route to h1)|(h1 does not answer)",
            "is it up",
        ),
        (Ssh.stop, "h1 refuses connections of ssh", "sshd"),
        (spoil_config, "your ssh config cannot be used: .*bad configuration option", "ssh h1 true"),
        (forget_name, "ssh knows no host h1", "ssh config"),
        (mounted("size=1m"), "there is no space on h1 for the engine", "free some"),
        (mounted("ro"), "on h1 cannot be written: .*Read-only file system", "XDG_CACHE_HOME"),
        (put_file_for_folder, "on h1 cannot be written: .*mkdir", "XDG_CACHE_HOME"),
        (mounted("noexec"), "h1 runs no programs from its cache folder", "XDG_CACHE_HOME"),
        (
            configured("ForceCommand /usr/sbin/nologin"),
            "on h1 runs no commands: .*not available",
            "needs a shell",
        ),
        (
            configured("ForceCommand yes 'what shall I do?'"),
            "on h1 does not run commands: .*what shall I do",
            "start-up files",
        ),
        (configured("MaxSessions 1"), "h1 allows too few sessions", "MaxSessions"),
        (OTHER_MACHINE, "h1 is aarch64, and the engine here is for x86_64", "aarch64"),
        (said_by_uname("echo FreeBSD"), "h1 is FreeBSD", "Linux"),
        (lose_sha256sum, "h1 has no sha256sum", "coreutils"),
    ],
)
def test_what_is_wrong_with_a_host_is_told(
    own_ssh: Ssh,
    engine_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    spoil: Spoil,
    words: str,
    hint: str,
) -> None:
    monkeypatch.setenv("PATH", own_ssh.env["PATH"])
    spoil(own_ssh, own_ssh.network.hosts[0])
    alone = own_ssh.folder / engine_path.name  # `make engines` puts another one beside it
    alone.symlink_to(engine_path)
    with SshPlace("h1") as place, pytest.raises(UserError, match=words) as caught:
        place.prepare(alone)
    assert caught.value.exit_code == 2
    assert hint in caught.value.hint
    assert "\n" not in caught.value.message + caught.value.hint
    cache = own_ssh.network.hosts[0].cache / "trueload" / "programs"
    assert not cache.exists() or not any(cache.glob(".*"))


def test_a_shell_that_greets_is_no_hindrance(own_ssh: Ssh, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", own_ssh.env["PATH"])
    greeting = "echo; echo 'Welcome to h1'; printf 'no newline'"
    command = f'ForceCommand {greeting}; eval "$SSH_ORIGINAL_COMMAND"'
    own_ssh.restart(own_ssh.network.hosts[0], more=command)
    with SshPlace("h1") as place, Engine.start(place) as engine:
        assert engine.hello.version


def test_a_shell_that_hangs_is_told_from_a_host_that_lets_nobody_in(
    own_ssh: Ssh, engine_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", own_ssh.env["PATH"])
    monkeypatch.setattr(connection, "LOG_IN_S", 3.0)
    home = own_ssh.folder / "home"
    home.mkdir()
    (home / ".bashrc").write_text("sleep 1000\n")
    own_ssh.network.hosts[0].run("mount", "--bind", home, "/root")
    with SshPlace("h1") as place, pytest.raises(HostError) as caught:
        place.prepare(engine_path)
    assert "logged in to h1, but its shell does not start" in caught.value.message
    assert "`ssh h1 true` shows it" in caught.value.hint


def test_no_ssh_here_is_told(
    engine_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with SshPlace("h1") as place, pytest.raises(UserError, match="ssh is not installed") as caught:
        place.prepare(engine_path)
    assert "openssh-client" in caught.value.hint


def test_an_engine_that_speaks_another_protocol_is_told(
    own_ssh: Ssh, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = put_script(tmp_path / "trueload-engine", f"echo '{FAKE_HELLO}'\ncat >/dev/null")
    monkeypatch.setenv("PATH", own_ssh.env["PATH"])
    monkeypatch.setenv("TRUELOAD_ENGINE", str(other))
    with SshPlace("h1") as place, pytest.raises(UserError, match="speaks protocol 99"):
        Engine.start(place)
    host = own_ssh.network.hosts[0]
    assert not host.processes("trueload-engine")


def test_an_engine_whose_c_library_is_not_there_is_told_before_it_is_sent(
    own_ssh: Ssh, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source, program = tmp_path / "main.c", tmp_path / "program"
    source.write_text("int main(void) { return 0; }\n")
    loader = "/lib/none/ld-none.so.1"
    subprocess.run(["cc", f"-Wl,--dynamic-linker={loader}", source, "-o", program], check=True)
    monkeypatch.setenv("PATH", own_ssh.env["PATH"])
    with SshPlace("h1") as place, pytest.raises(UserError, match="lacks the C library") as caught:
        place.prepare(program)
    assert loader in caught.value.message
    assert not (own_ssh.network.hosts[0].cache / "trueload").exists()


def test_a_log_in_that_sshd_drops_is_tried_again(
    own_ssh: Ssh, engine_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", own_ssh.env["PATH"])
    host = own_ssh.network.hosts[0]
    own_ssh.restart(host, more="MaxStartups 1")
    hanging = socket.create_connection((host.address, 22))
    assert hanging.recv(64).startswith(b"SSH-"), "it is the one log-in that may be under way"
    lines: list[str] = []

    def note(line: str) -> None:
        lines.append(line)
        hanging.close()

    with SshPlace("h1") as place:
        place.prepare(engine_path, Copying(note))
    assert lines
    assert "h1, or a jump host on the way to it, dropped the login" in lines[0]
    assert "trying again in" in lines[0]
