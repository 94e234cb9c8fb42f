"""Measures cells in rounds, every generator under every load once per round.

Also parses the command line of the reports that do so.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import get_args

from cells import OURS, Cell, Turn
from engine import Work
from generators import Generator
from machine import Machine
from marks import Mark
from placement import Placement, Unknown
from process import BenchError
from results import Sample
from servers import Server, cpu_s_between
from setting import GENERATOR_CPU
from trueload.protocol.engine_options import DriverName

ROUNDS, ROUNDS_QUICK = 15, 3
SECONDS, SECONDS_QUICK = 2.0, 1.0
# A memory turn also has to connect, which alone takes a second or so.
MEMORY_DURATION_S = 2.0
# Overhead of a turn beside its duration: starting, connecting, ending.
TURN_EXTRA_S = 0.2


@dataclass(frozen=True)
class Cast:
    """The servers and generators that can be run here; `absent` says why the others cannot."""

    servers: Mapping[str, Server]
    tools: Mapping[str, Generator]
    secure_ours: Generator
    absent: Mapping[str, str]
    driver: DriverName
    """Asked of ours, at both ends."""
    placement: Placement | Unknown

    def generator(self, cell: Cell) -> Generator:
        """Return the generator for a cell; ours speaks TLS only by its command line."""
        secure = cell.tool == OURS and self.servers[cell.server].scheme == "https"
        return self.secure_ours if secure else self.tools[cell.tool]


def parse_options(what: str) -> argparse.Namespace:
    """Parse the command line of a report that measures in rounds."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--rounds", type=int, help=f"rounds ({ROUNDS}; {ROUNDS_QUICK} if quick)")
    parser.add_argument("--seconds", type=float, help=f"a turn ({SECONDS:g}; {SECONDS_QUICK:g})")
    parser.add_argument("--seed", type=int, default=1, help="shuffles the turns (1)")
    parser.add_argument("--quick", action="store_true", help="a first look, in three minutes")
    drivers = get_args(DriverName)
    parser.add_argument("--driver", choices=drivers, default="auto", help="of ours, both ends")
    parser.add_argument("--no-page", action="store_true", help="leave docs/performance.md alone")
    parser.add_argument("--json", metavar="FILE", help="write samples and marks there, too")
    options = parser.parse_args()
    options.rounds = options.rounds or (ROUNDS_QUICK if options.quick else ROUNDS)
    options.seconds = options.seconds or (SECONDS_QUICK if options.quick else SECONDS)
    return options


def measure(turns: Sequence[Turn], cast: Cast, seconds: float) -> Iterator[Sample]:
    """Yield a sample per turn; a turn that fails is named on stderr and left out."""
    for number, turn in enumerate(turns):
        try:
            yield cast.placement.measured(partial(_take_turn, turn, cast, seconds))
        except BenchError as error:
            print(f"{turn.cell}: left out: {error}", file=sys.stderr)
        _show_progress(turn, number + 1, len(turns))


def minutes_of(turns: Sequence[Turn], seconds: float) -> float:
    """Estimate how many minutes the turns take."""
    return sum(_duration_s(turn, seconds) + TURN_EXTRA_S for turn in turns) / 60


def _take_turn(turn: Turn, cast: Cast, seconds: float) -> Sample:
    cell, server = turn.cell, cast.servers[turn.cell.server]
    work = Work(
        port=server.port,
        connections=cell.connections,
        depth=cell.depth,
        duration_s=_duration_s(turn, seconds),
        path=server.path,
        scheme=server.scheme,
        driver=cast.driver,
    )
    before = server.sample()
    took = cast.generator(cell)(work, GENERATOR_CPU, cell.memory)
    after = server.sample()
    return Sample(
        round=turn.round,
        cell=cell,
        requests=took.requests,
        wall_s=took.wall_s,
        cpu_s=took.cpu_s,
        server_cpu_s=cpu_s_between(before, after),
        peak_rss_bytes=took.peak_rss_bytes,
        driver=took.driver,
    )


def _duration_s(turn: Turn, seconds: float) -> float:
    return MEMORY_DURATION_S if turn.cell.memory else seconds


def _show_progress(turn: Turn, done: int, total: int) -> None:
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\r\x1b[K{done}/{total} {turn.cell}", end=end, file=sys.stderr, flush=True)


def write_samples(
    file: str, machine: Machine, samples: Sequence[Sample], marked: Sequence[Mark]
) -> None:
    """Write everything that was measured to a file, as JSON."""
    result = {
        "machine": asdict(machine),
        "samples": [asdict(sample) for sample in samples],
        "targets": [asdict(mark) | {"mark": mark.word} for mark in marked],
    }
    Path(file).write_text(json.dumps(result, indent=1))
