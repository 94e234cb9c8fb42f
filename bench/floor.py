"""The distance of our generator from the floor: its CPU per request beside a loop that only counts.

`bare_loop.c` does the least that a generator on sockets can do, over an io_uring like ours, so its
cost is the kernel's. Ours also parses, checks, times and accounts for each answer. Both take turns
on CPU 1 while the reference server has CPU 0. Each ratio is of two consecutive runs. Writes its
section of docs/contributors/accuracy.md. Needs gcc and Debian's liburing-dev. Exit code 2 when this
machine cannot run it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from conversation import converse
from engine import Work
from generators import PATIENCE_S
from machine import describe
from page import ACCURACY, write_section
from placement import Placement, Unknown, find_placement
from process import BenchError, built, run
from results import shown_ratio, spread
from servers import reference
from setting import GENERATOR_CPU, SERVER_CPU, Quiet, SettingError, prepare_setting
from trueload.trial.spec import CLOSED

PAIRS = 15
SECONDS = 1.0
SIZES = tuple((connections, depth) for depth in (1, 16) for connections in (64, 256))
TABLE_HEAD = (
    "| connections | depth | trueload, CPU µs/request | a bare loop | trueload / a bare loop |\n"
    "|--:|--:|--:|--:|--:|"
)


@dataclass(frozen=True)
class Pair:
    """Two consecutive runs; CPU µs per request of each."""

    ours: float
    bare: float

    @property
    def ratio(self) -> float:
        """CPU per request, ours / bare loop."""
        return self.ours / self.bare


def run_ours(binary: Path, work: Work) -> float:
    """Run our engine; return CPU µs per request over the window."""
    return converse(binary, GENERATOR_CPU, work, CLOSED).window_cpu_us_per_request


def run_bare(program: Path, work: Work) -> float:
    """Run the bare loop; return CPU µs per answer.

    Raises `BenchError` if the loop fails or gets no answer.
    """
    numbers = (work.port, work.connections, work.depth, round(work.duration_s * 1e3))
    command = [str(program), *map(str, numbers)]
    result = json.loads(run(command, cpu=GENERATOR_CPU, timeout_s=work.duration_s + PATIENCE_S).out)
    if not result["answers"]:
        raise BenchError("the bare loop heard no answer")
    cpu_ns: float = result["cpu_ns"] / result["answers"]
    return cpu_ns / 1e3


def pairs(
    binary: Path, program: Path, work: Work, count: int, placement: Placement | Unknown
) -> list[Pair]:
    """Measure `count` pairs in alternating order."""
    ours, bare = partial(run_ours, binary, work), partial(run_bare, program, work)
    done = []
    for number in range(count):
        order = (ours, bare) if number % 2 else (bare, ours)
        took = {turn: placement.measured(turn) for turn in order}
        done.append(Pair(took[ours], took[bare]))
    return done


def row(size: tuple[int, int], done: Sequence[Pair]) -> str:
    """One row of the table."""
    costs = [median(one.ours for one in done), median(one.bare for one in done)]
    ratios = spread([pair.ratio for pair in done])
    assert ratios is not None
    cells = [*map(str, size), *(f"{cost:.3f}" for cost in costs), shown_ratio(ratios)]
    return f"| {' | '.join(cells)} |"


def main() -> int:
    """Measure, print Markdown, and write it into its section of the page."""
    parser = argparse.ArgumentParser(description="Our CPU per request beside a bare loop's.")
    parser.add_argument("--pairs", type=int, default=PAIRS, help=f"pairs ({PAIRS})")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"a run ({SECONDS:g})")
    parser.add_argument("--no-page", action="store_true", help="leave the page alone")
    options = parser.parse_args()
    try:
        lines = _report(prepare_setting(), options.pairs, options.seconds)
    except SettingError as error:
        print(error, file=sys.stderr)
        return 2
    except BenchError as error:
        print(f"error: {error}\nhint: it takes Debian's gcc and liburing-dev", file=sys.stderr)
        return 2
    print("\n".join(lines))
    if options.pairs >= PAIRS and not options.no_page:
        write_section(ACCURACY, "floor", lines)
    return 0


def _report(binary: Path, count: int, seconds: float) -> list[str]:
    quiet, placement = Quiet(), find_placement()
    with tempfile.TemporaryDirectory() as name, reference(binary, SERVER_CPU) as server:
        program = Path(name) / "bare_loop"
        built(["gcc", "-O2", "-o", str(program), "bare_loop.c", "-luring"])
        works = {size: Work(server.port, *size, seconds) for size in SIZES}
        done = {
            size: pairs(binary, program, work, count, placement) for size, work in works.items()
        }
    runs = f"Medians of {count} pairs, {seconds:g} s a run. {quiet} {placement}"
    return [str(describe()), "", runs, "", TABLE_HEAD, *(row(*each) for each in done.items())]


if __name__ == "__main__":
    sys.exit(main())
