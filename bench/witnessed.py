"""Are service times right? Each tool's p50 and p99 against a witness of the wire.

In a network namespace of its own the reference server runs on CPU 0, a generator on CPU 1. The
kernel notes when each request and each answer passes the loopback device (witness.py). A service
time on the wire is from the request's segment to the last segment of its answer (matching.py).
trueload reports its service time and its round trip. The round trip excludes trueload's own part:
it ends when the kernel had the answer, which is what the wire should show. wrk and oha report one
time, their own part included.

Loads: closed loops at full speed, and open loops at 10, 50 and 90 % of what trueload carried there
with the same connections and driver. wrk has no open loop; oha's is `-q`. Each of three runs is
compared with what the witness saw of it. A row shows the run with the median error.

Target, for trueload's open loops: both percentiles within 2 % of the witness or 20 µs. Needs root
and gcc; by itself: `python bench/witnessed.py`.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median

from built import find_built
from conversation import Outcome, converse, opened
from engine import Work
from generators import PATIENCE_S
from machine import describe
from marks import Mark, exit_code
from matching import Matched
from page import ACCURACY, write_section
from process import BenchError, run
from servers import Server, reference
from setting import GENERATOR_CPU, SERVER_CPU, Quiet, SettingError, prepare_setting
from trueload.protocol.engine_options import DriverName
from trueload.trial.spec import CLOSED
from witness import Witness, build_witness, own_network

HERE = Path(__file__).resolve().parent
CONNECTIONS = (64, 1_000)
DRIVERS: tuple[DriverName, ...] = ("io_uring", "epoll")
SHARES = (0.10, 0.50, 0.90)
PARTS = (50.0, 99.0)
RUNS = 3
SECONDS = 3.0
# One connection in sixteen has its answers stamped on arrival, so of this many requests 312 stamped
# answers lie beyond the p99: chance alone moves that rank by 6 %. Low rates need longer runs for
# it.
REQUESTS_LEAST = 500_000
SECONDS_MOST = 30.0
OFF_MOST_SHARE, OFF_MOST_US = 0.02, 20.0
# More than any server here answers; sizes the witness's ring for a closed loop.
CLOSED_PER_S_MOST = 350_000
# The allowed difference between a tool's count and the witness's: a tool gives up what is open at
# the end, and wrk starts to count a little later.
MISSED_MOST = 0.02
TABLE_HEAD = (
    "| connections | load | who | requests/s | p50 says | ours | witness | off"
    " | p99 says | ours | witness | one in 16 | off | within 2 % or 20 µs |\n"
    "|--:|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|"
)


@dataclass(frozen=True)
class Reported:
    """What a tool says of its run.

    The number of requests, the seconds that they took, p50 and p99 in µs, and how much of each is
    the tool's own time, if it says so.
    """

    requests: int
    wall_s: float
    percentiles_us: tuple[float, float]
    own_us: tuple[float, float] | None = None


@dataclass(frozen=True)
class Compared:
    """One percentile of one run, in µs, as said by the tool and as seen by the witness.

    `own_us` is the tool's own part of it (0 where it does not say). `captured_us` is over all
    connections, `sampled_us` the range of samples of one connection in sixteen.
    """

    reported_us: float
    own_us: float
    captured_us: float
    sampled_us: tuple[float, float] | None = None

    @property
    def off_us(self) -> float:
        """The tool's figure without its own part, less the witness's."""
        return self.reported_us - self.own_us - self.captured_us

    @property
    def allowed_us(self) -> float:
        """The allowed error: the larger of 20 µs and 2 %."""
        return max(OFF_MOST_US, OFF_MOST_SHARE * self.captured_us)


@dataclass(frozen=True)
class Row:
    """One tool under one load: the rate and both percentiles of each run.

    `judged` rows have a target; `why` says why nothing was measured.
    """

    connections: int
    load: str
    who: str
    per_s: tuple[float, ...] = ()
    runs: tuple[tuple[Compared, Compared], ...] = ()
    judged: bool = False
    why: str = ""

    def middle(self, number: int) -> Compared:
        """The run with the median error at this percentile; of two middle ones, the worse."""
        some = sorted((each[number] for each in self.runs), key=excess)
        return some[len(some) // 2]

    @property
    def is_within(self) -> bool | None:
        """Whether the median run meets the target at both percentiles; None without a run."""
        if not self.runs:
            return None
        return all(excess(self.middle(number)) <= 1 for number in range(len(PARTS)))

    def mark(self) -> Mark:
        """Return the row's target as a mark, as in the other reports."""
        what = f"{self.who}, {self.connections:,} connections, {self.load}"
        return Mark(what, "≤ 2 % or 20 µs", self.why, self.is_within)


def excess(found: Compared) -> float:
    """The error as a multiple of what is allowed: 1 is just within."""
    return abs(found.off_us) / found.allowed_us


def compare(reported: Reported, captured: Matched) -> tuple[Compared, Compared]:
    """Compare both percentiles.

    Raises `BenchError` when tool and witness did not see the same run.
    """
    matched = len(captured.service_ns)
    if abs(matched - reported.requests) > MISSED_MOST * reported.requests:
        raise BenchError(f"{reported.requests:,} requests by the tool, {matched:,} by the witness")
    own_us = reported.own_us or (0.0, 0.0)
    p50, p99 = (
        Compared(
            reported.percentiles_us[at],
            own_us[at],
            captured.percentile_ns(part) / 1e3,
            _us(captured.sampled_ns(part)),
        )
        for at, part in enumerate(PARTS)
    )
    return p50, p99


def _us(range_ns: tuple[float, float]) -> tuple[float, float]:
    return range_ns[0] / 1e3, range_ns[1] / 1e3


def read_ours(outcome: Outcome) -> Reported:
    """Read our service time, and how much it exceeds our round trip."""
    service = _percentiles_us(outcome.histogram("service").get_value_at_percentile)
    own = None
    if outcome.measurement["histograms"].get("round_trip"):
        trip = _percentiles_us(outcome.histogram("round_trip").get_value_at_percentile)
        own = service[0] - trip[0], service[1] - trip[1]
    return Reported(
        requests=outcome.ok,
        wall_s=outcome.ok / outcome.per_s,
        percentiles_us=service,
        own_us=own,
    )


def _percentiles_us(at: Callable[[float], float]) -> tuple[float, float]:
    return at(PARTS[0]) / 1e3, at(PARTS[1]) / 1e3


def read_wrk(out: str) -> Reported:
    """Parse what wrk and percentiles.lua print; the latter in µs."""
    found = dict(re.findall(r"percentile ([\d.]+) (\d+)", out))
    counted = re.search(r"(\d+) requests in ([\d.]+)(ms|s|m),", out)
    if counted is None or "Socket errors" in out or "Non-2xx" in out:
        raise BenchError(f"wrk says:\n{out}")
    unit_s = {"ms": 0.001, "s": 1.0, "m": 60.0}[counted[3]]
    percentiles_us = (float(found["50"]), float(found["99"]))
    return Reported(int(counted[1]), float(counted[2]) * unit_s, percentiles_us)


def read_oha(out: str) -> Reported:
    """Parse oha's JSON; its times are in seconds."""
    result = json.loads(out)
    codes, errors = result["statusCodeDistribution"], result["errorDistribution"]
    if set(codes) != {"200"} or any("deadline" not in what for what in errors):
        raise BenchError(f"oha met errors: {codes} {errors}")
    times_s = result["latencyPercentiles"]
    return Reported(
        requests=codes["200"],
        wall_s=float(result["summary"]["total"]),
        percentiles_us=(times_s["p50"] * 1e6, times_s["p99"] * 1e6),
    )


Tool = Callable[[Work, float | None], Reported]
"""One run, at a rate, or as a closed loop."""


def ours(binary: Path, work: Work, rate_per_s: float | None) -> Reported:
    """Run our engine."""
    load = CLOSED if rate_per_s is None else opened(rate_per_s, work.duration_s)
    return read_ours(converse(binary, GENERATOR_CPU, work, load))


def wrk(work: Work, rate_per_s: float | None) -> Reported:
    """Run wrk, which has a closed loop only."""
    assert rate_per_s is None
    load = ["-t1", f"-c{work.connections}", f"-d{work.duration_s:.0f}s"]
    return read_wrk(_ran(["wrk", *load, "-s", str(HERE / "percentiles.lua"), work.url], work))


def oha(program: Path, work: Work, rate_per_s: float | None) -> Reported:
    """Run oha on one thread; a rate is passed as `-q`."""
    command = ["env", "TOKIO_WORKER_THREADS=1", str(program), "--no-tui"]
    command += ["--output-format", "json", "-z", f"{work.duration_s:.0f}s"]
    command += ["-c", str(work.connections)]
    if rate_per_s is not None:
        command += ["-q", f"{rate_per_s:.0f}"]
    return read_oha(_ran([*command, work.url], work))


def _ran(command: list[str], work: Work) -> str:
    return run(command, cpu=GENERATOR_CPU, timeout_s=work.duration_s + PATIENCE_S).out


class Bench:
    """What every row needs: the programs, the server, the length and number of runs."""

    def __init__(
        self, binary: Path, witness: Path, server: Server, runs: int, seconds: float
    ) -> None:
        self.binary = binary
        self._witness = witness
        self._server = server
        self._runs = runs
        self._seconds = seconds

    def row(self, who: str, tool: Tool, work: Work, rate_per_s: float | None, load: str) -> Row:
        """Measure one row; its `why` says why it could not be measured."""
        rates, runs = [], []
        per_s = rate_per_s or CLOSED_PER_S_MOST
        work = replace(work, duration_s=run_s(self._seconds, rate_per_s))
        try:
            for _ in range(self._runs):
                with Witness(self._witness, self._server.port, per_s * work.duration_s) as witness:
                    reported = tool(work, rate_per_s)
                rates.append(reported.requests / reported.wall_s)
                runs.append(compare(reported, witness.captured.matched()))
        except BenchError as error:
            return Row(work.connections, load, who, why=" ".join(str(error).split())[:200])
        is_judged = who.startswith("trueload") and rate_per_s is not None
        return Row(work.connections, load, who, tuple(rates), tuple(runs), is_judged)

    def work(self, connections: int, driver: DriverName = "auto") -> Work:
        """The load of a row, without its rate."""
        return Work(self._server.port, connections, 1, self._seconds, driver=driver)


def run_s(seconds: float, rate_per_s: float | None) -> float:
    """The seconds of one run: longer at a low rate, unless this is a short trial run anyway."""
    if rate_per_s is None or seconds < SECONDS:
        return seconds
    return min(SECONDS_MOST, max(seconds, float(math.ceil(REQUESTS_LEAST / rate_per_s))))


def rows(bench: Bench, connections: Sequence[int], oha_program: Path | str) -> Iterator[Row]:
    """Yield each row once it is measured. `oha_program` is a reason if there is no oha."""
    for count in connections:
        carried = 0.0
        for driver in DRIVERS:
            tool, who = partial(ours, bench.binary), f"trueload, {driver}"
            work = bench.work(count, driver)
            closed = bench.row(who, tool, work, None, "closed loop")
            yield closed
            if not closed.per_s:
                continue
            capacity = median(closed.per_s)
            carried = carried or capacity
            for share in SHARES:
                rate, load = share * capacity, f"{share:.0%} of its capacity"
                yield bench.row(who, tool, work, rate, load)
        work = bench.work(count)
        if shutil.which("wrk"):
            yield bench.row("wrk", wrk, work, None, "closed loop")
        else:
            yield Row(count, "closed loop", "wrk", why="not installed (Debian: wrk)")
        if isinstance(oha_program, str):
            yield Row(count, "closed loop", "oha", why=oha_program)
            continue
        tool = partial(oha, oha_program)
        yield bench.row("oha", tool, work, None, "closed loop")
        for share in SHARES:
            # A share of trueload's capacity, so that the server has the same load.
            yield bench.row("oha", tool, work, share * carried, f"{share:.0%} of trueload's")


def line(row: Row) -> str:
    """A row of the table: the median rate, and the median run of each percentile."""
    cells = [f"{row.connections:,}", row.load, row.who]
    if not row.runs:
        return f"| {' | '.join([*cells, *[''] * 10, f'not measured: {row.why}'])} |"
    cells.append(f"{median(row.per_s):,.0f}")
    for number in range(len(PARTS)):
        found = row.middle(number)
        cells += [f"{found.reported_us:,.0f}", f"{found.own_us:,.0f}" if found.own_us else ""]
        cells.append(f"{found.captured_us:,.0f}")
        if PARTS[number] == PARTS[-1]:
            low, high = found.sampled_us or (found.captured_us, found.captured_us)
            cells.append(f"{low:,.0f} to {high:,.0f}")
        cells.append(f"{found.off_us:+,.0f}")
    return f"| {' | '.join([*cells, within_text(row)])} |"


def within_text(row: Row) -> str:
    """The text of the last column; only rows with a target can miss it."""
    if row.is_within:
        return "met" if row.judged else "yes"
    return "**missed**" if row.judged else "no"


def counted(judged: Sequence[Row]) -> str:
    """Summarise the targets in one line."""
    words = [row.mark().word for row in judged]
    parts = [f"{words.count(word)} {word}" for word in ("met", "missed", "not measured")]
    return f"{len(words)} targets: {', '.join(parts)}."


def report(
    binary: Path, runs: int, seconds: float, connections: Sequence[int] = CONNECTIONS
) -> tuple[list[str], list[Mark]]:
    """Return the table as Markdown, and the targets.

    Raises `BenchError` when nothing can be measured here.
    """
    quiet = Quiet()
    try:
        oha_program: Path | str = find_built("oha", build=seconds >= SECONDS)
    except BenchError as error:
        oha_program = str(error)
    found = []
    with tempfile.TemporaryDirectory() as folder, own_network():
        witness = build_witness(Path(folder))
        with reference(binary, SERVER_CPU) as server:
            bench = Bench(binary, witness, server, runs, seconds)
            for row in rows(bench, connections, oha_program):
                print(f"done: {row.mark().what}", file=sys.stderr, flush=True)
                found.append(row)
    about = (
        f"The middle one of {runs} runs of {seconds:g} s; open loops run longer. Times in µs. "
        f"{quiet}"
    )
    # Our own rows must be complete: a figure that could not be measured counts as a target, too.
    judged = [row for row in found if row.judged or (row.who.startswith("trueload") and row.why)]
    lines = [str(describe()), "", about, "", TABLE_HEAD, *map(line, found), "", counted(judged)]
    return lines, [row.mark() for row in judged]


def main() -> int:
    """Measure, print Markdown, and return an exit code that says whether ours is right."""
    parser = argparse.ArgumentParser(description="Service times against a witness of the wire.")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"a run ({SECONDS:g})")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"runs of each row ({RUNS})")
    parser.add_argument(
        "--connections", type=int, nargs="+", default=CONNECTIONS, help="(64 and 1,000)"
    )
    parser.add_argument("--no-page", action="store_true", help="leave the page alone")
    options = parser.parse_args()
    try:
        lines, marked = report(
            prepare_setting(), options.runs, options.seconds, options.connections
        )
    except (BenchError, SettingError) as error:
        print(error, file=sys.stderr)
        return 2
    print("\n".join(lines))
    whole = options.seconds >= SECONDS and options.runs >= RUNS
    if whole and tuple(options.connections) == CONNECTIONS and not options.no_page:
        write_section(ACCURACY, "witness", lines)
    return exit_code(marked)


if __name__ == "__main__":
    sys.exit(main())
