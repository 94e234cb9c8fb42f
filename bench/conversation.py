"""One run of our engine under any load, on one CPU, with its measurement decoded."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import engine
from engine import Work
from hdrh.histogram import HdrHistogram
from process import BenchError, run
from trueload.protocol.load_options import Arrivals
from trueload.protocol.plan import Duration, LoadPlan, Open
from trueload.trial.spec import open_load
from trueload.units import NS_PER_S

PATIENCE_S = 30.0


@dataclass(frozen=True)
class Outcome:
    """The measurement of one run, and the CPU time of the process."""

    measurement: dict[str, Any]
    cpu_s: float

    @property
    def ok(self) -> int:
        return int(self.measurement["counts"]["ok"])

    @property
    def per_s(self) -> float:
        """Answers per second of the window."""
        window_ns: int = self.measurement["window_ns"]
        return self.ok / window_ns * NS_PER_S

    @property
    def window_cpu_us_per_request(self) -> float:
        """CPU µs per request of the engine's threads over the window, without set-up."""
        return float(self.measurement["generator"]["cpu_ns"]) / self.ok / 1e3

    def histogram(self, name: str) -> HdrHistogram:
        """Decode one of the measurement's histograms, in ns."""
        return HdrHistogram.decode(self.measurement["histograms"][name])


def opened(
    rate_per_s: float, duration_s: float, arrivals: Arrivals = "constant", seed: int = 1
) -> Open:
    """Return an open-loop load: requests at scheduled times."""
    return open_load(rate_per_s, Duration(ns=int(duration_s * NS_PER_S)), arrivals, seed)


def converse(binary: Path, cpu: int, work: Work, load: LoadPlan) -> Outcome:
    """Run the load. Raises `BenchError` when the engine cannot, or when any request failed."""
    ended = run(
        [str(binary)],
        cpu=cpu,
        timeout_s=work.duration_s + PATIENCE_S,
        talk=lambda stdin, stdout: engine.measure(work, stdin, stdout, load),
    )
    measurement = json.loads(ended.out)
    if measurement["counts"]["failed"] or not measurement["counts"]["ok"]:
        raise BenchError(f"our generator failed requests: {measurement['counts']}")
    return Outcome(measurement, ended.cpu_s)
