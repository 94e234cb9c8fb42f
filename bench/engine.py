"""Our engine without its front: plans and phases as JSON lines, and a lease twice a second.

Python does not disturb the measurement: it sleeps on another CPU while the engine works.
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
from trueload.protocol.engine_options import DriverName, EngineOptions
from trueload.protocol.exchange import ServicePlan
from trueload.protocol.plan import (
    SERVE_HTTP,
    Duration,
    Generate,
    Lease,
    LoadPlan,
    Phase,
    Serve,
    Stop,
    ToEngine,
    to_line,
)
from trueload.request.exchange import Exchange
from trueload.request.traffic import Traffic
from trueload.request.values import Request
from trueload.trial.blobs import blobs
from trueload.trial.plan import make_plan
from trueload.trial.spec import CLOSED, Load, TrialSpec
from trueload.units import NS_PER_S

LEASE_EVERY_S = 0.5
READY_S = 10.0
CONNECT_RATE_PER_S = 10_000


@dataclass(frozen=True)
class Work:
    """The load of one cell."""

    port: int
    connections: int
    depth: int
    duration_s: float
    path: str = "/"
    timeout_s: float = 5.0
    scheme: str = "http"
    driver: DriverName = "auto"
    """Of our generator."""
    exchange: Exchange | None = None
    """What our generator exchanges where it is not HTTP."""

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.address}{self.path}"


def spec_of(work: Work) -> TrialSpec:
    """The trial that the front would run for this work, with one thread."""
    request = Request(host=work.address, path=work.path) if work.exchange is None else None
    return TrialSpec(
        url=work.url,
        addresses=(work.address,),
        traffic=Traffic(request=request, exchange=work.exchange),
        load=Load(connections=work.connections, pipeline=work.depth),
        engine=EngineOptions(
            timeout_ns=int(work.timeout_s * NS_PER_S),
            connect_rate_per_s=CONNECT_RATE_PER_S,
            driver=work.driver,
        ),
    )


def plan_of(work: Work) -> Generate:
    """The plan that the front would write, but without pinning: the engine is started on its CPU.

    Using the front's own code keeps new protocol fields at their defaults here, too.
    """
    return make_plan(spec_of(work), ())


def phase_of(duration_s: float, load: LoadPlan = CLOSED) -> Phase:
    """Return one phase of this duration, without warm-up, as the other generators have none."""
    stop = Duration(ns=int(duration_s * NS_PER_S))
    return Phase(id="window", load=load, connections=None, stop=stop, at_ns=None)


class Voice:
    """Writes lines to an engine, and renews the lease twice a second until it is stopped."""

    def __init__(self, stdin: IO[str]) -> None:
        self._stdin = stdin
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renew, daemon=True)
        self._thread.start()

    def send(self, message: ToEngine) -> None:
        """Write one line; if the engine has exited, stop renewing instead."""
        try:
            with self._lock:
                self._stdin.write(to_line(message).decode())
                self._stdin.flush()
        except (BrokenPipeError, ValueError):
            self._stop.set()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _renew(self) -> None:
        while not self._stop.wait(LEASE_EVERY_S):
            self.send(Lease())


def receive(stdout: IO[str], kind: str) -> dict[str, Any]:
    """Return the next line of this type.

    Raises `BenchError` on an `error` line or at the end of output.
    """
    for raw in stdout:
        line: dict[str, Any] = json.loads(raw)
        if line["type"] == kind:
            return line
        if line["type"] == "error":
            raise BenchError(f"the engine says: {line['message']}")
    raise BenchError(f"the engine ended without `{kind}`")


def measure(work: Work, stdin: IO[str], stdout: IO[str], load: LoadPlan = CLOSED) -> str:
    """Run the engine's conversation for one run; return the measurement as JSON."""
    voice = Voice(stdin)
    try:
        voice.send(plan_of(work))
        for blob in blobs(spec_of(work).traffic):
            voice.send(blob)
        ready = receive(stdout, "ready")
        if ready["established"] != work.connections:
            raise BenchError(f"{ready['established']} of {work.connections} connections: {ready}")
        voice.send(phase_of(work.duration_s, load))
        done = receive(stdout, "phase_done")
        voice.send(Stop())
        stdout.read()
    finally:
        voice.stop()
    return json.dumps(done["measurement"])


@contextmanager
def serving(
    binary: Path, cpu: int, driver: DriverName = "auto", service: ServicePlan = SERVE_HTTP
) -> Iterator[tuple[int, int, str]]:
    """Run the reference server on one CPU with one thread; yields its port, pid and driver."""
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
        voice.send(Serve(listen="127.0.0.1:0", threads=1, cpus=(), driver=driver, service=service))
        ready = receive(process.stdout, "ready")
        # Keep reading its output, so that it never blocks on a full pipe.
        threading.Thread(target=_read_out, args=(process.stdout,), daemon=True).start()
        yield int(ready["listen"].rpartition(":")[2]), process.pid, ready["driver"]
    finally:
        voice.send(Stop())
        voice.stop()
        try:
            process.wait(READY_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _read_out(stdout: IO[str]) -> None:
    while stdout.read(65536):
        pass
