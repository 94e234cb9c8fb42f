"""sshd on the hosts of a ``Network``, and the ssh config of a user who has logged in before.

How: every host has its own host key; the user has one key and a file of known hosts. ``ssh`` reads
its config from the home in the password file and ignores ``HOME``. Therefore a script called
``ssh``, first on the PATH, passes it ours by ``-F``, so that ``h1`` is a host as in any user's
config. Nothing of the machine's own ssh is read or changed. Must not know trueload.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from waiting import wait_until

from hosts.network import SSHD, Host, Network, lines_of

SSHD_CONFIG = """
Port {port}
ListenAddress {address}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
SetEnv XDG_CACHE_HOME={cache} TMPDIR={folder}/tmp {env}
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
StrictModes no
UsePAM no
UseDNS no
PidFile none
{more}
"""

CLIENT_CONFIG = """
Host {name}
    HostName {address}
    Port {port}
    User root
    IdentityFile {folder}/user_key
    UserKnownHostsFile {folder}/known_hosts
"""

COMMON_CONFIG = """
Host *
    IdentitiesOnly yes
    IdentityAgent none
    GlobalKnownHostsFile none
"""


@dataclass
class Ssh:
    """A user's ssh configuration, in its own folder."""

    folder: Path
    network: Network

    @property
    def env(self) -> dict[str, str]:
        """The environment in which a command finds this ssh."""
        return {"PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    @property
    def config(self) -> Path:
        return self.folder / "config"

    def add(self, name: str, host: Host, *, port: int = 22) -> None:
        """Add a host to the user's config under a name."""
        with self.config.open("a") as config:
            config.write(
                CLIENT_CONFIG.format(name=name, address=host.address, port=port, folder=self.folder)
            )

    def serve(self, host: Host, *, port: int = 22, more: str = "", env: str = "") -> None:
        """Start one sshd, to which the user may log in; it listens when this returns.

        ``more`` are further lines of its config, ``env`` is what it sets for the user who logs in:
        ``NAME=VALUE NAME=VALUE``.
        """
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd's privilege separation needs it
        key = (self.folder / "user_key.pub").read_text()
        (host.folder / "authorized_keys").write_text(key)
        if not (host.folder / "host_key").exists():
            make_key(host.folder / "host_key")
        config = host.folder / f"sshd_config.{port}"
        config.write_text(
            SSHD_CONFIG.format(
                address=host.address,
                port=port,
                folder=host.folder,
                cache=host.cache,
                env=env,
                more=more,
            )
        )
        process = host.start(SSHD, "-D", "-e", "-f", config)
        lines_of(process, "Server listening")

    def stop(self, host: Host) -> None:
        """End the sshd of a host."""
        assert host.kill("sshd_config.22") == 1
        wait_until(lambda: not host.processes("sshd_config.22"), "sshd has gone")

    def restart(self, host: Host, *, more: str = "", env: str = "") -> None:
        """Replace the sshd of a host, as by ``serve``."""
        self.stop(host)
        self.serve(host, more=more, env=env)


def start_ssh(network: Network, folder: Path) -> Ssh:
    """Start sshd on every host, and prepare the user's side."""
    real = shutil.which("ssh")
    assert real is not None, "ssh is missing: install Debian's openssh-client"
    (folder / "bin").mkdir(parents=True)
    make_key(folder / "user_key")
    ssh = Ssh(folder, network)
    ssh.config.write_text(COMMON_CONFIG)
    wrapper = folder / "bin" / "ssh"
    wrapper.write_text(f'#!/bin/sh\nexec {real} -F {ssh.config} "$@"\n')
    wrapper.chmod(0o755)
    for host in network.hosts:
        ssh.add(host.name, host)
        ssh.serve(host)
    know_hosts(ssh)
    return ssh


def logins(host: Host) -> list[str]:
    """The processes of a host beside its sshd and Ray, which other tests may have started."""
    lines = host.processes().values()
    return [line for line in lines if "sshd_config" not in line and "ray" not in line]


def know_hosts(ssh: Ssh) -> None:
    """Record every host's key as known to the user."""
    lines = []
    for host in ssh.network.hosts:
        kind, key, *_ = (host.folder / "host_key.pub").read_text().split()
        lines.append(f"{host.address} {kind} {key}\n[{host.address}]:* {kind} {key}\n")
    ssh.known_hosts.write_text("".join(lines))


def make_key(path: Path) -> None:
    """Make a key pair without a passphrase, replacing one that exists."""
    for each in (path, path.with_name(f"{path.name}.pub")):
        each.unlink(missing_ok=True)
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", path], check=True
    )
