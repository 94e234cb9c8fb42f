"""The servers under load, each on CPU 0: the reference server, and nginx as our subject."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from engine import serving
from process import BenchError, prepare
from trueload.accounting import ProcessTree, TreeSample, usage

ROOT = Path(__file__).resolve().parent.parent
NGINX = ROOT / "subjects" / "c" / "nginx"
READY_S = 10.0


@dataclass(frozen=True)
class Server:
    """A server that listens."""

    name: str
    port: int
    pid: int

    def sample(self) -> TreeSample:
        """What its process tree has used up to now."""
        return ProcessTree(self.pid).sample()


def cpu_s_between(before: TreeSample, after: TreeSample) -> float:
    """CPU seconds of the tree between two samples."""
    return usage(before, after).cpu_s


@contextmanager
def reference(binary: Path, cpu: int) -> Iterator[Server]:
    """`trueload-engine` as a server, one thread."""
    with serving(binary, cpu) as (port, pid):
        yield Server("reference", port, pid)


@contextmanager
def nginx(folder: Path, cpu: int) -> Iterator[Server]:
    """nginx with one worker, started as the suite starts it."""
    port = free_port()
    command = ["sh", "start.sh", str(folder), "127.0.0.1", str(port), "1"]
    environment = {**os.environ, "PATH": os.environ.get("PATH", "") + ":/usr/sbin"}
    process = subprocess.Popen(
        command,
        cwd=NGINX,
        env=environment,
        stdin=subprocess.DEVNULL,
        preexec_fn=prepare(cpu),
        start_new_session=True,
    )
    try:
        wait_until_listening(port, process)
        yield Server("nginx", port, process.pid)
    finally:
        stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ends a server of its own session, in bounded time."""
    process.terminate()
    try:
        process.wait(READY_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def free_port() -> int:
    """A port on loopback that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until_listening(port: int, process: subprocess.Popen[bytes]) -> None:
    """Returns when the port takes connections; `BenchError` when it never does."""
    deadline_s = time.monotonic() + READY_S
    while time.monotonic() < deadline_s:
        if process.poll() is not None:
            raise BenchError(f"the server ended with {process.returncode} before it listened")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise BenchError(f"the server does not listen on port {port} after {READY_S} s")
