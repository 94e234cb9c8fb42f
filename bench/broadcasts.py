"""Clients of a broadcast, ours and others: what each delivery costs them.

Each client runs on one CPU against a server on another, and reports the CPU time of sending and
receiving, without connecting. Ours takes it from its threads' clocks, the others from `getrusage`.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from engine import CONNECT_RATE_PER_S, Voice, receive
from process import BENCH, BenchError, built, run
from trueload.protocol.exchange import ExpectPlan, RequestPlan, WsBroadcastPlan
from trueload.protocol.plan import Generate, Phase, Requests, Stop, Turns
from trueload.units import NS_PER_S

PADDING_BYTES = 230
"""Makes a message of about 300 bytes."""
TIMEOUT_S = 20.0
PATIENCE_S = 120.0


@dataclass(frozen=True)
class Shape:
    """The load: clients, messages, and how many messages are in flight at once."""

    clients: int
    messages: int
    concurrent: int


@dataclass(frozen=True)
class Cost:
    """The result of one run: deliveries, CPU time and wall time."""

    deliveries: int
    cpu_ns: float
    wall_ns: float

    @property
    def ns_per_delivery(self) -> float:
        """CPU time per delivery, in ns."""
        return self.cpu_ns / self.deliveries

    @property
    def per_s(self) -> float:
        """Deliveries per second."""
        return self.deliveries / self.wall_ns * NS_PER_S

    @property
    def cpu_share(self) -> float:
        """The share of one CPU that was used over the window."""
        return self.cpu_ns / self.wall_ns


def plan_of(port: int, shape: Shape) -> Generate:
    """The engine's plan for a JSON broadcast from one thread."""
    address = f"127.0.0.1:{port}"
    opening = RequestPlan(
        method="GET", path="/ws", headers=(("Host", address),), body_sha256=None, template=False
    )
    return Generate(
        addresses=(address,),
        local_addresses=(),
        request=None,
        expect=ExpectPlan(statuses=None, body_sha256=None),
        connections=shape.clients,
        pipeline=1,
        close=False,
        threads=1,
        cpus=(),
        timeout_ns=int(TIMEOUT_S * NS_PER_S),
        connect_rate_per_s=CONNECT_RATE_PER_S,
        exchange=WsBroadcastPlan(opening=opening, dialect="json", padding=PADDING_BYTES),
    )


def ours(binary: Path, cpu: int, port: int, shape: Shape) -> Cost:
    """Run our engine. Raises `BenchError` unless each message reached each client once."""

    def talk(stdin: IO[str], stdout: IO[str]) -> str:
        voice = Voice(stdin)
        try:
            voice.send(plan_of(port, shape))
            ready = receive(stdout, "ready")
            if ready["established"] != shape.clients:
                raise BenchError(f"{ready['established']} of {shape.clients} clients: {ready}")
            load, stop = Turns(concurrent=shape.concurrent), Requests(count=shape.messages)
            voice.send(Phase(id="window", load=load, connections=None, stop=stop, at_ns=None))
            done = receive(stdout, "phase_done")
            voice.send(Stop())
            stdout.read()
        finally:
            voice.stop()
        return json.dumps(done["measurement"])

    ended = run([str(binary)], cpu=cpu, timeout_s=PATIENCE_S, talk=talk)
    measured = json.loads(ended.out)
    counts, found = measured["counts"], measured["deliveries"]
    if counts["failed"] or found["delivered"] != shape.clients * shape.messages:
        numbers = {name: value for name, value in found.items() if name != "histograms"}
        short = "was cut short" if measured["partial"] else "lost messages"
        raise BenchError(f"our generator {short}: {counts}, {numbers}")
    return Cost(found["delivered"], measured["generator"]["cpu_ns"], measured["window_ns"])


def theirs(command: list[str], cpu: int) -> Cost:
    """Run a program that prints its cost as JSON."""
    return Cost(**json.loads(run(command, cpu=cpu, timeout_s=PATIENCE_S).out))


def bare(program: Path, cpu: int, port: int, shape: Shape) -> Cost:
    """Run the bare loop, which has one message in flight."""
    numbers = (port, shape.clients, shape.messages, PADDING_BYTES)
    return theirs([str(program), *map(str, numbers)], cpu)


def gorilla(program: Path, cpu: int, port: int, shape: Shape) -> Cost:
    """Run the Go client, which has a goroutine per connection."""
    numbers = (port, shape.clients, shape.messages, PADDING_BYTES, shape.concurrent)
    return theirs([str(program), *map(str, numbers)], cpu)


def tasks(cpu: int, port: int, shape: Shape) -> Cost:
    """Run the Python client, which has an asyncio task per connection."""
    numbers = (port, shape.clients, shape.messages, PADDING_BYTES, shape.concurrent)
    return theirs([sys.executable, str(BENCH / "tasks.py"), *map(str, numbers)], cpu)


def build_bare(folder: Path) -> Path:
    """Build the bare loop; needs gcc."""
    program = folder / "bare_receive"
    built(["gcc", "-O2", "-o", str(program), "bare_receive.c"])
    return program


def build_gorilla(folder: Path) -> Path:
    """Build the Go client; needs Go."""
    program = folder / "gorilla"
    built(["env", "GOTOOLCHAIN=local", "go", "build", "-o", str(program), "."], BENCH / "gorilla")
    return program
