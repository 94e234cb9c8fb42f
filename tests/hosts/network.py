"""A small network of hosts on this machine: namespaces of the kernel, joined by a bridge.

How: each host has its own network, processes and mounts (``unshare``), and a link to the bridge, on
which this machine has an address, too. A host lives as long as its first process, which ends with
the test's process; the kernel then ends everything that runs there and removes its link.

Needs root, iproute2, util-linux and, for ``ssh``, openssh-server. Must not know trueload.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from waiting import wait_until

# Reserved for measurements between networks (RFC 2544).
NET = "198.18"
HOSTS_MAX = 200
TOOLS = {"ip": "iproute2", "unshare": "util-linux", "nsenter": "util-linux"}
SSHD = "/usr/sbin/sshd"
COMMAND_S = 30.0
UNSHARE = ("unshare", "--net", "--pid", "--mount", "--fork")

# The first process of a host: reaps orphans, and ends with the process that started it.
INIT = """
import os, signal, subprocess, sys
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
subprocess.run(["mount", "-t", "proc", "proc", "/proc"], check=True)
# Other hosts' control groups are none of its own; without any it does as in a container.
subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/sys/fs/cgroup"], check=False)
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.write(1, b"up\\n")
while os.read(0, 4096):
    pass
"""


def missing() -> str | None:
    """Return why this machine can have no network, in one line; None if it can."""
    if os.geteuid() != 0:
        return "namespaces and links need root"
    for tool, package in TOOLS.items():
        if shutil.which(tool) is None:
            return f"{tool} is missing: install Debian's {package}"
    tried = subprocess.run([*UNSHARE, "true"], capture_output=True, text=True, check=False)
    return None if tried.returncode == 0 else f"the kernel refuses namespaces: {tried.stderr}"


def missing_ssh() -> str | None:
    """Return why there can be no sshd, in one line; None if there can."""
    return None if Path(SSHD).exists() else "sshd is missing: install Debian's openssh-server"


@dataclass
class Host:
    """One host: ``name`` is its name for ssh, ``address`` its address for the others."""

    name: str
    address: str
    folder: Path
    link_name: str
    """Of this machine's end of its link."""
    anchor: subprocess.Popen[bytes]
    _init_pid: int = 0
    _started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def pid(self) -> int:
        """The pid of its first process, as seen from this machine."""
        if not self._init_pid:
            path = Path(f"/proc/{self.anchor.pid}/task/{self.anchor.pid}/children")
            self._init_pid = int(path.read_text().split()[0])
        return self._init_pid

    @property
    def cache(self) -> Path:
        """The cache folder of the user who logs in by ssh."""
        return self.folder / "cache"

    def only(self, programs: str) -> Path:
        """Make a folder with these programs alone, to be a PATH there."""
        folder = self.folder / "bin"
        folder.mkdir()
        for name in programs.split():
            (folder / name).symlink_to(f"/usr/bin/{name}")
        return folder

    def inside(self, *argv: str | Path) -> list[str]:
        """The command that runs ``argv`` on the host."""
        enter = ["nsenter", f"--target={self.pid}", "--net", "--pid", "--mount", "--"]
        return [*enter, *map(str, argv)]

    def run(self, *argv: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command on the host to its end, capturing its output."""
        done = subprocess.run(
            self.inside(*argv), capture_output=True, text=True, timeout=COMMAND_S, check=False
        )
        assert not check or done.returncode == 0, f"{argv} on {self.name}: {done.stderr}"
        return done

    def start(
        self,
        *argv: str | Path,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[str]:
        """Start a process on the host; it ends with the host at the latest.

        What is returned is the process that entered the host; send signals to ``processes()``.
        """
        process = subprocess.Popen(
            self.inside(*argv),
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._started.append(process)
        return process

    def link(self, state: str) -> None:
        """Set its link: ``down`` pulls the cable, ``up`` plugs it in again."""
        ip("link", "set", self.link_name, state)

    def await_packets(self) -> None:
        """Wait until it has sent 1,000 packets more over its link."""
        sent = Path(f"/sys/class/net/{self.link_name}/statistics/rx_packets")
        before = int(sent.read_text())
        wait_until(lambda: int(sent.read_text()) > before + 1_000, "it sends")

    def processes(self, containing: str = "") -> dict[int, str]:
        """The host's processes whose command lines contain a word.

        The keys are pids as seen from this machine. The first process and zombies are left out.
        """
        processes = os.readlink(f"/proc/{self.pid}/ns/pid")
        found = {}
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) == self.pid:
                continue
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{name}/ns/pid") == processes:
                    words = Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\0", b" ")
                    line = words.decode(errors="replace").strip()
                    if line and containing in line:
                        found[int(name)] = line
        return found

    def kill(self, containing: str, number: int = signal.SIGKILL) -> int:
        """Send a signal to each such process; return how many there were."""
        pids = list(self.processes(containing))
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        return len(pids)

    def end(self) -> None:
        """End the host, with everything on it."""
        for stream in (self.anchor.stdin, self.anchor.stdout):
            if stream is not None:
                stream.close()
        # Its first process ends with its input, once the kernel has ended all others.
        self.anchor.wait(COMMAND_S)
        for process in self._started:
            process.wait(COMMAND_S)
            assert process.stdout is not None
            process.stdout.close()


class Network:
    """Hosts ``h1``, ``h2``, … on a bridge; a context manager that removes them."""

    def __init__(self, folder: Path, hosts: int = 3) -> None:
        assert 1 <= hosts <= HOSTS_MAX
        self.folder = folder
        self.hosts: list[Host] = []
        self._count = hosts
        self._token = secrets.token_hex(4)  # `random` is seeded alike in every test
        self.bridge = f"tb{self._token}"
        self._third = 0

    @property
    def address(self) -> str:
        """This machine's address for the hosts."""
        return f"{NET}.{self._third}.1"

    def __enter__(self) -> Network:
        try:
            ip("link", "add", self.bridge, "type", "bridge")
            # Tests run side by side: nobody may choose between this choice and its use.
            with Path(tempfile.gettempdir(), f"trueload-{NET}.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                self._third = free_third()
                ip("address", "add", f"{self.address}/24", "dev", self.bridge)
            ip("link", "set", self.bridge, "up")
            for number in range(1, self._count + 1):
                self._add(number)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for host in self.hosts:
            host.end()
            # The link is removed with the host, but a moment later; a new host must not find the
            # old one.
            subprocess.run(["ip", "link", "delete", host.link_name], capture_output=True)
        subprocess.run(["ip", "link", "delete", self.bridge], capture_output=True)
        self.hosts = []

    def fix(self) -> None:
        """Restore the links that a test has pulled."""
        for host in self.hosts:
            host.link("up")

    def _add(self, number: int) -> None:
        name, link_name = f"h{number}", f"tl{self._token}{number:x}"
        folder = self.folder / name
        (folder / "cache").mkdir(parents=True)
        (folder / "tmp").mkdir()
        anchor = subprocess.Popen(
            [*UNSHARE, "--kill-child", sys.executable, "-I", "-S", "-c", INIT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,  # Ctrl-C must reach only the test
        )
        host = Host(name, f"{NET}.{self._third}.{10 + number}", folder, link_name, anchor)
        self.hosts.append(host)
        assert anchor.stdout is not None
        assert anchor.stdout.readline() == b"up\n", f"{name} did not come up"
        far = f"{link_name}f"
        ip("link", "add", link_name, "type", "veth", "peer", "name", far)
        ip("link", "set", far, "netns", str(host.pid))
        ip("link", "set", link_name, "master", self.bridge, "up")
        host.run("ip", "link", "set", far, "name", "eth0")
        host.run("ip", "address", "add", f"{host.address}/24", "dev", "eth0")
        host.run("ip", "link", "set", "eth0", "up")
        host.run("ip", "route", "add", "default", "via", self.address)


def ip(*words: str) -> None:
    """Run iproute2's ``ip``; its error message becomes the assertion's."""
    done = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=COMMAND_S)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"


def free_third() -> int:
    """Return a third byte of a network address that no other test on this machine uses now."""
    result = subprocess.run(["ip", "-json", "address"], capture_output=True, text=True, check=True)
    taken = {
        int(address["local"].split(".")[2])
        for link in json.loads(result.stdout)
        for address in link.get("addr_info", ())
        if address.get("local", "").startswith(f"{NET}.")
    }
    return secrets.choice(sorted(set(range(1, 255)) - taken))


def lines_of(process: subprocess.Popen[str], containing: str) -> str:
    """Wait for an output line that contains a word. Raises AssertionError at the end of output."""
    assert process.stdout is not None
    output = ""
    for line in process.stdout:
        output += line
        if containing in line:
            return line
    raise AssertionError(f"it never said {containing!r}: {output}")
