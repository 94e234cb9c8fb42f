"""CPU that our generator needs per echo of 64 bytes over TCP, compared with a request of HTTP.

The reference servers of both run on CPU 0, one thread each, and only one is loaded at a time. The
generator alternates between them on CPU 1, a closed loop with one message or request in flight per
connection. Each ratio is of two consecutive runs.

Target: at most 1.0 times a request of HTTP.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from conversation import Outcome, converse
from engine import Work, serving
from machine import describe
from marks import Limit, Mark, exit_code, mark, mark_table
from placement import Placement, Unknown, find_placement
from process import BenchError
from results import counted, shown_ratio, spread
from setting import GENERATOR_CPU, SERVER_CPU, Quiet, SettingError, prepare_setting
from trueload.protocol.exchange import ServeTcpEcho
from trueload.request.exchange import TcpEcho
from trueload.request.message import make_messages
from trueload.trial.spec import CLOSED

PAIRS = 15
RATIO_MOST = Limit(1.0)
SIZE_BYTES = 64
CONNECTIONS = (64, 256)
TABLE_HEAD = (
    "| connections | messages/s | requests/s | CPU µs/message | CPU µs/request | echo / HTTP |\n"
    "|--:|--:|--:|--:|--:|--:|"
)


@dataclass(frozen=True)
class Pair:
    """Two consecutive runs, one of each protocol."""

    echo: Outcome
    http: Outcome

    @property
    def ratio(self) -> float:
        """CPU per exchange, echo / HTTP."""
        return self.echo.window_cpu_us_per_request / self.http.window_cpu_us_per_request


def pairs(
    binary: Path,
    ports: tuple[int, int],
    connections: int,
    count: int,
    seconds: float,
    placement: Placement | Unknown,
) -> list[Pair]:
    """Measure `count` pairs in alternating order; ``ports`` are (echo server's, HTTP server's)."""
    exchange = TcpEcho(messages=make_messages(SIZE_BYTES, None))
    works = (
        Work(ports[0], connections, 1, seconds, exchange=exchange),
        Work(ports[1], connections, 1, seconds),
    )
    done = []
    for number in range(count):
        order = works if number % 2 else works[::-1]
        outcomes = {
            work.port: placement.measured(partial(converse, binary, GENERATOR_CPU, work, CLOSED))
            for work in order
        }
        done.append(Pair(outcomes[ports[0]], outcomes[ports[1]]))
    return done


def judge(connections: int, done: list[Pair]) -> Mark:
    """Judge the pairs measured with this many connections."""
    what = f"CPU per echo of {SIZE_BYTES} bytes / per request of HTTP, {connections} connections"
    ratios = spread([pair.ratio for pair in done])
    assert ratios is not None
    return mark(what, RATIO_MOST, ratios.middle, f"{shown_ratio(ratios)}, {counted(len(done))}")


def row(connections: int, done: list[Pair]) -> str:
    """One row of the table."""
    sides = ([pair.echo for pair in done], [pair.http for pair in done])
    rates = [f"{median(one.per_s for one in side):,.0f}" for side in sides]
    costs = [f"{median(one.window_cpu_us_per_request for one in side):.2f}" for side in sides]
    ratios = spread([pair.ratio for pair in done])
    assert ratios is not None
    return f"| {' | '.join([f'{connections}', *rates, *costs, shown_ratio(ratios)])} |"


def main() -> int:
    """Measure, print Markdown, and judge the targets."""
    parser = argparse.ArgumentParser(description="CPU per message, TCP echo against HTTP.")
    parser.add_argument("--pairs", type=int, default=PAIRS, help=f"pairs ({PAIRS})")
    parser.add_argument("--seconds", type=float, default=1.0, help="a run (1)")
    options = parser.parse_args()
    quiet = Quiet()
    try:
        binary, placement = prepare_setting(), find_placement()
        with (
            serving(binary, SERVER_CPU, service=ServeTcpEcho()) as (echo_port, _, _),
            serving(binary, SERVER_CPU) as (http_port, _, _),
        ):
            ports = (echo_port, http_port)
            done = {
                count: pairs(binary, ports, count, options.pairs, options.seconds, placement)
                for count in CONNECTIONS
            }
    except (BenchError, SettingError) as error:
        print(error, file=sys.stderr)
        return 2
    marked = [judge(count, found) for count, found in done.items()]
    print(describe(), f"\nMedians of {options.pairs} pairs. {quiet} {placement}\n", sep="\n")
    print(TABLE_HEAD, *(row(count, found) for count, found in done.items()), "", sep="\n")
    print("\n".join(mark_table(marked)))
    return exit_code(marked)


if __name__ == "__main__":
    sys.exit(main())
