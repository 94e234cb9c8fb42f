"""The servers under load, each on CPU 0.

They are the reference server, plain and over TLS, and subjects such as nginx and c/epoll.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from engine import serving
from process import BenchError, prepare
from setting import ROOT
from trueload.commands.ab_servers import find_subject
from trueload.commands.job import TRUELOAD_COMMAND
from trueload.machine.accounting import ProcessTree, TreeSample, usage
from trueload.protocol.engine_options import DriverName
from trueload.runner.build import BuildError, build, in_use
from trueload.runner.needs import missing
from trueload.runner.process import substitute

NGINX = ROOT / "subjects" / "c" / "nginx"
EPOLL = ROOT / "subjects" / "c" / "epoll"
READY_S = 10.0
BUILD_S = 60.0


@dataclass(frozen=True)
class Server:
    """A listening server."""

    name: str
    port: int
    pid: int
    scheme: str = "http"
    driver: str = ""
    """Of the reference server."""
    path: str = "/"
    """What is asked for."""

    def sample(self) -> TreeSample:
        """Sample the resources that its process tree has used so far."""
        return ProcessTree(self.pid).sample()


def cpu_s_between(before: TreeSample, after: TreeSample) -> float:
    """CPU seconds that the tree used between two samples."""
    return usage(before, after).cpu_s


@contextmanager
def reference(binary: Path, cpu: int, driver: DriverName = "auto") -> Iterator[Server]:
    """Start the reference server (`trueload-engine`) with one thread."""
    with serving(binary, cpu, driver) as (port, pid, chosen):
        yield Server("reference", port, pid, driver=chosen)


@contextmanager
def nginx(folder: Path, cpu: int) -> Iterator[Server]:
    """Start nginx with one worker, as the suite starts it."""
    port = free_port()
    command = ["sh", "start.sh", str(folder), "127.0.0.1", str(port), "1"]
    with _subject("nginx", port, command, NGINX, cpu) as server:
        yield server


@contextmanager
def nginx_http2(folder: Path, cpu: int) -> Iterator[Server]:
    """Start nginx with HTTP/2 in plain text; that port then takes no HTTP/1.1."""
    home = folder / "nginx-http2"
    shutil.copytree(NGINX, home)
    template = home / "nginx.conf.in"
    template.write_text(template.read_text().replace("reuseport;", "reuseport http2;"))
    port = free_port()
    command = ["sh", "start.sh", str(home), "127.0.0.1", str(port), "1"]
    with _subject("nginx", port, command, home, cpu) as server:
        yield server


@contextmanager
def epoll(folder: Path, cpu: int) -> Iterator[Server]:
    """Start the raw epoll loop in C, level-triggered, built as its manifest says."""
    manifest = tomllib.loads((EPOLL / "subject.toml").read_text())
    home = folder / "epoll"
    shutil.copytree(EPOLL, home)
    for name in manifest.get("shared", ()):
        shutil.copytree(EPOLL.parents[1] / "shared" / name, home, dirs_exist_ok=True)
    for step in manifest["build"]:
        ran = subprocess.run(step, cwd=home, capture_output=True, text=True, timeout=BUILD_S)
        if ran.returncode != 0:
            raise BenchError(f"`{' '.join(step)}` failed: {ran.stderr[-200:]}")
    port = free_port()
    with _subject("c/epoll", port, ["./subject", "127.0.0.1", str(port)], home, cpu) as server:
        yield server


@contextmanager
def subject(name: str, cpu: int) -> Iterator[Server]:
    """Start a subject, built as a suite builds it.

    Raises `BenchError` with the reason if that fails.
    """
    try:
        found = find_subject(name)
        if reason := missing(found):
            raise BenchError(f"{name}: {reason}")
        built = build(found, trueload_command=TRUELOAD_COMMAND)
    except BuildError as error:
        raise BenchError(f"{name}: {error.reason}") from None
    port = free_port()
    values = {"host": "127.0.0.1", "port": str(port), "cpus": "1", "build": str(built.folder)}
    command = substitute(found.manifest.run, values, TRUELOAD_COMMAND)
    with in_use(built), _subject(name, port, command, built.folder, cpu) as server:
        yield server


@contextmanager
def _subject(
    name: str, port: int, command: Sequence[str], folder: Path, cpu: int
) -> Iterator[Server]:
    environment = {**os.environ, "PATH": os.environ.get("PATH", "") + ":/usr/sbin"}
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        preexec_fn=prepare(cpu),
        start_new_session=True,
    )
    try:
        wait_until_listening(port, process)
        yield Server(name, port, process.pid)
    finally:
        stop(process)


@contextmanager
def by_command(name: str, binary: Path, cpu: int, *flags: str) -> Iterator[Server]:
    """Start the reference server as users do, with the given flags.

    Raises `BenchError` with the server's output when it does not start.
    """
    command = [sys.executable, "-m", "trueload", "serve", "http", "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(
        [*command, "--cpus", str(cpu), *flags],
        env={**os.environ, "TRUELOAD_ENGINE": str(binary), "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        preexec_fn=prepare(cpu, hard=True),
        start_new_session=True,
    )
    watchdog = threading.Timer(READY_S, process.kill)
    watchdog.start()
    try:
        assert process.stderr is not None
        line = process.stderr.readline().decode(errors="replace").strip()
        watchdog.cancel()
        found = re.search(r"(https?)://127\.0\.0\.1:(\d+)", line)
        if found is None:
            raise BenchError(f"`serve http {' '.join(flags)}`: {line or 'it says nothing'}")
        yield Server(name, int(found[2]), process.pid, found[1])
    finally:
        watchdog.cancel()
        stop(process)
        if process.stderr is not None:
            process.stderr.close()


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a server that has its own session: SIGTERM, then SIGKILL after `READY_S`."""
    process.terminate()
    try:
        process.wait(READY_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def free_port() -> int:
    """Return a loopback port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until_listening(port: int, process: subprocess.Popen[bytes]) -> None:
    """Return when the port takes connections. Raises `BenchError` when it does not in `READY_S`."""
    deadline_s = time.monotonic() + READY_S
    while time.monotonic() < deadline_s:
        if process.poll() is not None:
            raise BenchError(f"the server ended with {process.returncode} before it listened")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise BenchError(f"the server does not listen on port {port} after {READY_S} s")
