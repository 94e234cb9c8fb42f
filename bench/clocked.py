"""Servers that their own clock limits to some 1,000 requests a second, and commands against them.

They are `redteam/server.c` with a queue. Each needs little CPU time, so several can be measured
beside each other: the servers share CPU 0, the generators CPU 1.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from machine import describe
from marks import Mark, exit_code, mark_table
from setting import ROOT, Quiet, SettingError, find_setting

sys.path[:0] = [str(ROOT / folder) for folder in ("bench", "tests", "python")]

from process import BenchError  # noqa: E402
from redteam.stage import Adversary, Stage, adversary, command, open_stage  # noqa: E402

Given = TypeVar("Given")
Found = TypeVar("Found")
Measured = tuple[list[str], list[Mark]]
"""The lines of a table, and the targets."""


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

    def _room(self) -> Stage:
        return Stage(Path(tempfile.mkdtemp(dir=self.stage.folder)), self.stage.trueload)

    @contextmanager
    def server(self, *options: str) -> Iterator[Adversary]:
        """Run a server with these options."""
        room = self._room()
        (room.folder / "server").symlink_to(self.stage.program("server"))
        with adversary(room, options) as running:
            yield running

    def run(self, words: Sequence[str], timeout_s: float) -> Answered:
        """Run `trueload WORDS` on the generator's CPU. Raises `BenchError` if it hangs."""
        with command(self._room(), *words, "--no-save") as running:
            try:
                seen = running.seen(timeout_s)
            except subprocess.TimeoutExpired:
                hangs = f"`{' '.join(words)}` still ran after {timeout_s:g} s"
                raise BenchError(hangs) from None
        lines = seen.summary.strip().splitlines()
        return Answered(seen.code, seen.result or None, lines[-1] if lines else "")


def report(asked: str, jobs: int, measure: Callable[[Workshop], Measured]) -> int:
    """Compile the server, measure, and print the table below what was asked. Return 1 if a target
    is missed, 2 if nothing can be measured."""
    quiet = Quiet()
    try:
        find_setting()
        with open_stage() as stage:
            lines, marked = measure(Workshop(stage))
    except (BenchError, SettingError) as error:
        print(error, file=sys.stderr)
        return 2
    head = f"{asked} {_beside_text(jobs)} {quiet}"
    print("\n".join([str(describe()), "", head, "", *lines, "", *mark_table(marked)]))
    return exit_code(marked)


def in_jobs(
    work: Callable[[Given], Found], given: Sequence[Given], jobs: int
) -> Iterator[tuple[Given, Found]]:
    """Do the work for each, so many at once; yield in the given order."""
    with ThreadPoolExecutor(jobs) as pool:
        yield from zip(given, pool.map(work, given), strict=True)


def _beside_text(jobs: int) -> str:
    """A sentence about what ran beside each measurement."""
    if jobs == 1:
        return "One was measured at a time."
    return f"{jobs} were measured at once, all servers on one CPU and all generators on another."
