"""Are the parts of streams timed as the server sent them, and how many can one core follow?

The reference server sends streams on CPU 0 with one thread, and records how late it hands each part
to the kernel. Our generator follows them on CPU 1 with one thread. Streams begin evenly, so parts
fall due evenly, too. A gap of the generator is compared with the schedule (`/stream/N/MS`: one part
every MS ms): what it is longer is the server's lateness, the network's, and the generator's error.
All parts must have come, on both sides.

Targets: with 10,000 streams open at 20 parts a second each, the gaps' p99 is at most 2 ms longer
than the schedule. Prints Markdown with marks. Exit code 1 if a target is missed, 2 if it cannot
measure.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from conversation import opened
from engine import Work, phase_of, spec_of
from hdrh.histogram import HdrHistogram
from machine import describe
from marks import Limit, Mark, exit_code, mark, mark_table
from setting import GENERATOR_CPU, Quiet, SettingError, find_setting
from trueload.engines.engine import Engine, EngineError, seen_since_mark
from trueload.errors import UserError
from trueload.machine.accounting import ProcessTree, usage
from trueload.protocol.plan import PhaseDone, Ready
from trueload.protocol.streams import EndContent, StreamPlan
from trueload.trial.plan import make_plan
from wait import MARK_S, NS_PER_MS, PHASE_S, READY_S, await_message, serving

RUNS = 3
GAP_MS = 50
PARTS = 20
STREAM = StreamPlan(kind="sse", end=EndContent(text="[DONE]"))
LATE_MOST = Limit(2.0, unit=" ms")
TARGET = 10_000
"""Streams open at once for which the target holds."""
TABLE_HEAD = (
    "| streams open | parts/s | server busy | generator busy | server CPU | generator CPU"
    " | gaps p50 | p99 | max | server late, p99 | parts together |\n"
    "|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
)


@dataclass(frozen=True)
class Run:
    """What both ends report of one run; times in ms, CPU time in us for each part."""

    parts_per_s: float
    server_busy: float
    generator_busy: float
    server_cpu: float
    generator_cpu: float
    gap_p50: float
    gap_p99: float
    gap_max: float
    server_late_p99: float
    together_share: float


def measure(streams: int, seconds: float) -> Run:
    """Run once against a new server, with so many streams open once the first have ended."""
    per_s = streams * 1000 / (PARTS * GAP_MS)
    with serving() as (server, address), Engine.start() as generator:
        port = int(address.rpartition(":")[2])
        # Every tenth connection is spare: an open loop needs a free one.
        work = Work(port, streams + streams // 10 + 1, 1, seconds, path=f"/stream/{PARTS}/{GAP_MS}")
        spec = spec_of(work)
        spec = replace(spec, traffic=replace(spec.traffic, stream=STREAM))
        generator.send(make_plan(spec, (GENERATOR_CPU,)))
        ready = await_message(generator, Ready, READY_S)
        assert isinstance(ready, Ready)
        if ready.established != work.connections:
            raise EngineError("engine", f"{ready.established} of {work.connections} connections")
        before = [ProcessTree(engine.pid).sample() for engine in (server, generator)]
        generator.send(phase_of(seconds, opened(per_s, seconds)))
        done = await_message(generator, PhaseDone, PHASE_S)
        after = [ProcessTree(engine.pid).sample() for engine in (server, generator)]
        seen = seen_since_mark(server, "all", MARK_S)
    assert isinstance(done, PhaseDone)
    counts, found = done.measurement.counts, done.measurement.streams
    if found is None or counts.failed or found.parts != PARTS * seen.ok or counts.ok != seen.ok:
        raise EngineError("engine", f"the ends do not agree: {counts}, {seen.ok} streams sent")
    gaps = HdrHistogram.decode(found.histograms.gap)
    used = [usage(*both) for both in zip(before, after, strict=True)]
    busy = [each.saturation or 0.0 for each in used]
    cpu_us = [each.cpu_s * 1e6 / found.parts for each in used]
    assert seen.delay_error_ns is not None
    return Run(
        parts_per_s=found.parts / seconds,
        server_busy=busy[0],
        generator_busy=busy[1],
        server_cpu=cpu_us[0],
        generator_cpu=cpu_us[1],
        gap_p50=gaps.get_value_at_percentile(50) / NS_PER_MS,
        gap_p99=gaps.get_value_at_percentile(99) / NS_PER_MS,
        gap_max=gaps.get_max_value() / NS_PER_MS,
        server_late_p99=seen.delay_error_ns.p99 / NS_PER_MS,
        together_share=found.together / found.parts,
    )


def row(streams: int, runs: Sequence[Run]) -> str:
    """A row of the table with the medians of the runs."""
    middle = {name: median(getattr(run, name) for run in runs) for name in vars(runs[0])}
    shown = (
        f"{streams:,}",
        f"{middle['parts_per_s']:,.0f}",
        f"{middle['server_busy']:.2f}",
        f"{middle['generator_busy']:.2f}",
        *(f"{middle[name]:.2f} µs" for name in ("server_cpu", "generator_cpu")),
        *(f"{middle[name]:.2f} ms" for name in ("gap_p50", "gap_p99", "gap_max")),
        f"{middle['server_late_p99']:.2f} ms",
        f"{middle['together_share']:.2%}",
    )
    return f"| {' | '.join(shown)} |"


def judge(streams: int, runs: Sequence[Run]) -> Mark:
    """Judge a target by its median run."""
    late = [run.gap_p99 - GAP_MS for run in runs]
    what = f"{streams:,} streams, a part every {GAP_MS} ms: p99 of the gaps beyond the schedule"
    shown = f"{median(late):.2f} ms ({min(late):.2f} to {max(late):.2f})"
    return mark(what, LATE_MOST, median(late), shown)


def main() -> int:
    """Measure, print Markdown, and judge the target."""
    parser = argparse.ArgumentParser(description="Parts of streams, as sent and as timed.")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"runs of each load ({RUNS})")
    parser.add_argument("--seconds", type=float, default=4.0, help="a run (4)")
    parser.add_argument(
        "--streams", type=int, nargs="+", default=[100, 1000, TARGET], help="streams open at once"
    )
    options = parser.parse_args()
    quiet = Quiet()
    measured: dict[int, list[Run]] = {streams: [] for streams in options.streams}
    try:
        find_setting()
        # Leave the server's CPU to the server, which has to be punctual.
        os.sched_setaffinity(0, {GENERATOR_CPU})
        for _ in range(options.runs):
            for streams, runs in measured.items():
                runs.append(measure(streams, options.seconds))
    except (EngineError, SettingError, UserError) as error:
        print(error, file=sys.stderr)
        return 2
    marked = [judge(streams, runs) for streams, runs in measured.items()]
    about = f"Medians of {options.runs} runs of {options.seconds:g} s. {quiet}"
    table = [TABLE_HEAD, *(row(streams, runs) for streams, runs in measured.items())]
    lines = [str(describe()), "", about, "", *mark_table(marked), "", *table]
    print("\n".join(lines))
    return exit_code(marked)


if __name__ == "__main__":
    sys.exit(main())
