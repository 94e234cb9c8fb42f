"""Our generator run by its command line, where flags say more than a bare plan can: HTTPS, drivers.

The front sleeps while the engine works. The engine's CPU time over its whole life is reported by
`costed.py`, which is started in its place.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine import Work
from generators import Generator, Took
from process import BenchError, prepare
from setting import GENERATOR_CPU, SERVER_CPU

COSTED = Path(__file__).resolve().parent / "costed.py"
PATIENCE_S = 60.0
# The run was measured, whatever its verdict.
GOOD_CODES = (0, 4)


@dataclass(frozen=True)
class Commanded:
    """The record of a run and the engine's CPU time; None if the engine had to be killed."""

    record: dict[str, Any]
    cpu_s: float | None


def run_http(
    binary: Path, url: str, flags: Sequence[str], timeout_s: float, verb: str = "http"
) -> Commanded:
    """Run `trueload http URL`, or another verb, with the engine on the generator's CPU, without
    warm-up.

    Raises `BenchError` with the command's explanation when nothing was measured.
    """
    command = [sys.executable, "-m", "trueload", verb, url, "--cpus", str(GENERATOR_CPU)]
    command += ["--warmup", "0s", "--no-save", "--json", "-", *flags]
    with tempfile.TemporaryDirectory() as folder:
        cost = Path(folder) / "cost"
        names = {"TRUELOAD_ENGINE": COSTED, "BENCH_ENGINE": binary, "BENCH_COST": cost}
        try:
            ran = subprocess.run(
                command,
                env={**os.environ, "NO_COLOR": "1", **{k: str(v) for k, v in names.items()}},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=timeout_s,
                preexec_fn=prepare(SERVER_CPU, GENERATOR_CPU, hard=True),
            )
        except subprocess.TimeoutExpired as error:
            raise BenchError(f"`trueload {verb}` took longer than {timeout_s:g} s") from error
        if ran.returncode not in GOOD_CODES:
            raise BenchError(f"`trueload {verb}` ended with {ran.returncode}: {_why(ran)}")
        spent = [float(line.split()[0]) for line in read_costs(cost)]
        return Commanded(json.loads(ran.stdout), sum(spent) if spent else None)


def read_costs(path: Path) -> list[str]:
    """Return what `costed.py` wrote; empty if every engine had to be killed."""
    return path.read_text().splitlines() if path.exists() else []


def _why(ran: subprocess.CompletedProcess[str]) -> str:
    """Return why nothing was measured: the failed checks of the record, else a line of stderr."""
    with contextlib.suppress(ValueError, KeyError):
        checks = json.loads(ran.stdout)["checks"]
        return "; ".join(check["why"] for check in checks if check["status"] == "fail")
    return (ran.stderr.strip().splitlines() or ["it says nothing"])[0]


def ours_by_command(binary: Path, *flags: str, at_once: str = "--pipeline") -> Generator:
    """Return a `Generator` like the others.

    `at_once` is the flag for the number of requests in flight per connection.
    """

    def measure(work: Work, cpu: int, memory: bool) -> Took:
        load = ["-c", str(work.connections), "-d", f"{work.duration_s:g}s"]
        load += [at_once, str(work.depth), "--driver", work.driver, *flags]
        done = run_http(binary, work.url, load, work.duration_s + PATIENCE_S)
        counts, per_s = done.record["counts"], done.record["throughput"]["ok_per_s"]
        if counts["failed"] or not per_s:
            raise BenchError(f"our generator failed requests: {counts}")
        if done.cpu_s is None:
            raise BenchError("our generator did not end by itself: what it cost is not known")
        engine = done.record["generator"]
        peak = engine["peak_rss_bytes"] if memory else None
        return Took(counts["ok"], counts["ok"] / per_s, done.cpu_s, peak, engine["driver"])

    return measure
