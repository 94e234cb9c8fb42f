"""Does the open loop send when it says? Intervals between actual sends against the ideal.

The reference server on CPU 0, the engine on CPU 1. The sends are timed by the kernel as their
packets pass the loopback device (bench/sniffer.py; needs root), apart from the engine; its own
account of its lateness, `send_lag`, stands beside. Constant arrivals: how far the intervals are
from 1 / rate, target p99 ≤ 200 µs. Poisson: Anderson-Darling of the intervals against the
exponential at 5 %, the median over blocks of a thousand (over many more at once, any clock fails
it), and the same once more over sends thinned at random to 1,000/s: a thinned Poisson process is
one, too, and what goes away are the gaps of a few µs, shorter than one `send` takes. The mark is
that of all sends. Prints Markdown with marks; exit code 1 if one is missed, 2 if it cannot measure.
Only an idle machine can pass.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median

import numpy as np
from conversation import converse, opened
from engine import Work
from machine import describe
from process import BenchError
from scipy import stats
from servers import reference
from setting import GENERATOR_CPU, SERVER_CPU, engine_path
from sniffer import Sniffer
from trueload.spec import Arrivals

ARRIVALS: tuple[Arrivals, ...] = ("constant", "poisson")
RATES_PER_S = (1_000, 10_000, 50_000)
CONNECTIONS = 256
OFF_MOST_US = 200.0
GAPS = 1_000
THINNED_PER_S = 1_000
# Stephens 1974, the exponential with its scale estimated, at 5 %.
CRITICAL_5 = 1.341


@dataclass(frozen=True)
class Paced:
    """One rate with one kind of arrivals."""

    arrivals: str
    rate_per_s: int
    heard: int
    sent: int
    off_us: tuple[float, float, float]
    """Of intervals from the ideal: p50, p99, max (constant arrivals)."""
    darling: float
    """The statistic against the exponential, the median over blocks of intervals (Poisson)."""
    thinned: float
    """The same over sends thinned to 1,000/s."""
    lag_p99_us: float

    @property
    def passed(self) -> bool:
        if self.heard != self.sent:
            return False
        if self.arrivals == "constant":
            return self.off_us[1] <= OFF_MOST_US
        return self.darling <= CRITICAL_5


def darling_exponential(gaps_us: Sequence[float]) -> float:
    """Anderson-Darling against the exponential with the gaps' mean, corrected for its estimation
    (Stephens 1974: times 1 + 0.6 / n)."""
    with warnings.catch_warnings():
        # What becomes deprecated is the table of critical values, which is not used here.
        warnings.simplefilter("ignore")
        statistic = float(stats.anderson(np.asarray(gaps_us), dist="expon").statistic)
    return statistic * (1 + 0.6 / len(gaps_us))


def thinned(times_ns: Sequence[int], part: float) -> list[int]:
    """Each of the times with this probability, by a fixed seed."""
    chance = Random(1)
    return [time_ns for time_ns in times_ns if chance.random() < part]


def median_darling(times_ns: Sequence[int]) -> float:
    """The median over blocks of intervals; over what is there when it is less than a block."""
    gaps_us = np.diff(np.asarray(times_ns, dtype=np.int64)) / 1e3
    blocks = [gaps_us[first : first + GAPS] for first in range(0, len(gaps_us), GAPS)]
    whole = [block for block in blocks if len(block) == GAPS] or blocks[:1]
    return median(darling_exponential(block.tolist()) for block in whole)


def measure(binary: Path, port: int, arrivals: Arrivals, rate_per_s: int, seconds: float) -> Paced:
    """One run, heard from outside."""
    sniffer = Sniffer(port)
    try:
        load = opened(rate_per_s, seconds, arrivals)
        outcome = converse(binary, GENERATOR_CPU, Work(port, CONNECTIONS, 1, seconds), load)
    finally:
        times_ns = sniffer.stop()
    if len(times_ns) <= GAPS:
        raise BenchError(f"only {len(times_ns)} requests were heard at {rate_per_s}/s")
    gaps_us = np.diff(np.asarray(times_ns, dtype=np.int64)) / 1e3
    off_us = np.abs(np.subtract(gaps_us, 1e6 / rate_per_s))
    p50, p99, most = (float(value) for value in np.percentile(off_us, (50, 99, 100)))
    return Paced(
        arrivals=arrivals,
        rate_per_s=rate_per_s,
        heard=len(times_ns),
        sent=outcome.measurement["counts"]["issued"],
        off_us=(p50, p99, most),
        darling=median_darling(times_ns),
        thinned=median_darling(thinned(times_ns, THINNED_PER_S / rate_per_s)),
        lag_p99_us=outcome.histogram("send_lag").get_value_at_percentile(99) / 1e3,
    )


def markdown(all_paced: Sequence[Paced]) -> list[str]:
    """One line a run."""
    lines = [
        "| arrivals | rate | heard of sent | interval off by p50, p99, max (µs) "
        "| Anderson-Darling (≤ 1.341) | thinned | engine's send lag p99 (µs) | mark |",
        "|---|--:|--:|--:|--:|--:|--:|---|",
    ]
    for paced in all_paced:
        constant = paced.arrivals == "constant"
        off = ", ".join(f"{value:.0f}" for value in paced.off_us) if constant else ""
        darling = "|" if constant else f"{paced.darling:.2f} | {paced.thinned:.2f}"
        lines.append(
            f"| {paced.arrivals} | {paced.rate_per_s}/s | {paced.heard} of {paced.sent} "
            f"| {off} | {darling} | {paced.lag_p99_us:.0f} | {'pass' if paced.passed else 'FAIL'} |"
        )
    return lines


def main() -> int:
    """Measures every rate with both kinds of arrivals, prints, and marks."""
    parser = argparse.ArgumentParser(description="Intervals between sends against the ideal.")
    parser.add_argument("--seconds", type=float, default=3.0, help="a run (3)")
    seconds = parser.parse_args().seconds
    binary = engine_path()
    print(f"{describe()}\n")
    with reference(binary, SERVER_CPU) as server:
        try:
            all_paced = [
                measure(binary, server.port, arrivals, rate_per_s, seconds)
                for arrivals in ARRIVALS
                for rate_per_s in RATES_PER_S
            ]
        except PermissionError:
            print("error: the packets can be timed by root only\nhint: run it as root")
            return 2
    print("\n".join(markdown(all_paced)))
    return 0 if all(paced.passed for paced in all_paced) else 1


if __name__ == "__main__":
    sys.exit(main())
