"""Does the open loop send when it says? Intervals between actual sends against the ideal.

The reference server runs on CPU 0, the engine on CPU 1. The kernel times the sends as their packets
pass the loopback device (bench/sniffer.py; needs root), independently of the engine; the engine's
own lateness, `send_lag`, is shown beside. Every rate has several runs, so that one disturbance of
the machine does not decide.

Constant arrivals: how far the intervals are from 1 / rate, p99; target ≤ 200 µs in the median run.

Poisson arrivals: Anderson-Darling against the exponential at 5 %. The statistic is the median over
blocks of a thousand intervals of all runs, as with many more at once any clock fails it. A sender
has a resolution: sends of one thread are serial, and those due within 25 µs go out together.
Therefore two properties are judged that a Poisson process has at every scale above it. Its
intervals are memoryless: those above 100 µs, less 100 µs, are exponential again. And a random
sample of its sends, thinned to 1,000/s, is a Poisson process, too. The statistic of all intervals
is shown beside; it cannot pass where many of them are shorter than the resolution.

Prints Markdown with marks. Exit code 1 if a target is missed, 2 if it cannot measure. Only an idle
machine can pass.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median

import numpy as np
from conversation import converse, opened
from engine import Work
from machine import describe
from marks import Limit, Mark, exit_code, mark, mark_table
from page import ACCURACY, write_section
from process import BenchError
from scipy import stats
from servers import reference
from setting import GENERATOR_CPU, SERVER_CPU, Quiet, SettingError, prepare_setting
from sniffer import Sniffer
from trueload.protocol.load_options import Arrivals

RATES_PER_S = (1_000, 10_000, 50_000)
RUNS = 5
CONNECTIONS = 256
OFF_MOST = Limit(200, unit=" µs")
GAPS = 1_000
RESOLUTION_US = 100.0
THINNED_PER_S = 1_000
# Stephens 1974, the exponential with its scale estimated, at 5 %.
CRITICAL_5 = 1.341
DARLING_MOST = Limit(CRITICAL_5)


@dataclass(frozen=True)
class Run:
    """The times at which a run's requests were sent, by the kernel's clock."""

    rate_per_s: int
    times_ns: tuple[int, ...]
    sent: int
    lag_p99_us: float
    """By the engine itself."""

    @property
    def gaps_us(self) -> list[float]:
        """The intervals between consecutive sends."""
        gaps_ns = np.diff(np.asarray(self.times_ns, dtype=np.int64))
        return [float(gap_ns) / 1e3 for gap_ns in gaps_ns]


def off_p99_us(runs: Sequence[Run]) -> float:
    """The p99 of the intervals' distance from the ideal; the median run's."""
    return median(float(np.percentile(_off_us(run), 99)) for run in runs)


def _off_us(run: Run) -> list[float]:
    return [abs(gap_us - 1e6 / run.rate_per_s) for gap_us in run.gaps_us]


def darling_of_all(runs: Sequence[Run]) -> float:
    """The statistic over all intervals."""
    return median_darling([run.gaps_us for run in runs])


def darling_above_resolution(runs: Sequence[Run]) -> float:
    """The statistic over the excess of the intervals above the resolution."""
    return median_darling([above(run.gaps_us, RESOLUTION_US) for run in runs])


def darling_thinned(runs: Sequence[Run]) -> float:
    """The statistic over the intervals of sends thinned to 1,000/s."""
    parts = [thinned(run.times_ns, THINNED_PER_S / run.rate_per_s) for run in runs]
    return median_darling([[gap / 1e3 for gap in np.diff(part).tolist()] for part in parts])


def above(gaps_us: Sequence[float], least_us: float) -> list[float]:
    """The excess of the intervals above `least_us`; an exponential's is the same exponential."""
    return [gap_us - least_us for gap_us in gaps_us if gap_us > least_us]


def thinned(times_ns: Sequence[int], part: float) -> list[int]:
    """Keep each of the times with probability `part`, by a fixed seed."""
    chance = Random(1)
    return [time_ns for time_ns in times_ns if chance.random() < part]


def median_darling(runs_us: Sequence[Sequence[float]]) -> float:
    """The median over the full blocks of `GAPS` intervals, else over what is there."""
    gaps_us = [gap_us for run_us in runs_us for gap_us in run_us]
    blocks = [gaps_us[first : first + GAPS] for first in range(0, len(gaps_us), GAPS)]
    whole = [block for block in blocks if len(block) == GAPS] or blocks[:1]
    return median(darling_exponential(block) for block in whole)


def darling_exponential(gaps_us: Sequence[float]) -> float:
    """Anderson-Darling against the exponential with the gaps' mean.

    Corrected for the estimated mean by a factor of 1 + 0.6 / n (Stephens 1974).
    """
    with warnings.catch_warnings():
        # The deprecation concerns the table of critical values, which is not used here.
        warnings.simplefilter("ignore")
        statistic = float(stats.anderson(np.asarray(gaps_us), dist="expon").statistic)
    return statistic * (1 + 0.6 / len(gaps_us))


def measure(
    binary: Path, port: int, arrivals: Arrivals, rate_per_s: int, seconds: float, seed: int
) -> Run:
    """Run once, with the sends timed from outside the engine."""
    sniffer = Sniffer(port)
    try:
        load = opened(rate_per_s, seconds, arrivals, seed)
        outcome = converse(binary, GENERATOR_CPU, Work(port, CONNECTIONS, 1, seconds), load)
    finally:
        times_ns = sniffer.stop()
    sent = int(outcome.measurement["counts"]["issued"])
    if len(times_ns) != sent:
        raise BenchError(f"{len(times_ns)} of {sent} requests were heard at {rate_per_s}/s")
    if len(times_ns) <= GAPS:
        raise BenchError(f"only {len(times_ns)} requests were sent at {rate_per_s}/s")
    lag_us = outcome.histogram("send_lag").get_value_at_percentile(99) / 1e3
    return Run(rate_per_s, tuple(times_ns), sent, lag_us)


Figure = Callable[[Sequence[Run]], float]
# The figures for each kind of arrivals, each with its limit; without a limit it is only shown.
QUESTIONS: tuple[tuple[Arrivals, str, Figure, Limit | None], ...] = (
    ("constant", "interval off by, p99", off_p99_us, OFF_MOST),
    ("poisson", "Anderson-Darling above 100 µs", darling_above_resolution, DARLING_MOST),
    ("poisson", "Anderson-Darling thinned to 1,000/s", darling_thinned, DARLING_MOST),
    ("poisson", "Anderson-Darling of all intervals", darling_of_all, None),
)


def ask(arrivals: Arrivals, runs: Sequence[Run]) -> tuple[list[Mark], list[str]]:
    """Return the marks, and lines for what is not judged."""
    marked, lines = [], []
    rate = f"{arrivals} arrivals, {runs[0].rate_per_s:,}/s"
    for kind, what, figure, limit in QUESTIONS:
        if kind != arrivals:
            continue
        found, single = figure(runs), [figure([run]) for run in runs]
        unit = limit.unit if limit else ""
        shown = f"{found:.2f}{unit} (single runs {min(single):.2f} to {max(single):.2f})"
        if limit is None:
            lines.append(f"{rate}: {what} {shown}")
        else:
            marked.append(mark(f"{rate}: {what}", limit, found, shown))
    lag_us = median(run.lag_p99_us for run in runs)
    lines.append(f"{rate}: send lag p99 by the engine itself {lag_us:.0f} µs")
    return marked, lines


def main() -> int:
    """Measure every rate with both kinds of arrivals, print, and judge."""
    parser = argparse.ArgumentParser(description="Intervals between sends against the ideal.")
    parser.add_argument("--seconds", type=float, default=3.0, help="a run (3)")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"runs of each rate ({RUNS})")
    parser.add_argument("--no-page", action="store_true", help="leave the page alone")
    options = parser.parse_args()
    quiet = Quiet()
    try:
        marked, lines = _measure_all(prepare_setting(), options.runs, options.seconds)
    except (BenchError, SettingError) as error:
        print(error, file=sys.stderr)
        return 2
    except PermissionError:
        print("error: the packets can be timed by root only\nhint: run it as root")
        return 2
    section = [
        f"{describe()}\n\nMedians of {options.runs} runs of {options.seconds:g} s. {quiet}\n"
    ]
    section += mark_table(marked)
    print("\n".join([*section, "", *(f"- {line}" for line in lines)]))
    if options.runs >= RUNS and not options.no_page:
        write_section(ACCURACY, "pacing", section)
    return exit_code(marked)


def _measure_all(binary: Path, runs: int, seconds: float) -> tuple[list[Mark], list[str]]:
    all_marks, all_lines = [], []
    kinds: tuple[Arrivals, ...] = ("constant", "poisson")
    with reference(binary, SERVER_CPU) as server:
        for arrivals in kinds:
            for rate_per_s in RATES_PER_S:
                received = [
                    measure(binary, server.port, arrivals, rate_per_s, seconds, seed)
                    for seed in range(1, runs + 1)
                ]
                marked, lines = ask(arrivals, received)
                all_marks += marked
                all_lines += lines
    return all_marks, all_lines


if __name__ == "__main__":
    sys.exit(main())
