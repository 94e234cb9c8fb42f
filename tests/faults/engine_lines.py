"""Talks to the engine's binary in its own language, JSON lines, without the front.

Such tests take milliseconds, and what they prove holds for the engine alone. Plans are written by
hand, so that a change of the protocol shows as a failing test. Must not know the front's models.
"""

from __future__ import annotations

import base64
import hashlib
import json
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final

Line = dict[str, Any]

LEASE_EVERY_S: Final = 0.5
NS_PER_MS: Final = 1_000_000


def sha256(body: bytes) -> str:
    """The SHA-256 in hex, by which blobs are named."""
    return hashlib.sha256(body).hexdigest()


def blob(body: bytes) -> Line:
    """The line that gives a body to the engine."""
    return {"type": "blob", "sha256": sha256(body), "base64": base64.b64encode(body).decode()}


@dataclass(frozen=True)
class Plan:
    """A generator's plan, with defaults."""

    address: str
    method: str = "GET"
    path: str = "/"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    statuses: tuple[int, ...] = ()
    expect_body: bytes | None = None
    connections: int = 1
    depth: int = 1
    close: bool = False
    timeout_ms: int = 5_000
    """Long enough for a peer of threads on a loaded machine; shorter where a timeout is tested."""
    threads: int = 1
    cpus: tuple[int, ...] = ()
    connect_rate_per_s: int = 100_000
    exchange: Line | None = None
    """What is exchanged instead of HTTP, and its payload."""
    payload: bytes | None = None

    def line(self, **changes: object) -> Line:
        """The plan as a line for the engine; `changes` replace or add fields."""
        headers = [["Host", self.address], *map(list, self.headers)]
        if self.body is not None:
            headers.append(["Content-Length", str(len(self.body))])
        if self.close:
            headers.append(["Connection", "close"])
        plan = {
            "type": "generate",
            "protocol": 1,
            "addresses": [self.address],
            "local_addresses": [],
            "request": {
                "method": self.method,
                "path": self.path,
                "headers": headers,
                "body_sha256": None if self.body is None else sha256(self.body),
            },
            "expect": {
                "statuses": list(self.statuses) or None,
                "body_sha256": None if self.expect_body is None else sha256(self.expect_body),
            },
            "connections": self.connections,
            "pipeline": self.depth,
            "close": self.close,
            "threads": self.threads,
            "cpus": list(self.cpus),
            "timeout_ns": self.timeout_ms * NS_PER_MS,
            "connect_rate_per_s": self.connect_rate_per_s,
        }
        if self.exchange is not None:
            plan |= {"exchange": self.exchange, "request": None}
        return plan | changes

    def blobs(self) -> list[Line]:
        """The lines with the bodies that the plan names."""
        bodies = (self.body, self.expect_body, self.payload)
        return [blob(body) for body in bodies if body is not None]


def by_requests(count: int, *, phase: str = "window") -> Line:
    """A phase of `count` requests."""
    return _phase(phase, {"kind": "requests", "count": count})


def by_duration(ms: int, *, phase: str = "window") -> Line:
    """A phase of `ms` milliseconds."""
    return _phase(phase, {"kind": "duration", "ns": ms * NS_PER_MS})


def _phase(name: str, stop: Line) -> Line:
    closed = {"kind": "closed"}
    return {
        "type": "phase",
        "id": name,
        "load": closed,
        "connections": None,
        "stop": stop,
        "at_ns": None,
    }


class Engine:
    """The engine as a child process: `with Engine(path) as engine: …`.

    A thread renews its lease, unless `lease` is false. Another thread reads its lines, so that
    every wait has a bound.
    """

    def __init__(
        self,
        binary: Path,
        *,
        lease: bool = True,
        prepare: Callable[[], None] | None = None,
        prefix: tuple[str, ...] = (),
    ) -> None:
        # Both apply to the child alone, for limits and pinning.
        self.process = subprocess.Popen(
            [*prefix, str(binary)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=prepare,
            start_new_session=True,
        )
        self.lines: list[Line] = []
        self.ended = threading.Event()
        self._incoming: queue.Queue[Line | None] = queue.Queue()
        self._errors = b""
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._read, daemon=True)]
        self._threads.append(threading.Thread(target=self._read_errors, daemon=True))
        if lease:
            self._threads.append(threading.Thread(target=self._renew, daemon=True))
        for thread in self._threads:
            thread.start()

    def send(self, *lines: Line) -> None:
        """Send lines; an engine that has ended does not get them."""
        self.send_raw(b"".join(json.dumps(line).encode() + b"\n" for line in lines))

    def send_raw(self, data: bytes) -> None:
        """Send bytes that need not be JSON."""
        assert self.process.stdin is not None
        try:
            with self._lock:
                self.process.stdin.write(data)
                self.process.stdin.flush()
        except (BrokenPipeError, ValueError):
            return

    def wait_for(self, kind: str, *, timeout_s: float = 20.0) -> Line:
        """Return the next line of this type; an AssertionError says what came instead."""
        deadline_s = time.monotonic() + timeout_s
        while True:
            try:
                line = self._incoming.get(timeout=max(0.0, deadline_s - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no `{kind}` within {timeout_s} s: {self.output()}") from None
            if line is None:
                raise AssertionError(f"the engine ended without `{kind}`: {self.output()}")
            self.lines.append(line)
            if line["type"] == kind:
                return line

    def wait(self, *, timeout_s: float = 20.0) -> int:
        """Return the exit code, once the engine has ended and all its output has been read."""
        deadline_s = time.monotonic() + timeout_s
        while True:
            try:
                line = self._incoming.get(timeout=max(0.0, deadline_s - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"still runs after {timeout_s} s: {self.output()}") from None
            if line is None:
                return self.process.wait(timeout_s)
            self.lines.append(line)

    def close_stdin(self) -> None:
        """End the engine's input, as the loss of the front does."""
        assert self.process.stdin is not None
        with self._lock:
            self.process.stdin.close()

    def all(self, kind: str) -> list[Line]:
        """Return every line of this type among those already consumed by a wait."""
        return [line for line in self.lines if line["type"] == kind]

    def output(self) -> str:
        """Return all of its output, for the message of a failing test."""
        shown = [line for line in self.lines if line["type"] != "tick"]
        return f"{shown} stderr={self._errors.decode(errors='replace')!r}"

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.ended.set()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for thread in self._threads:
            thread.join(5)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    continue

    def _read(self) -> None:
        assert self.process.stdout is not None
        for raw in self.process.stdout:
            self._incoming.put(json.loads(raw))
        self._incoming.put(None)

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        for raw in self.process.stderr:
            self._errors = (self._errors + raw)[-65536:]

    def _renew(self) -> None:
        while not self.ended.wait(LEASE_EVERY_S):
            self.send({"type": "lease"})


@dataclass(frozen=True)
class EngineRun:
    """What one run of the engine produced."""

    ready: Line
    measurements: Mapping[str, Line]
    done: str
    code: int
    errors: tuple[Line, ...] = field(default=())


def run_plan(engine: Engine, plan: Plan, *phases: Line, bound_s: float = 20.0) -> EngineRun:
    """Run the phases one after the other, as the front does, then send `stop`.

    No phase may take longer than `bound_s`.
    """
    engine.wait_for("hello")
    engine.send(plan.line(), *plan.blobs())
    ready = engine.wait_for("ready")
    engine.send(*phases)
    measurements = {}
    for phase in phases:
        done = engine.wait_for("phase_done", timeout_s=bound_s)
        assert done["id"] == phase["id"], engine.output()
        measurements[done["id"]] = done["measurement"]
    engine.send({"type": "stop"})
    code = engine.wait()
    return EngineRun(
        ready=ready,
        measurements=measurements,
        done=engine.all("done")[-1]["why"],
        code=code,
        errors=tuple(engine.all("error")),
    )
