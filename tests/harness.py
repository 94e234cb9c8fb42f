"""What end-to-end tests use to run trueload as a user does: the real command, in its own process.

Every process starts in its own session, with a store and folders of its own, so that tests can run
side by side and leave nothing on the machine; only the cache of builds is shared. Every wait is
bounded. Tests reach these through the fixtures in ``conftest.py``.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import random
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from preloaded import OF_THE_INTERPRETER, Parent, Preloaded
from trueload.protocol.client import ClientContract
from trueload.subjects.contracts import AnyContract, load_contract

ROOT = Path(__file__).resolve().parent.parent
# A bound for a command that hangs, not a measure of how quick it should be.
COMMAND_TIMEOUT_S = 90.0


# Checks that say more of what else runs on the machine of the tests than of the server. Each is
# seen to pass and to speak in ``test_strict.py``, which has the machine to itself.
OF_THE_MACHINE = {
    *("noise", "same-host", "hiccup", "quantile-width", "server-idle", "generator-limit"),
    *("littles-law", "fairness", "starvation", "send-lag", "rate-reached"),
    *("client-share", "cpu-speed"),
}
# No test can make another machine use the core: of these there are unit tests only.
OF_OTHER_MACHINES = {"cpu-speed"}
# A busy machine makes a flow uneven, too: these are excused where one of the others speaks.
SHAKEN = {"steady-state", "stall", "slow-connections", "backlog"}
# Tests measure for moments, or a few requests, which other tests on the machine can make uneven.
OF_SHORT_RUNS = {"window", "steady-state"}


def spoiled(by_check: Mapping[str, str]) -> bool:
    """Whether the machine of the tests alone has made a result invalid, by each check's status."""
    failing = {name for name, status in by_check.items() if status == "fail"}
    return bool(failing & OF_THE_MACHINE) and failing <= OF_THE_MACHINE | SHAKEN


def statuses(found: Any) -> dict[str, str]:
    """The status of each check of a result."""
    return {check["name"]: check["status"] for check in found["checks"]}


def against(found: Any) -> set[str]:
    """The checks that say something against a result, other than of the machine or the time."""
    checks = {each["name"] for each in found["checks"] if each["status"] in ("warn", "fail")}
    checks -= OF_SHORT_RUNS
    return checks - OF_THE_MACHINE - (SHAKEN if checks & OF_THE_MACHINE else set())


@dataclass(frozen=True)
class Finished:
    """A command that has ended: its exit code and what it wrote."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Stdout as exactly one JSON value; an AssertionError shows everything otherwise."""
        try:
            return json.loads(self.out)
        except ValueError as error:
            raise AssertionError(f"stdout is not one JSON value ({error}): {self}") from error

    def measured(self, code: int = 0) -> Any:
        """The result of a run that is to end with this code: if it is invalid, then only for what
        else runs on the machine of the tests."""
        found = self.json()
        assert self.code == (4 if spoiled(statuses(found)) else code), self
        return found


class Trueload:
    """Runs ``trueload`` in a world of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "store.sqlite"
        self._started: list[subprocess.Popen[str]] = []

    def env(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """The environment of every command: the caller's, but its own store and folders."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("TRUELOAD_", "PYTEST_"))}
        # What a terminal can do is for a test to say: its own may be none, or a dumb one.
        kept["TERM"] = "xterm-256color"
        for name in ("TRUELOAD_ENGINE", "TRUELOAD_HOME", "TRUELOAD_LOCK"):
            if name in os.environ:
                kept[name] = os.environ[name]
        own = {
            "TRUELOAD_STORE": str(self.store),
            "XDG_DATA_HOME": str(self.folder / "data"),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "TRUELOAD_CONFIG": "",
            "PYTHONPATH": str(ROOT / "python"),
            "NO_COLOR": "1",
            "COLUMNS": "100",
        }
        return {**kept, **own, **(extra or {})}

    def run(
        self,
        *args: str | Path,
        env: Mapping[str, str] | None = None,
        stdin: str = "",
        cwd: Path | None = None,
        timeout_s: float = COMMAND_TIMEOUT_S,
    ) -> Finished:
        """Run a command to its end. One that hangs is killed and fails the test."""
        process = self.start(*args, env=env, cwd=cwd, stdin=subprocess.PIPE)
        try:
            out, err = process.communicate(stdin, timeout=timeout_s)
        except subprocess.TimeoutExpired as expired:
            kill_group(process)
            out, err = process.communicate()
            words = " ".join(map(str, args))
            raise AssertionError(
                f"`trueload {words}` still ran after {timeout_s} s\n{out}\n{err}"
            ) from expired
        return Finished(process.returncode, out, err)

    def start(
        self,
        *args: str | Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: int = subprocess.DEVNULL,
        stdout: int = subprocess.PIPE,
        stderr: int = subprocess.PIPE,
        prepare: Callable[[], None] | None = None,
        terminal: bool = False,
        file_bytes_max: int | None = None,
    ) -> subprocess.Popen[str]:
        """Start a command and leave it running; it is killed when the test ends. ``prepare`` is
        done by its process, in a session of its own, before it is the command's, which takes an
        interpreter of its own.

        ``terminal`` makes its stdin the terminal of its session. ``file_bytes_max`` limits the size
        of its files, which acts like a full disk.
        """
        words = list(map(str, args))
        options: Any = {"env": self.env(env), "cwd": cwd or ROOT, "text": True}
        options |= {"stdin": stdin, "stdout": stdout, "stderr": stderr}
        process: subprocess.Popen[str]
        if prepare is None and not any(name.startswith(OF_THE_INTERPRETER) for name in env or ()):
            begins: Any = {"terminal": terminal, "file_bytes_max": file_bytes_max}
            process = Preloaded(preloading(), words, **begins, **options)
        else:
            assert not terminal, "only of a command that is forked"
            assert file_bytes_max is None, "only of a command that is forked"
            command = [sys.executable, "-m", "trueload", *words]
            options |= {"start_new_session": True, "preexec_fn": prepare}
            process = subprocess.Popen(command, **options)
        self._started.append(process)
        return process

    def last_rows(self) -> Any:
        """The rows of the last run in the store, as a later command reads them."""
        return self.run("runs", "show", "last", "--json").json()["rows"]

    def close(self) -> None:
        """Kill what the test has left running."""
        for process in self._started:
            kill_group(process)
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()


@dataclass(frozen=True)
class Server:
    """A reference server that is running."""

    host: str
    port: int
    process: subprocess.Popen[str]

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"


def engines_of(pid: int) -> list[psutil.Process]:
    """The engines that a process has started, by itself or by others, which may be ending."""
    found = []
    for child in psutil.Process(pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if child.name().startswith("trueload-engine"):
                found.append(child)
    return found


def start_server(
    trueload: Trueload, *args: str, service: str = "http", address: str = "127.0.0.1"
) -> Server:
    """Start ``trueload serve`` on a free port and wait until it says where it listens."""
    process = trueload.start(
        "serve", service, "--listen", f"{address}:0", *args, stderr=subprocess.STDOUT
    )
    output = ""
    deadline_s = time.monotonic() + 30
    assert process.stdout is not None
    while time.monotonic() < deadline_s:
        readable, _, _ = select.select([process.stdout], [], [], deadline_s - time.monotonic())
        line = process.stdout.readline() if readable else ""
        if not line:
            break
        output += line
        found = re.search(rf"{re.escape(address)}:(\d+)", line)
        if found:
            return Server(address, int(found[1]), process)
    kill_group(process)
    raise AssertionError(f"the reference server did not say where it listens: {output!r}")


@functools.cache
def preloading() -> Parent:
    """What starts the commands of the tests of one worker process."""
    return Parent()


def kill_group(process: subprocess.Popen[str]) -> None:
    """Kill a process started by us, with its group, and reap it."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def put_script(path: Path, script: str) -> Path:
    """Write a program for sh to a file, and return that."""
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def find_free_port() -> int:
    """A TCP port that is free on 127.0.0.1, below those that the kernel hands out: no connection of
    another test gets it before it is used."""
    handed_out = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.randrange(1024, handed_out)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def server_contract(name: str) -> AnyContract:
    """A contract of servers that is in the catalogue."""
    contract = load_contract(ROOT / "contracts", name)
    assert not isinstance(contract, ClientContract)
    return contract
