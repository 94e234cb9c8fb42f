"""What an echo over TCP costs our generator, beside a request of HTTP: CPU per message of 64 bytes.

The reference servers of both run on CPU 0, one thread each, and idle in turn; the generator takes
turns between them on CPU 1, a closed loop with one message, or request, in flight per connection.
Ratios are of runs one after the other.

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
from trueload.protocol.plan import ServeTcpEcho
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
    """Two runs one after the other."""

    echo: Outcome
    http: Outcome

    @property
    def ratio(self) -> float:
        """CPU per exchange, of echo to HTTP."""
        return self.echo.window_cpu_us_per_request / self.http.window_cpu_us_per_request


def pairs(
    binary: Path,
    ports: tuple[int, int],
    connections: int,
    count: int,
    seconds: float,
    placement: Placement | Unknown,
) -> list[Pair]:
    """So many pairs, in alternating order; ``ports`` of the echo and of the HTTP server."""
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
    """The mark of so many connections."""
    what = f"CPU per echo of {SIZE_BYTES} bytes / per request of HTTP, {connections} connections"
    ratios = spread([pair.ratio for pair in done])
    assert ratios is not None
    return mark(what, RATIO_MOST, ratios.middle, f"{shown_ratio(ratios)}, {counted(len(done))}")


def row(connections: int, done: list[Pair]) -> str:
    """A line of the table."""
    sides = ([pair.echo for pair in done], [pair.http for pair in done])
    rates = [f"{median(one.per_s for one in side):,.0f}" for side in sides]
    costs = [f"{median(one.window_cpu_us_per_request for one in side):.2f}" for side in sides]
    ratios = spread([pair.ratio for pair in done])
    assert ratios is not None
    return f"| {' | '.join([f'{connections}', *rates, *costs, shown_ratio(ratios)])} |"


def main() -> int:
    """Measures, prints Markdown, and marks."""
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
