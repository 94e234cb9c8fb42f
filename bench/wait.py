"""Is the reference server's `/wait/MS` punctual, and how much of it can one core carry?

Clients are measured against it, so it must be neither late nor the limit. The server runs on CPU 0
with one thread and keeps the record that it keeps for clients; our generator runs on CPU 1. The
error is taken within the server, from when an answer was due until the kernel has it. Beside it
stands the error that our generator sees: the request's time less the delay, with the network's and
the generator's own part. Loads are closed loops unless they name a rate; a warm-up is not counted.

Targets: with 16,384 requests open at once, the error's p99 at most 1 ms. At 4,096 connections and
10 ms, at least 100,000 requests a second; at that rate the server's thread less than 0.80 busy.
Prints Markdown with marks. Exit code 1 if a target is missed, 2 if it cannot measure.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

from conversation import opened
from engine import Work, phase_of, spec_of
from hdrh.histogram import HdrHistogram
from machine import describe
from marks import Limit, Mark, exit_code, mark, mark_table
from page import ACCURACY, write_section
from setting import GENERATOR_CPU, SERVER_CPU, Quiet, SettingError, find_setting
from trueload.engines.engine import Engine, EngineError, await_listening, seen_since_mark
from trueload.errors import UserError
from trueload.machine.accounting import ProcessTree, usage
from trueload.protocol.exchange import ServeHttp
from trueload.protocol.plan import (
    Error,
    FromEngine,
    Measurement,
    PhaseDone,
    PhaseStarted,
    Ready,
    Serve,
)
from trueload.protocol.server_report import ServerReport
from trueload.trial.plan import make_plan
from trueload.trial.spec import CLOSED

RUNS = 5
READY_S, PHASE_S, MARK_S = 30.0, 60.0, 10.0
NS_PER_MS = 1_000_000
ERROR_MOST = Limit(1.0, unit=" ms")
RATE_LEAST = Limit(100_000, at_least=True, unit="/s")
BUSY_MOST = Limit(0.80)
TABLE_HEAD = (
    "| connections | delay | load | requests/s | open requests, mean | server busy | generator busy"
    " | error p50 | p99 | max | as the generator sees it, p99 |\n"
    "|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|"
)


@dataclass(frozen=True)
class Cell:
    """A load; without a rate it is a closed loop."""

    connections: int
    wait_ms: int
    rate_per_s: float | None = None

    def __str__(self) -> str:
        load = "" if self.rate_per_s is None else f" at {self.rate_per_s:,.0f}/s"
        return f"{self.connections:,} connections, {self.wait_ms} ms{load}"


# Rate times delay is the number of open requests; the additional connections are free.
PRECISE = (Cell(18_000, 1_000, 16_384), Cell(18_000, 250, 65_536))
FAST = Cell(4_096, 10)
STEADY = Cell(4_096, 10, 100_000)
CELLS = (Cell(64, 10), Cell(16_384, 1_000), *PRECISE, STEADY, FAST)


@dataclass(frozen=True)
class Run:
    """What both ends report of one run."""

    seen: ServerReport
    server_busy: float
    generator_busy: float
    measurement: Measurement
    """Of the whole phase, its beginning too."""
    wait_ms: int

    @property
    def per_s(self) -> float:
        return self.seen.throughput_per_s or 0.0

    @property
    def error_p99_ms(self) -> float:
        """The p99 of the delay's error within the server."""
        assert self.seen.delay_error_ns is not None
        return self.seen.delay_error_ns.p99 / NS_PER_MS

    @property
    def client_error_p99_ms(self) -> float:
        """The p99 of the error by the generator's clock, from the actual send."""
        service = HdrHistogram.decode(self.measurement.histograms.service)
        return float(service.get_value_at_percentile(99)) / NS_PER_MS - self.wait_ms


@contextmanager
def serving() -> Iterator[tuple[Engine, str]]:
    """Run the server with its record; yields it and its address."""
    with Engine.start() as server:
        plan = Serve(
            listen="127.0.0.1:0", threads=1, cpus=(SERVER_CPU,), service=ServeHttp(record=True)
        )
        server.send(plan)
        yield server, await_listening(server, READY_S)


def await_message(engine: Engine, kind: type[FromEngine], timeout_s: float) -> FromEngine:
    """Return the next message of this kind. Raises `EngineError` on an error or when none comes."""
    while (message := engine.receive(timeout_s)) is not None:
        if isinstance(message, kind):
            return message
        if isinstance(message, Error):
            raise EngineError("engine", message.message)
    raise EngineError("silent", f"nothing came for {timeout_s:g} s")


def measure(cell: Cell, seconds: float) -> Run:
    """Run once against a new server."""
    settle_s = max(1.0, 4 * cell.wait_ms / 1e3)
    load = CLOSED if cell.rate_per_s is None else opened(cell.rate_per_s, settle_s + seconds)
    with serving() as (server, address), Engine.start() as generator:
        port = int(address.rpartition(":")[2])
        work = Work(port, cell.connections, 1, seconds, path=f"/wait/{cell.wait_ms}")
        generator.send(make_plan(spec_of(work), (GENERATOR_CPU,)))
        ready = await_message(generator, Ready, READY_S)
        assert isinstance(ready, Ready)
        if ready.established != cell.connections:
            raise EngineError("engine", f"{ready.established} of {cell.connections} connections")
        generator.send(phase_of(settle_s + seconds, load))
        await_message(generator, PhaseStarted, READY_S)
        # Wait until requests that began together have drifted apart.
        time.sleep(settle_s)
        began = seen_since_mark(server, "beginning", MARK_S)
        before = [ProcessTree(engine.pid).sample() for engine in (server, generator)]
        time.sleep(seconds)
        after = [ProcessTree(engine.pid).sample() for engine in (server, generator)]
        seen = seen_since_mark(server, "window", MARK_S)
        done = await_message(generator, PhaseDone, PHASE_S)
        rest = seen_since_mark(server, "rest", MARK_S)
    assert isinstance(done, PhaseDone)
    counts, answered = done.measurement.counts, sum(each.ok for each in (began, seen, rest))
    if counts.failed or counts.ok != answered:
        raise EngineError("engine", f"the ends do not agree: {counts} and {answered} answered")
    busy = [usage(*both).saturation or 0.0 for both in zip(before, after, strict=True)]
    return Run(seen, busy[0], busy[1], done.measurement, cell.wait_ms)


def row(cell: Cell, runs: Sequence[Run]) -> str:
    """A row of the table with the medians of the runs."""

    def middle(values: Sequence[float]) -> float:
        return median(values)

    errors = [run.seen.delay_error_ns for run in runs if run.seen.delay_error_ns is not None]
    load = "closed" if cell.rate_per_s is None else f"{cell.rate_per_s:,.0f}/s"
    shown = (
        f"{cell.connections:,}",
        f"{cell.wait_ms} ms",
        load,
        f"{middle([run.per_s for run in runs]):,.0f}",
        f"{middle([run.seen.open_requests.mean for run in runs]):,.0f}",
        f"{middle([run.server_busy for run in runs]):.2f}",
        f"{middle([run.generator_busy for run in runs]):.2f}",
        *(
            f"{middle([float(getattr(error, name)) for error in errors]) / 1e3:,.0f} µs"
            for name in ("p50", "p99", "max")
        ),
        f"{middle([run.client_error_p99_ms for run in runs]) * 1e3:,.0f} µs",
    )
    return f"| {' | '.join(shown)} |"


def judge(measured: dict[Cell, list[Run]]) -> list[Mark]:
    """Judge the targets, each by its median run."""
    marked = []
    for cell in PRECISE:
        errors = [run.error_p99_ms for run in measured[cell]]
        what = f"{cell}: the delay's error within the server, p99"
        shown = f"{median(errors):.3f} ms ({min(errors):.3f} to {max(errors):.3f})"
        marked.append(mark(what, ERROR_MOST, median(errors), shown))
    rates = [run.per_s for run in measured[FAST]]
    shown = f"{median(rates):,.0f}/s ({min(rates):,.0f} to {max(rates):,.0f})"
    marked.append(mark(f"{FAST}: requests answered", RATE_LEAST, median(rates), shown))
    busy = [run.server_busy for run in measured[STEADY]]
    shown = f"{median(busy):.2f} ({min(busy):.2f} to {max(busy):.2f})"
    what = f"{STEADY}: the server's thread busy"
    return [*marked, mark(what, BUSY_MOST, median(busy), shown)]


def main() -> int:
    """Measure, print Markdown, and judge the targets."""
    parser = argparse.ArgumentParser(description="The reference server's delays.")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"runs of each load ({RUNS})")
    parser.add_argument("--seconds", type=float, default=3.0, help="a run (3)")
    parser.add_argument("--no-page", action="store_true", help="leave the page alone")
    options = parser.parse_args()
    quiet = Quiet()
    measured: dict[Cell, list[Run]] = {cell: [] for cell in CELLS}
    try:
        find_setting()
        # Leave the server's CPU to the server, which has to be punctual.
        os.sched_setaffinity(0, {GENERATOR_CPU})
        for _ in range(options.runs):
            for cell, runs in measured.items():
                runs.append(measure(cell, options.seconds))
    except (EngineError, SettingError, UserError) as error:
        print(error, file=sys.stderr)
        return 2
    marked = judge(measured)
    about = f"Medians of {options.runs} runs of {options.seconds:g} s. {quiet}"
    table = [TABLE_HEAD, *(row(cell, runs) for cell, runs in measured.items())]
    lines = [str(describe()), "", about, "", *mark_table(marked), "", *table]
    print("\n".join(lines))
    if options.runs >= RUNS and not options.no_page:
        write_section(ACCURACY, "wait", lines)
    return exit_code(marked)


if __name__ == "__main__":
    sys.exit(main())
