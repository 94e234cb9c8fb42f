"""The ways to a host for `faults_hosts.py`, and a long run over three hosts that can be watched."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from setting import ROOT

sys.path.insert(0, str(ROOT / "tests"))

from harness import Server, Trueload, kill_group, start_server
from hosts.network import Host, Network
from hosts.raylets import Raylets, start_ray
from hosts.sshd import Ssh, start_ssh
from waiting import wait_until

HOSTS, CONNECTIONS = 3, 6
STRUCK = 1
"""The index of the host to which faults happen: `h2`."""
PROXY = (sys.executable, "-IS", str(ROOT / "tests" / "proxy_command.py"))
WORKED_S = 0.3
"""An engine that has used this much CPU time has sent requests for a while."""
LATE_PORT = 2222
DAY_LATER = ("unshare", "--time", "--fork", "--monotonic", "90000", "--boottime", "90000")
"""What runs in this has clocks that are 25 hours ahead."""


@dataclass(frozen=True)
class World:
    """Three hosts and a server that they reach."""

    network: Network
    trueload: Trueload
    server: Server
    ssh: Ssh
    raylets: Raylets | None

    @property
    def struck(self) -> Host:
        """The host to which faults happen."""
        return self.network.hosts[STRUCK]

    def engines(self) -> int:
        """How many engines run on the hosts."""
        return sum(len(engines_of(host)) for host in self.network.hosts)

    def connected(self) -> int:
        """The connections that the hosts have to the server."""
        server = f"{self.network.address}:{self.server.port}"
        words = ("ss", "-Htn", "state", "established", "dst", server)
        return sum(len(host.run(*words).stdout.splitlines()) for host in self.network.hosts)


@contextmanager
def open_world(folder: Path, *, with_ray: bool) -> Iterator[World]:
    """Create hosts and server, and remove them at the end."""
    with ExitStack() as stack:
        network = stack.enter_context(Network(folder / "hosts", HOSTS))
        ssh = start_ssh(network, folder / "ssh")
        struck = network.hosts[STRUCK]
        command = f'ForceCommand {shlex.join(DAY_LATER)} -- sh -c "$SSH_ORIGINAL_COMMAND"'
        ssh.serve(struck, port=LATE_PORT, more=command)
        ssh.add("late", struck, port=LATE_PORT)
        jumps = " ".join(far_name(host) for host in network.hosts if host is not struck)
        with ssh.config.open("a") as config:
            config.write(
                f"Host {jumps}\n    ProxyCommand {ssh.folder}/bin/ssh -W %h:%p {struck.name}\n"
            )
        for host in network.hosts:
            ssh.add(far_name(host), host)
        raylets = start_ray(network) if with_ray else None
        trueload = Trueload(folder / "world")
        stack.callback(trueload.close)
        served = start_server(trueload, "--threads", "1", address=network.address)
        yield World(network, trueload, served, ssh, raylets)


@dataclass(frozen=True)
class Way:
    """A way to the hosts: the flags of the command, and how it calls the struck host."""

    name: str
    flags: tuple[str, ...]
    label: str


def by_ssh(world: World, *, late: bool = False) -> Way:
    """Log in to each host; `late` sets the clocks of the struck host's engine."""
    names = [host.name for host in world.network.hosts]
    if late:
        names[STRUCK] = "late"
    return Way("ssh", tuple(f"--place=ssh:{name}" for name in names), f"ssh:{names[STRUCK]}")


def far_name(host: Host) -> str:
    """The name by which ssh reaches a host through the struck one, and that one directly."""
    return f"far-{host.name}"


def by_jump_host(world: World) -> Way:
    """Log in to each host by way of the struck one."""
    names = [far_name(host) for host in world.network.hosts]
    return Way("ssh", tuple(f"--place=ssh:{name}" for name in names), "")


def by_proxy(world: World) -> Way:
    """Enter each host by a command that passes on what it reads and writes."""
    way = by_exec(world)
    flags = tuple(flag.replace("exec:", f"exec:{shlex.join(PROXY)} ", 1) for flag in way.flags)
    return Way("exec", flags, way.label)


def by_exec(world: World, *, late: bool = False) -> Way:
    """Enter each host by a command."""
    commands = [
        host.inside(
            *(DAY_LATER if late and host is world.struck else ()),
            *("env", f"TRUELOAD_CACHE={host.cache}"),
        )
        for host in world.network.hosts
    ]
    flags = tuple(f"--place=exec:{shlex.join(command)}" for command in commands)
    return Way("exec", flags, f"--target={world.struck.pid} ")


def by_ray(world: World, *, late: bool = False) -> Way:
    """Be given the hosts by a Ray cluster."""
    assert world.raylets is not None
    assert not late
    flags = ("--place", world.raylets.address, "--hosts", str(HOSTS))
    return Way("ray", flags, world.struck.name)


WAYS = {"ssh": by_ssh, "exec": by_exec, "ray": by_ray}


@dataclass
class Run:
    """A running command; what it prints is kept with the time at which it came."""

    process: subprocess.Popen[str]
    lines: list[tuple[float, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append((time.monotonic(), line))

    @property
    def text(self) -> str:
        """All that it has printed."""
        return "".join(line for _, line in self.lines)

    def said_s(self, pattern: str) -> float | None:
        """When it first printed a line that matches, by the monotonic clock."""
        return next((at_s for at_s, line in self.lines if re.search(pattern, line)), None)

    def end(self, bound_s: float = 60.0) -> int:
        """Wait for its end, and return its exit code."""
        code = self.process.wait(bound_s)
        self._reader.join(bound_s)
        return code


@contextmanager
def running(world: World, way: Way, *words: str) -> Iterator[Run]:
    """Run a command over the hosts; every one of them has measured for a while when this yields."""
    process = world.trueload.start(
        *("http", f"{world.server.url}/", "-c", str(CONNECTIONS), "--warmup", "100ms"),
        *words,
        *way.flags,
        env=world.ssh.env,
        stderr=subprocess.STDOUT,
    )
    run = Run(process)

    def measures() -> bool:
        if process.poll() is not None:
            raise AssertionError(run.text)
        return all(map(is_at_work, world.network.hosts)) and world.connected() == CONNECTIONS

    try:
        wait_until(measures, "every host measures")
        yield run
    finally:
        kill_group(process)


def engines_of(host: Host) -> list[int]:
    """The PIDs of the engines on a host, without the shell that starts one."""
    found = []
    for pid in host.processes():
        with contextlib.suppress(OSError):
            if "trueload" in os.path.basename(os.readlink(f"/proc/{pid}/exe")):
                found.append(pid)
    return found


def is_at_work(host: Host) -> bool:
    """Tell whether the host's engine has worked for longer than it takes to start."""
    with contextlib.suppress(psutil.NoSuchProcess):
        times = [psutil.Process(pid).cpu_times() for pid in engines_of(host)]
        return any(used.user + used.system > WORKED_S for used in times)
    return False


def saved_record(world: World) -> dict[str, Any]:
    """The record of the last run in the store."""
    record: dict[str, Any] = world.trueload.last_rows()[0]["record"]
    return record


def send_signal(pids: Sequence[int], number: int) -> None:
    """Send a signal to processes that may have ended."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
