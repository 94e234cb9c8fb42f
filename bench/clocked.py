"""Servers that their own clock limits to some 1,000 requests a second, and commands against them.

They are `redteam/server.c` with a queue. Each needs little CPU time, so several can be measured
beside each other: the servers share CPU 0, the generators CPU 1.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from setting import GENERATOR_CPU, ROOT

sys.path[:0] = [str(ROOT / folder) for folder in ("bench", "tests", "python")]

from harness import Trueload, kill_group  # noqa: E402
from process import BenchError  # noqa: E402
from redteam.stage import Adversary, Stage, adversary, open_stage  # noqa: E402

Given = TypeVar("Given")
Found = TypeVar("Found")
JOBS = 1


@dataclass(frozen=True)
class Answered:
    """An ended command: its exit code, its JSON, and the last line that it wrote."""

    code: int
    result: Any
    last_line: str


@dataclass(frozen=True)
class Workshop:
    """The compiled server, and a folder for the logs of its processes."""

    stage: Stage

    @contextmanager
    def server(self, *options: str) -> Iterator[Adversary]:
        """Run a server with these options."""
        folder = Path(tempfile.mkdtemp(dir=self.stage.folder))
        (folder / "server").symlink_to(self.stage.program("server"))
        with adversary(Stage(folder, self.stage.trueload), options) as running:
            yield running

    def run(self, words: Sequence[str], timeout_s: float) -> Answered:
        """Run `trueload WORDS --json -` on the generator's CPU. Raises `BenchError` if it hangs."""
        more = ("--cpus", str(GENERATOR_CPU), "--no-save", "--json", "-")
        process = subprocess.Popen(
            [sys.executable, "-m", "trueload", *words, *more],
            env=self.stage.trueload.env(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            out, err = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            raise BenchError(f"`{' '.join(words)}` still ran after {timeout_s:g} s") from None
        finally:
            kill_group(process)
        lines = err.strip().splitlines()
        result = json.loads(out) if out.startswith("{") else None
        return Answered(process.returncode, result, lines[-1] if lines else "")


@contextmanager
def open_workshop() -> Iterator[Workshop]:
    """Compile the server. Raises `BenchError` with the reason if that fails."""
    with open_stage() as stage:
        yield Workshop(stage)


def in_jobs(
    work: Callable[[Given], Found], given: Sequence[Given], jobs: int
) -> Iterator[tuple[Given, Found]]:
    """Do the work for each, so many at once; yield in the given order."""
    with ThreadPoolExecutor(jobs) as pool:
        yield from zip(given, pool.map(work, given), strict=True)


def beside_text(jobs: int) -> str:
    """A sentence about what ran beside each measurement."""
    if jobs == 1:
        return "One was measured at a time."
    return f"{jobs} were measured at once, all servers on one CPU and all generators on another."


__all__ = ["Answered", "BenchError", "Trueload", "Workshop", "beside_text", "in_jobs"]
