"""Simulate runs of known distributions: how often is the truth within the 95 % interval?

`python bench/coverage.py` takes some minutes and writes its section of
docs/contributors/accuracy.md. Nothing is measured: any machine gives the same table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from page import ACCURACY, write_section
from trueload.buckets import Buckets, stretches
from trueload.protocol.tick import Second
from trueload.record.percentile_interval import percentile_interval
from trueload.record.sample import Sample

Times = npt.NDArray[np.float64]
Generator = np.random.Generator

RUNS, SEED = 1000, 53
RATE_PER_S, SECONDS = 200, 30
SPREAD = 0.2  # the standard deviation of the logarithm of a second's level
LIKENESS = 0.3  # the correlation of levels of neighbouring seconds
MS = 1e6
FINE_BITS, SPARSE_BITS = 10, 6
ALL = 2_000_000  # values that tell a true percentile
WITHIN = (0.93, 0.97)


@dataclass(frozen=True)
class Kind:
    """A distribution of times. `draw` makes so many seconds of them, `percentile` is the truth."""

    name: str
    draw: Callable[[Generator, int], Times]
    percentile: Callable[[float], float]


def independent(draw: Callable[[Generator, tuple[int, int]], Times]) -> Callable[..., Times]:
    """Make seconds of independent times."""
    return lambda chance, seconds: draw(chance, (seconds, RATE_PER_S))


def correlated(chance: Generator, seconds: int) -> Times:
    """Make exponential times whose mean changes from second to second (AR(1) in its logarithm)."""
    levels = np.empty(seconds)
    levels[0] = chance.normal(0, SPREAD)
    steps = chance.normal(0, SPREAD * math.sqrt(1 - LIKENESS**2), seconds)
    for at in range(1, seconds):
        levels[at] = LIKENESS * levels[at - 1] + steps[at]
    times: Times = np.exp(levels)[:, None] * chance.exponential(1, (seconds, RATE_PER_S))
    return times


def of_correlated(share: float) -> float:
    """The percentile over all seconds that there may be, from very many values."""
    chance = np.random.default_rng(1)
    times = np.exp(chance.normal(0, SPREAD, ALL)) * chance.exponential(1, ALL)
    return float(np.quantile(times, share))


def of_lognormal(share: float) -> float:
    """The same."""
    return float(np.quantile(np.random.default_rng(1).lognormal(0, 1, ALL), share))


KINDS = (
    Kind(
        "exponential",
        independent(lambda chance, shape: chance.exponential(1, shape)),
        lambda share: -math.log(1 - share),
    ),
    Kind(
        "lognormal, sigma 1",
        independent(lambda chance, shape: chance.lognormal(0, 1, shape)),
        of_lognormal,
    ),
    Kind(
        "Pareto, alpha 1.5",
        independent(lambda chance, shape: chance.pareto(1.5, shape) + 1),
        lambda share: (1 - share) ** (-1 / 1.5),
    ),
    Kind(
        f"exponential, seconds correlated by {LIKENESS} (AR(1), sigma {SPREAD})",
        correlated,
        of_correlated,
    ),
)
SHARES = (0.5, 0.99)


@dataclass(frozen=True)
class Coverage:
    """How many simulated runs had an interval, and how many of those had the truth in it."""

    intervals: int
    right: int

    @property
    def share(self) -> float:
        """The share of the intervals that are right."""
        return self.right / self.intervals


def coverage(kind: Kind, share: float, runs: int, seconds: int = SECONDS) -> Coverage:
    """Simulate runs. The interval that a run has always contains its own percentile."""
    chance = np.random.default_rng([SEED, KINDS.index(kind), round(share * 100)])
    true_ns = kind.percentile(share) * MS
    intervals = right = 0
    for _ in range(runs):
        times_ns = (kind.draw(chance, seconds) * MS).astype(np.int64)
        latency = Sample(histogram(times_ns))
        found = percentile_interval(latency, list(map(second, range(seconds), times_ns)), share)
        if found.between is None:
            continue
        low, high = found.between
        own = latency.percentile(share).value
        assert own is not None
        assert 0 <= low <= own <= high
        intervals += 1
        right += low <= true_ns <= high
    return Coverage(intervals, right)


def indices(times_ns: npt.NDArray[np.int64], bits: int) -> npt.NDArray[np.int64]:
    """The buckets of times, with so many bits to each power of two."""
    shift = np.maximum(0, np.floor(np.log2(np.maximum(1, times_ns))).astype(np.int64) - bits)
    found: npt.NDArray[np.int64] = (shift << bits) + (times_ns >> shift)
    return found


def histogram(times_ns: npt.NDArray[np.int64]) -> Buckets:
    """The times of a run, to a thousandth."""
    of = indices(times_ns.ravel(), FINE_BITS)
    first = int(of.min()) >> FINE_BITS << FINE_BITS
    return Buckets(*stretches(first, np.bincount(of - first).tolist(), FINE_BITS))


def second(t_s: int, times_ns: npt.NDArray[np.int64]) -> Second:
    """One second of a series."""
    of, counts = np.unique(indices(times_ns, SPARSE_BITS), return_counts=True)
    latency = dict(zip(of.tolist(), counts.tolist(), strict=True))
    return Second.model_construct(t_s=t_s, width_s=1, ok=len(times_ns), failed=0, latency=latency)


def table(runs: int = RUNS) -> list[str]:
    """The table in Markdown."""
    lines = [
        f"{runs:,} runs each of {SECONDS} s at {RATE_PER_S}/s, seed {SEED}; 93 to 97 % are wanted.",
        "",
        "| times | percentile | truth within the interval | runs without an interval | |",
        "|---|---|--:|--:|---|",
    ]
    for kind in KINDS:
        for share in SHARES:
            found = coverage(kind, share, runs)
            met = "met" if WITHIN[0] <= found.share <= WITHIN[1] else "**missed**"
            none = (runs - found.intervals) / runs
            lines.append(
                f"| {kind.name} | p{share * 100:g} | {found.share:.1%} | {none:.1%} | {met} |"
            )
            print(lines[-1], flush=True)
    return lines


if __name__ == "__main__":
    write_section(ACCURACY, "coverage", table(), by="bench/coverage.py")
