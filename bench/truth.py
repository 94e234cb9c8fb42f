"""Is the latency right? Our open loop against the computed truth, with wrk and hey beside it.

A server with known delays (bench/scripted.py) runs on CPU 0, the generators in turn on CPU 1. The
truth is a queue over the connections, computed from the schedule and the delays. wrk and hey are
closed loops with as many connections as give about the same throughput. Prints Markdown and marks:
each of our percentiles up to p99.9, as the median of three runs, within 2 % of the truth. Then
follow the service times of quick answers against a witness of the wire (bench/witnessed.py; needs
root and gcc). Exit code 1 when a target is missed, 2 when one part cannot be measured here.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median

from conversation import converse, opened
from engine import Work
from machine import describe
from marks import Limit, Mark, exit_code, mark, mark_table
from page import PERFORMANCE, write_section
from process import BenchError, prepare, run
from scripted import Delays
from servers import free_port, stop, wait_until_listening
from setting import GENERATOR_CPU, SERVER_CPU, Quiet, SettingError, find_setting

HERE = Path(__file__).resolve().parent
PARTS = (50.0, 90.0, 99.0, 99.9, 100.0)
OFF_MOST = Limit(2, unit=" %")
RATE_PER_S = 200
RUNS = 3
SECONDS = 12.0
SECONDS_HELP = f"a run ({SECONDS:g}; whole seconds, at least 7)"
# Enough for everything that waits after a freeze of 2 s.
CONNECTIONS = 500
PATIENCE_S = 30.0
TIMEOUT_S = 20.0


@dataclass(frozen=True)
class Case:
    """A server's delays, and how many closed-loop connections give the same mean throughput."""

    name: str
    delays: Delays
    closed_connections: int


CASES = (
    Case("constant 50 ms", Delays(0.05, 0.05), 10),
    Case("uniform 50 to 150 ms", Delays(0.05, 0.15), 20),
    Case("50 ms, one in 200 stalls 1 s", Delays(0.05, 0.05, stall_every=200), 11),
    Case("50 ms, frozen for 2 s", Delays(0.05, 0.05, freeze_at_s=4.0, freeze_s=2.0), 12),
)


@dataclass(frozen=True)
class Row:
    """What one tool says of one server: percentiles in ms, as in PARTS, and requests per second."""

    case: str
    who: str
    percentiles_ms: tuple[float, ...]
    per_s: float


def truth(delays: Delays, rate_per_s: float, connections: int, window_s: float) -> list[float]:
    """Compute the response times in s, sorted, from the schedule; unsent requests are left out."""
    free = [0.0] * connections
    response_s = []
    for number in range(round(rate_per_s * window_s)):
        scheduled_s = number / rate_per_s
        sent_s = max(scheduled_s, free[0])
        if sent_s >= window_s:
            continue
        done_s = delays.done_s(number, sent_s)
        heapq.heapreplace(free, done_s)
        response_s.append(done_s - scheduled_s)
    return sorted(response_s)


def quantile(ordered: Sequence[float], part: float) -> float:
    """Return the percentile of sorted values by the nearest rank; `part` is in percent."""
    rank = max(1, math.ceil(part / 100 * len(ordered)))
    return ordered[rank - 1]


@contextmanager
def scripted(delays: Delays) -> Iterator[int]:
    """Run the scripted server on its CPU; yields its port."""
    port = free_port()
    command = [sys.executable, str(HERE / "scripted.py"), str(port), json.dumps(asdict(delays))]
    process = subprocess.Popen(
        command, preexec_fn=prepare(SERVER_CPU), start_new_session=True, stderr=subprocess.DEVNULL
    )
    try:
        wait_until_listening(port, process)
        yield port
    finally:
        stop(process)


def ours(binary: Path, case: Case, port: int, seconds: float) -> Row:
    """Run our open loop once."""
    load = opened(RATE_PER_S, seconds)
    work = Work(port, CONNECTIONS, 1, seconds, timeout_s=TIMEOUT_S)
    outcome = converse(binary, GENERATOR_CPU, work, load)
    histogram = outcome.histogram("latency")
    values = tuple(histogram.get_value_at_percentile(part) / 1e6 for part in PARTS)
    return Row(case.name, "trueload, open loop", values, outcome.per_s)


def wrk(case: Case, port: int, seconds: float) -> Row:
    """Run wrk, with a script that prints the percentiles that its summary leaves out."""
    command = [
        "wrk",
        "-t1",
        f"-c{case.closed_connections}",
        f"-d{seconds:.0f}s",
        "--timeout",
        "20s",
    ]
    command += ["-s", str(HERE / "percentiles.lua"), f"http://127.0.0.1:{port}/"]
    out = run(command, cpu=GENERATOR_CPU, timeout_s=seconds + PATIENCE_S).out
    found = dict(re.findall(r"percentile ([\d.]+) (\d+)", out))
    per_s = re.search(r"Requests/sec:\s+([\d.]+)", out)
    if per_s is None:
        raise BenchError(f"wrk says:\n{out}")
    values = tuple(int(found[f"{part:g}"]) / 1e3 for part in PARTS)
    return Row(case.name, "wrk, closed loop", values, float(per_s[1]))


def hey(case: Case, port: int, seconds: float) -> Row:
    """Run hey; its list of all response times gives the percentiles that its summary leaves out."""
    command = ["hey", "-z", f"{seconds:.0f}s", "-c", str(case.closed_connections), "-o", "csv"]
    command.append(f"http://127.0.0.1:{port}/")
    out = run(command, cpu=GENERATOR_CPU, timeout_s=seconds + PATIENCE_S).out
    times = sorted(float(line.split(",")[0]) for line in out.splitlines()[1:] if line.strip())
    if not times:
        raise BenchError(f"hey says:\n{out[-500:]}")
    values = tuple(quantile(times, part) * 1e3 for part in PARTS)
    return Row(case.name, "hey, closed loop", values, len(times) / seconds)


def middle(rows: Sequence[Row]) -> Row:
    """Return the median of each figure, because one disturbance of the machine spoils one run."""
    values = zip(*(row.percentiles_ms for row in rows), strict=True)
    per_s = median(row.per_s for row in rows)
    return replace(rows[0], percentiles_ms=tuple(map(median, values)), per_s=per_s)


def measure(case: Case, binary: Path, seconds: float) -> list[Row]:
    """Compute the truth and run every tool, each against a new server; ours `RUNS` times."""
    ordered = truth(case.delays, RATE_PER_S, CONNECTIONS, seconds)
    values = tuple(quantile(ordered, part) * 1e3 for part in PARTS)
    own = []
    for _ in range(RUNS):
        with scripted(case.delays) as port:
            own.append(ours(binary, case, port, seconds))
    rows = [Row(case.name, "the truth, computed", values, RATE_PER_S), middle(own)]
    tools: list[Callable[[int], Row]] = []
    for name, other in (("wrk", wrk), ("hey", hey)):
        if shutil.which(name):
            tools.append(partial(other, case, seconds=seconds))
        else:
            print(f"{name} is not installed (Debian: {name}): left out", file=sys.stderr)
    for tool in tools:
        with scripted(case.delays) as port:
            rows.append(tool(port))
    return rows


def markdown(rows: Sequence[Row]) -> list[str]:
    """A Markdown table, one line per row, times in ms."""
    lines = ["| server | who | p50 | p90 | p99 | p99.9 | max | req/s |", "|---|---|" + "--:|" * 6]
    for row in rows:
        values = " | ".join(f"{value:.1f}" for value in row.percentiles_ms)
        lines.append(f"| {row.case} | {row.who} | {values} | {row.per_s:.0f} |")
    return lines


def off(rows: Sequence[Row]) -> float:
    """The largest relative error of our percentiles against the truth.

    The maximum is left out: it depends on a single request, on a machine that is never quite idle.
    """
    true, ours = rows[0], rows[1]
    pairs = zip(true.percentiles_ms[:-1], ours.percentiles_ms[:-1], strict=True)
    return max(abs(seen / expected - 1) for expected, seen in pairs)


def judge(groups: Sequence[Sequence[Row]]) -> list[Mark]:
    """Judge the percentiles against each server."""
    return [
        mark(f"{rows[0].case}: percentiles off the truth", OFF_MOST, off(rows) * 100, shown(rows))
        for rows in groups
    ]


def shown(rows: Sequence[Row]) -> str:
    """Format the error in percent."""
    return f"{off(rows):.2%}"


def main() -> int:
    """Measure, print, and return an exit code that says whether ours is right."""
    parser = argparse.ArgumentParser(description="Our latencies against the truth.")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=SECONDS_HELP)
    parser.add_argument("--no-page", action="store_true", help="leave docs/performance.md alone")
    options = parser.parse_args()
    computed = against_schedule(options.seconds, options.no_page)
    print(flush=True)
    # It runs in a process of its own, with its own CPU affinity and network namespace.
    command = [sys.executable, str(HERE / "witnessed.py")]
    command += ["--no-page"] if options.no_page else []
    command += ["--seconds", "1", "--runs", "1"] if options.seconds < SECONDS else []
    return max(computed, subprocess.run(command, check=False).returncode)


def against_schedule(seconds: float, no_page: bool) -> int:
    """Measure the servers with known delays, print, and return the exit code."""
    quiet = Quiet()
    try:
        binary = find_setting()
        groups = [measure(case, binary, seconds) for case in CASES]
    except (BenchError, SettingError) as error:
        print(error, file=sys.stderr)
        return 2
    marked = judge(groups)
    load = f"Open loop: {RATE_PER_S}/s, {CONNECTIONS} connections, {seconds:g} s; times in ms."
    lines = [str(describe()), "", f"{load} {quiet}", ""]
    lines += [*markdown([row for rows in groups for row in rows]), "", *mark_table(marked)]
    print("\n".join(lines))
    if seconds >= SECONDS and not no_page:
        write_section(PERFORMANCE, "truth", lines)
    return exit_code(marked)


if __name__ == "__main__":
    sys.exit(main())
