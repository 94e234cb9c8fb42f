"""Our engine without its front: plans and phases as JSON lines, a lease twice a second.

Python is not in the way of what is measured: it sleeps on another CPU while the engine works.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from process import BenchError, prepare

Line = dict[str, Any]

LEASE_EVERY_S = 0.5
NS_PER_S = 1_000_000_000
READY_S = 10.0


@dataclass(frozen=True)
class Work:
    """The load of one cell."""

    port: int
    connections: int
    depth: int
    duration_s: float

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.address}/"


def plan_line(work: Work) -> Line:
    """A plan of one thread, not pinned by itself: it is started on its CPU."""
    return {
        "type": "generate",
        "protocol": 1,
        "addresses": [work.address],
        "local_addresses": [],
        "request": {
            "method": "GET",
            "path": "/",
            "headers": [["Host", work.address]],
            "body_sha256": None,
        },
        "expect": {"statuses": None, "body_sha256": None},
        "connections": work.connections,
        "pipeline": work.depth,
        "close": False,
        "threads": 1,
        "cpus": [],
        "timeout_ns": 5 * NS_PER_S,
        "connect_timeout_ns": 5 * NS_PER_S,
        "connect_rate_per_s": 10_000,
    }


def phase_line(duration_s: float) -> Line:
    """One phase by duration; there is no warm-up, as the others have none."""
    return {
        "type": "phase",
        "id": "window",
        "load": {"kind": "closed"},
        "connections": None,
        "stop": {"kind": "duration", "ns": int(duration_s * NS_PER_S)},
        "at_ns": None,
    }


class Voice:
    """Writes lines to an engine, and a lease twice a second until it is stopped."""

    def __init__(self, stdin: IO[str]) -> None:
        self._stdin = stdin
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renew, daemon=True)
        self._thread.start()

    def say(self, line: Line) -> None:
        """One line; an engine that has gone does not hear it."""
        try:
            with self._lock:
                self._stdin.write(json.dumps(line) + "\n")
                self._stdin.flush()
        except (BrokenPipeError, ValueError):
            self._stop.set()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _renew(self) -> None:
        while not self._stop.wait(LEASE_EVERY_S):
            self.say({"type": "lease"})


def hear(stdout: IO[str], kind: str) -> Line:
    """The next line of this type."""
    for raw in stdout:
        line: Line = json.loads(raw)
        if line["type"] == kind:
            return line
        if line["type"] == "error":
            raise BenchError(f"the engine says: {line['message']}")
    raise BenchError(f"the engine ended without `{kind}`")


def measure(work: Work, stdin: IO[str], stdout: IO[str]) -> str:
    """The conversation of one cell; returns the measurement as JSON."""
    voice = Voice(stdin)
    try:
        voice.say(plan_line(work))
        ready = hear(stdout, "ready")
        if ready["established"] != work.connections:
            raise BenchError(f"{ready['established']} of {work.connections} connections: {ready}")
        voice.say(phase_line(work.duration_s))
        done = hear(stdout, "phase_done")
        voice.say({"type": "stop"})
        stdout.read()
    finally:
        voice.stop()
    return json.dumps(done["measurement"])


@contextmanager
def serving(binary: Path, cpu: int) -> Iterator[tuple[int, int]]:
    """The reference server on one CPU, one thread; gives its port and its pid."""
    process = subprocess.Popen(
        [str(binary)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=prepare(cpu),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    voice = Voice(process.stdin)
    try:
        listen = {"listen": "127.0.0.1:0", "threads": 1, "cpus": []}
        voice.say({"type": "serve", "protocol": 1, **listen})
        ready = hear(process.stdout, "ready")
        # What it goes on to say is read, so that it never blocks on a full pipe.
        threading.Thread(target=_read_out, args=(process.stdout,), daemon=True).start()
        yield int(ready["listen"].rpartition(":")[2]), process.pid
    finally:
        voice.say({"type": "stop"})
        voice.stop()
        try:
            process.wait(READY_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _read_out(stdout: IO[str]) -> None:
    while stdout.read(65536):
        pass
