"""What the open loop costs: CPU per request against a closed loop of the same throughput.

The reference server runs on CPU 0, the engine on CPU 1. A pair is a closed loop and an open one
over as many connections, with constant arrivals at the throughput that the closed loop had. Every
other pair runs in reverse order, with the throughput of the pair before. CPU time is that of the
engine's threads over the window. A pair whose throughputs differ by more than 5 % does not compare
like with like and is left out. Target: the median ratio ≤ 1.15 at 16, 64 (the default) and 256
connections.

With 4 connections the closed loop's engine sleeps, too, and one wake-up takes an answer and sends
the next request. Any open loop must wake twice, at the time of a request and for its answer, so
that ratio is shown but not judged. Its open loop has more connections, because four could not keep
to the schedule.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from conversation import Outcome, converse, opened
from engine import Work
from machine import describe
from marks import Limit, Mark, exit_code, mark, mark_table
from page import ACCURACY, write_section
from placement import Placement, Unknown, find_placement
from process import BenchError
from results import Spread, counted, shown_ratio, spread
from servers import reference
from setting import GENERATOR_CPU, SERVER_CPU, Quiet, SettingError, prepare_setting
from trueload.trial.spec import CLOSED

PAIRS = 15
RATIO_MOST = Limit(1.15)
THROUGHPUT_OFF_MOST = 0.05
JUDGED_CONNECTIONS = (16, 64, 256)
FEW_CONNECTIONS, FEW_OPEN_CONNECTIONS = 4, 64
TABLE_HEAD = (
    "| closed, connections | open, connections | closed req/s | open req/s "
    "| closed CPU µs/request | open CPU µs/request | open / closed |\n"
    "|--:|--:|--:|--:|--:|--:|--:|"
)


@dataclass(frozen=True)
class Pair:
    """Two consecutive runs, one of each loop."""

    closed: Outcome
    opened: Outcome

    @property
    def ratio(self) -> float:
        """CPU per request, open / closed."""
        return self.opened.window_cpu_us_per_request / self.closed.window_cpu_us_per_request

    @property
    def is_fair(self) -> bool:
        """Tell whether the two throughputs differ by at most 5 %."""
        return abs(self.opened.per_s / self.closed.per_s - 1) <= THROUGHPUT_OFF_MOST


@dataclass(frozen=True)
class Case:
    """The connections of a closed loop, and those of the open loop compared with it."""

    connections: int
    open_connections: int
    judged: bool = True

    @property
    def name(self) -> str:
        return f"open loop's CPU per request / closed loop's, {self.connections} connections"


CASES = (
    *(Case(count, count) for count in JUDGED_CONNECTIONS),
    Case(FEW_CONNECTIONS, FEW_OPEN_CONNECTIONS, judged=False),
)


def pairs(
    binary: Path, port: int, case: Case, count: int, seconds: float, placement: Placement | Unknown
) -> list[Pair]:
    """Measure `count` pairs in alternating order."""

    def run_closed() -> Outcome:
        work = Work(port, case.connections, 1, seconds)
        return placement.measured(partial(converse, binary, GENERATOR_CPU, work, CLOSED))

    def run_open(rate_per_s: float) -> Outcome:
        work = Work(port, case.open_connections, 1, seconds)
        load = opened(rate_per_s, seconds)
        return placement.measured(partial(converse, binary, GENERATOR_CPU, work, load))

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


def fair_ratios(done: Sequence[Pair]) -> Spread | None:
    """The ratios of the pairs with about the same throughput."""
    return spread([pair.ratio for pair in done if pair.is_fair])


def judge(case: Case, done: Sequence[Pair]) -> Mark:
    """Judge the case."""
    ratios = fair_ratios(done)
    if ratios is None:
        return mark(case.name, RATIO_MOST, None, "no pair of the same throughput")
    shown = f"{shown_ratio(ratios)}, {counted(ratios.count)} of {len(done)}"
    return mark(case.name, RATIO_MOST, ratios.middle, shown)


def row(case: Case, done: Sequence[Pair]) -> str:
    """One row of the table: throughput and cost of both loops."""
    sides = ([pair.closed for pair in done], [pair.opened for pair in done])
    rates = [f"{median(one.per_s for one in side):,.0f}" for side in sides]
    costs = [f"{median(one.window_cpu_us_per_request for one in side):.2f}" for side in sides]
    ratios = fair_ratios(done)
    last = "" if ratios is None else shown_ratio(ratios)
    cells = [f"{case.connections}", f"{case.open_connections}", *rates, *costs, last]
    return f"| {' | '.join(cells)} |"


def main() -> int:
    """Measure, print Markdown, and judge the targets."""
    parser = argparse.ArgumentParser(description="CPU per request, open loop against closed.")
    parser.add_argument("--pairs", type=int, default=PAIRS, help=f"pairs ({PAIRS})")
    parser.add_argument("--seconds", type=float, default=1.5, help="a run (1.5)")
    parser.add_argument("--no-page", action="store_true", help="leave the page alone")
    options = parser.parse_args()
    quiet = Quiet()
    try:
        binary, placement = prepare_setting(), find_placement()
        with reference(binary, SERVER_CPU) as server:
            measured = {
                case: pairs(binary, server.port, case, options.pairs, options.seconds, placement)
                for case in CASES
            }
    except (BenchError, SettingError) as error:
        print(error, file=sys.stderr)
        return 2
    marked = [judge(case, done) for case, done in measured.items() if case.judged]
    runs = f"Medians of {options.pairs} pairs, {options.seconds:g} s a run. {quiet} {placement}"
    lines = [str(describe()), "", runs, "", TABLE_HEAD]
    lines += [*(row(case, done) for case, done in measured.items()), "", *mark_table(marked)]
    print("\n".join(lines))
    if options.pairs >= PAIRS and not options.no_page:
        write_section(ACCURACY, "openloop", lines)
    return exit_code(marked)


if __name__ == "__main__":
    sys.exit(main())
