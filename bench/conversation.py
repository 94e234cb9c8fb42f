"""One phase of our engine under any load, on one CPU, told by JSON lines."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from engine import NS_PER_S, Line, Voice, Work, hear, phase_line, plan_line
from hdrh.histogram import HdrHistogram
from process import BenchError, run

PATIENCE_S = 30.0
TIMEOUT_S = 20


@dataclass(frozen=True)
class Phase:
    """What is sent where."""

    port: int
    connections: int
    duration_s: float
    load: Line
    path: str = "/"


@dataclass(frozen=True)
class Outcome:
    """What came of it."""

    measurement: dict[str, Any]
    cpu_s: float

    @property
    def ok(self) -> int:
        return int(self.measurement["counts"]["ok"])

    @property
    def per_s(self) -> float:
        """Answers per second of the window."""
        return self.ok / self.measurement["window_ns"] * NS_PER_S

    @property
    def window_cpu_us_per_request(self) -> float:
        """CPU time of the engine's threads over the window; set-up is not in it."""
        return float(self.measurement["generator"]["cpu_ns"]) / self.ok / 1e3

    def histogram(self, name: str) -> HdrHistogram:
        """One of the measurement's histograms, in ns."""
        return HdrHistogram.decode(self.measurement["histograms"][name])


def closed() -> Line:
    """Each connection sends as soon as it is answered."""
    return {"kind": "closed"}


def opened(rate_per_s: float, duration_s: float, arrivals: str = "constant", seed: int = 1) -> Line:
    """Requests at scheduled times."""
    stage = {"ns": int(duration_s * NS_PER_S), "from": rate_per_s, "to": rate_per_s}
    return {"kind": "open", "stages": [stage], "arrivals": arrivals, "seed": seed}


def converse(binary: Path, cpu: int, phase: Phase) -> Outcome:
    """Runs the phase; `BenchError` when the engine cannot, or any request failed."""
    ended = run(
        [str(binary)],
        cpu=cpu,
        timeout_s=phase.duration_s + PATIENCE_S,
        talk=lambda stdin, stdout: _talk(phase, stdin, stdout),
    )
    measurement = json.loads(ended.out)
    if measurement["counts"]["failed"] or not measurement["counts"]["ok"]:
        raise BenchError(f"our generator failed requests: {measurement['counts']}")
    return Outcome(measurement, ended.cpu_s)


def _talk(phase: Phase, stdin: IO[str], stdout: IO[str]) -> str:
    voice = Voice(stdin)
    try:
        plan = plan_line(Work(phase.port, phase.connections, 1, phase.duration_s))
        plan["request"]["path"] = phase.path
        plan["timeout_ns"] = TIMEOUT_S * NS_PER_S
        voice.say(plan)
        hear(stdout, "ready")
        voice.say(phase_line(phase.duration_s) | {"load": phase.load})
        done = hear(stdout, "phase_done")
        voice.say({"type": "stop"})
        stdout.read()
    finally:
        voice.stop()
    return json.dumps(done["measurement"])
