"""What the front costs beside the engine: Python's start, the ticks, the record.

It is kept out of the comparison, because it does not grow with the number of requests and does not
run on the generator's CPU.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from engine import Work
from process import BenchError

TIMES = 3


@dataclass(frozen=True)
class Front:
    """Median CPU seconds of the front in one run, without the engine's."""

    cpu_s: float
    run_s: float


def measure(work: Work, binary: Path) -> Front:
    """Run the command line `TIMES` times on the given work."""
    return Front(median(_once(work, binary) for _ in range(TIMES)), work.duration_s)


def _once(work: Work, binary: Path) -> float:
    command = [sys.executable, "-m", "trueload", "http", work.url, "--warmup", "0s", "--no-save"]
    command += ["-d", f"{work.duration_s:g}s", "-c", str(work.connections), "--json", "-"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "TRUELOAD_ENGINE": str(binary)},
    )
    assert process.stdout is not None
    with process.stdout:
        out = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 4):
        raise BenchError(f"`{' '.join(command)}` ended with {process.returncode}")
    engine_cpu_s: float = json.loads(out)["generator"]["cpu_s"]
    # wait4 also counts the engine, because the front has reaped it.
    return used.ru_utime + used.ru_stime - engine_cpu_s
