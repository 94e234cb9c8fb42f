"""Live comparisons of equal servers, and of servers that differ by 3 %, with `trueload compare`.

`bench/same.py` compares two servers of 1,000/s 40 times, each in 6 pairs: at most 4 may be told
apart at 95 %. Then it compares servers of 1,000/s and 1,030/s 20 times, each in 12 pairs: at least
15 have to be told apart, and in the right direction. The speed of each server varies so that trials
of 2 s spread by about 1.4 %. `--jobs 4` compares four at once. The table is for
docs/contributors/accuracy.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean, median, stdev
from typing import Any

from clocked import Measured, Workshop, in_jobs, report
from marks import Limit, Mark, mark
from process import BenchError

SAME, DIFFERENT = 40, 20
ALARMS_SHARE, FOUND_SHARE = 4 / 40, 15 / 20
PER_S, MORE = 1_000.0, 0.03
# The speed is drawn again every half second, within 5 %: in the mean of the four half seconds of a
# trial it varies by 0.05 / sqrt(3) / sqrt(4) = 1.4 %.
NOISE = "noise=0.05:500ms"
TRIAL = ("-c", "16", "-d", "2s", "--warmup", "200ms")
TRIAL_MOST_S = 10.0
CLAIMS = ("better", "worse")


@dataclass(frozen=True)
class Series:
    """Comparisons of one kind: how many, of how many pairs, and by how much B is faster."""

    name: str
    times: int
    pairs: int
    more: float


@dataclass(frozen=True)
class Outcome:
    """A comparison: what is said of B, the ratio of the throughputs B to A with its interval, and
    the spread of one side's trials."""

    word: str
    alarms: tuple[str, ...]
    """The metrics by which A and B were told apart."""
    ratio: float
    low: float
    high: float
    spread: float
    verdict: str

    def __str__(self) -> str:
        interval = f"{self.ratio:.4f} ({self.low:.4f} to {self.high:.4f})"
        by = f" by {', '.join(self.alarms)}" if self.alarms else ""
        return f"B is {self.word}{by}: {interval}, trials ±{self.spread:.2%}, {self.verdict}"


def compare(shop: Workshop, series: Series, seed: int) -> Outcome:
    """Compare once. Raises `BenchError` if nothing was measured."""
    rates = (PER_S, PER_S * (1 + series.more))
    a, b = (
        (f"serves={rate:g}", NOISE, f"seed={2 * seed + side}") for side, rate in enumerate(rates)
    )
    with shop.server(*a) as first, shop.server(*b) as second:
        words = ("compare", first.url, second.url, *TRIAL, "--repeat", f"{series.pairs}")
        most_s = 2 * series.pairs * TRIAL_MOST_S
        found = shop.run((*words, "--seed", f"{seed + 1}"), most_s)
    if found.result is None or not found.result["ratios"]:
        raise BenchError(f"`trueload compare` ended with {found.code}: {found.last_line}")
    return outcome_of(found.result)


def outcome_of(result: Any) -> Outcome:
    """Read the JSON of `trueload compare`."""
    (ratio,) = [each for each in result["ratios"] if each["metric"] == "throughput"]
    alarms = tuple(each["metric"] for each in result["ratios"] if each["word"] in CLAIMS)
    rates = [
        [each["throughput"]["ok_per_s"] for each in result["trials"] if each["side"] == side]
        for side in "ab"
    ]
    spread = fmean(stdev(some) / fmean(some) for some in rates)
    within = ratio["interval"]
    return Outcome(
        ratio["word"],
        alarms,
        ratio["ratio"],
        within["low"],
        within["high"],
        spread,
        result["verdict"],
    )


def series_mark(series: Series, outcomes: Sequence[Outcome]) -> Mark:
    """The target of a series."""
    times = len(outcomes)
    if series.more:
        found = sum(each.word == "better" for each in outcomes)
        limit = Limit(round(FOUND_SHARE * times), at_least=True, unit=f" of {times}")
        return mark(f"{series.name}: told apart, B faster", limit, found, f"{found} of {times}")
    found = sum(bool(each.alarms) for each in outcomes)
    limit = Limit(round(ALARMS_SHARE * times), unit=f" of {times}")
    return mark(f"{series.name}: told apart", limit, found, f"{found} of {times}")


def row(series: Series, outcomes: Sequence[Outcome]) -> str:
    """The row of a series."""
    apart = sum(bool(each.alarms) for each in outcomes)
    width = median(each.high - each.low for each in outcomes)
    spread = median(each.spread for each in outcomes)
    cells = [
        *(series.name, str(series.pairs), f"{apart} of {len(outcomes)}"),
        *(f"{median(each.ratio for each in outcomes):.4f}", f"{width:.2%}", f"{spread:.2%}"),
    ]
    return f"| {' | '.join(cells)} |"


def measured(shop: Workshop, every: Sequence[Series], jobs: int) -> Measured:
    """Make each series; return the table, and the targets."""
    lines = [
        "| servers | pairs | told apart at 95 % | median ratio | width of the interval |"
        " spread of a trial |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    marked = []
    for series in every:
        outcomes = []
        for seed, outcome in in_jobs(partial(compare, shop, series), range(series.times), jobs):
            print(f"{series.name} {seed + 1}: {outcome}", file=sys.stderr, flush=True)
            outcomes.append(outcome)
        lines.append(row(series, outcomes))
        marked.append(series_mark(series, outcomes))
    return lines, marked


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compares equal and different servers.")
    parser.add_argument("--same", type=int, default=SAME, help=f"comparisons of equals ({SAME})")
    parser.add_argument(
        "--different", type=int, default=DIFFERENT, help=f"of servers that differ ({DIFFERENT})"
    )
    parser.add_argument("--jobs", type=int, default=1, help="comparisons at once (1)")
    return parser.parse_args()


def main() -> int:
    """Print the table; return 1 if a target is missed, 2 if nothing can be measured."""
    options = _options()
    every = [
        Series("the same", options.same, 6, 0.0),
        Series(f"B {MORE:.0%} faster", options.different, 12, MORE),
    ]
    chosen = [series for series in every if series.times]
    asked = f"`trueload compare A B {' '.join(TRIAL)}`; servers of {PER_S:,.0f}/s."
    return report(asked, options.jobs, partial(measured, every=chosen, jobs=options.jobs))


if __name__ == "__main__":
    sys.exit(main())
