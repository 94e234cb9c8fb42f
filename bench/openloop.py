"""What the open loop costs: CPU per request against a closed loop of the same throughput.

The reference server on CPU 0, the engine on CPU 1. A pair is a closed loop and an open one with
constant arrivals at the throughput that the closed loop had; every other pair goes the other way
round, with the throughput of the pair before. The number of connections tunes the closed loop. The
median of the ratios of CPU time over the window counts, target ≤ 1.15; exit code 1 if it is missed.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from conversation import Outcome, converse, opened
from engine import Work
from machine import describe
from servers import reference
from setting import GENERATOR_CPU, SERVER_CPU, engine_path
from trueload.spec import CLOSED

PAIRS = 15
RATIO_MOST = 1.15
# The closed loop's connections; the open loop has CONNECTIONS, so that one is always free.
CLOSED_CONNECTIONS = (4, 16, 64)
CONNECTIONS = 128


@dataclass(frozen=True)
class Pair:
    """Two runs one after the other."""

    closed: Outcome
    opened: Outcome

    @property
    def ratio(self) -> float:
        return self.opened.window_cpu_us_per_request / self.closed.window_cpu_us_per_request


def pairs(binary: Path, port: int, connections: int, count: int, seconds: float) -> list[Pair]:
    """So many pairs, in alternating order."""

    def run_closed() -> Outcome:
        return converse(binary, GENERATOR_CPU, Work(port, connections, 1, seconds), CLOSED)

    def run_open(rate_per_s: float) -> Outcome:
        load = opened(rate_per_s, seconds)
        return converse(binary, GENERATOR_CPU, Work(port, CONNECTIONS, 1, seconds), load)

    rate_per_s = run_closed().per_s
    done = []
    for number in range(count):
        if number % 2:
            first = run_open(rate_per_s)
            done.append(Pair(run_closed(), first))
        else:
            first = run_closed()
            done.append(Pair(first, run_open(first.per_s)))
        rate_per_s = done[-1].closed.per_s
    return done


def line(connections: int, done: list[Pair]) -> str:
    """A row of the table."""
    ratios = [pair.ratio for pair in done]
    middle = median(ratios)
    runs = ([pair.closed for pair in done], [pair.opened for pair in done])
    rates = " | ".join(f"{median(one.per_s for one in some):.0f}" for some in runs)
    costs = " | ".join(
        f"{median(one.window_cpu_us_per_request for one in some):.2f}" for some in runs
    )
    return (
        f"| {connections} | {rates} | {costs} | {middle:.2f} ({min(ratios):.2f} to "
        f"{max(ratios):.2f}) | {'pass' if middle <= RATIO_MOST else 'FAIL'} |"
    )


def main() -> int:
    """Measures, prints a Markdown table, and marks."""
    parser = argparse.ArgumentParser(description="CPU per request, open loop against closed.")
    parser.add_argument("--pairs", type=int, default=PAIRS, help=f"pairs ({PAIRS})")
    parser.add_argument("--seconds", type=float, default=1.5, help="a run (1.5)")
    options = parser.parse_args()
    binary = engine_path()
    print(f"{describe()}\n\nmedian of {options.pairs} pairs, {options.seconds:g} s a run\n")
    print(
        "| closed-loop connections | closed req/s | open req/s | closed CPU µs/request "
        "| open CPU µs/request | open / closed (≤ 1.15) | mark |\n"
        + "|--:|--:|--:|--:|--:|--:|---|"
    )
    passed = True
    with reference(binary, SERVER_CPU) as server:
        for connections in CLOSED_CONNECTIONS:
            done = pairs(binary, server.port, connections, options.pairs, options.seconds)
            print(line(connections, done), flush=True)
            passed &= median(pair.ratio for pair in done) <= RATIO_MOST
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
