"""Searches for the limit of servers whose limit is known, each with a fresh run at what was found.

`bench/searches.py --times 20` searches each kind of server so often and then runs at the confirmed
load for 30 s. Targets for each kind: at least 19 of 20 fresh runs keep to the limit, the median of
the loads is within 5 % of the truth, and none is above it by more than 3 %. `--jobs 4` measures
four at once, `--only fixed` one kind. A search takes about a minute. The table is for
docs/contributors/accuracy.md.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from statistics import median
from typing import Any

import numpy as np
from clocked import Measured, Workshop, in_jobs, report
from marks import Limit, Mark, mark
from trueload.verdict import CHECKS

TIMES, JOBS = 20, 1
LIMIT_MS = 50
LIMIT = f"p99<{LIMIT_MS}ms"
SEARCH = ("-c", "500", "-d", "2s", "--warmup", "500ms", "--rate", "300/s", "--limit", LIMIT)
FRESH_S = 30
FRESH = ("-c", "500", "-d", f"{FRESH_S}s", "--warmup", "500ms", "--fail-on", f"p99>{LIMIT_MS}ms")
SEARCH_MOST_S, FRESH_MOST_S = 400.0, 90.0
OUR_SIDE = ("generator", "machine")
KEPT_SHARE, OFF_MOST, ABOVE_MOST = 0.95, 5.0, 3.0
TRIES = 3
"""How often at most a search or a run is made where our own side spoiled it."""
PER_S = 1_000.0
NOISE, NOISE_S = 0.15, 1.0
AGE_S, AGED = 300.0, 0.9


def steady(elapsed_s: float) -> float:
    """The limit of a server that is always the same."""
    return PER_S


def aged(elapsed_s: float) -> float:
    """The limit of one that loses a tenth of its speed within five minutes."""
    return PER_S * (1 - (1 - AGED) * min(1.0, elapsed_s / AGE_S))


def noisy(elapsed_s: float) -> float:
    """The limit of one whose speed changes every second."""
    return simulated_limit()


@cache
def simulated_limit(runs: int = 400) -> float:
    """The largest load that 19 of 20 simulated runs keep, where the speed changes every second.

    A queue of q requests makes the next one wait q / speed; p99 is that of all waits of a run.
    """
    chance, step_s = np.random.default_rng(1), 0.01
    ticks = round(NOISE_S / step_s)
    speeds = PER_S * (1 + NOISE * chance.uniform(-1, 1, (runs, round(FRESH_S / NOISE_S))))

    def keeps(load: float) -> bool:
        queue, waits = np.zeros(runs), []
        for speed in speeds.T:
            for _ in range(ticks):
                queue = np.maximum(0, queue + (load - speed) * step_s)
                waits.append(queue / speed)
        p99_s = np.quantile(np.array(waits), 0.99, axis=0)
        return bool((p99_s < LIMIT_MS / 1e3).mean() >= KEPT_SHARE)

    low, high = PER_S * (1 - NOISE), PER_S * (1 + NOISE)
    while high / low > 1.002:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


@dataclass(frozen=True)
class Kind:
    """A server, and the largest load that keeps to the limit so long after its first request."""

    name: str
    what: str
    options: str
    truth: Callable[[float], float]


KINDS = (
    Kind("fixed", "1,000/s", "", steady),
    Kind(
        "non-monotone",
        "1,000/s, and 700/s while more than 100 requests wait",
        "overload=100:0.7:0s",
        steady,
    ),
    Kind(
        "hysteresis",
        "1,000/s, and half of that from when 100 requests wait until 3 s later",
        "overload=100:0.5:3s",
        steady,
    ),
    Kind("warm-up", "300/s at first, 1,000/s after 10 s", "speed=0:0.3:10:1", steady),
    Kind(
        "age",
        "slower with age: 1,000/s at first, a tenth less after 5 min",
        f"speed=0:1:{AGE_S:g}:{AGED:g}",
        aged,
    ),
    Kind(
        "noise",
        f"1,000/s ±{NOISE:.0%}, drawn again every second",
        f"noise={NOISE}:{NOISE_S:g}s",
        noisy,
    ),
)


@dataclass(frozen=True)
class Outcome:
    """A search and its fresh run: the load, its ratio to the truth, and whether it was kept."""

    load: float | None
    ratio: float | None
    kept: bool
    said: str


def search(shop: Workshop, kind: Kind, seed: int) -> Outcome:
    """Search once, and run at the result; once more on a new server where our side spoiled it."""
    for number in range(1, TRIES + 1):
        outcome, spoiled = _search(shop, kind, seed)
        if not spoiled:
            break
        outcome = replace(outcome, said=f"{outcome.said} (spoiled {number} times)")
    return outcome


def is_spoiled(result: Any) -> bool:
    """Whether only the generator or the machine made a result invalid."""
    failed = [each["name"] for each in (result or {}).get("checks", ()) if each["status"] == "fail"]
    return bool(failed) and all(CHECKS[name].fault in OUR_SIDE for name in failed)


def _search(shop: Workshop, kind: Kind, seed: int) -> tuple[Outcome, bool]:
    options = (f"serves={PER_S:g}", f"seed={seed}", *kind.options.split())
    with shop.server(*options) as server:
        began_s = time.monotonic()
        found = shop.run(("http", server.url, *SEARCH), SEARCH_MOST_S)
        if found.result is None:
            return Outcome(None, None, False, f"exit {found.code}: {found.last_line}"), False
        result = found.result["result"]
        load, took_s = result["load"], time.monotonic() - began_s
        if load is None:
            said = f"{result['sentence']} ({took_s:.0f} s)"
            return Outcome(None, None, False, said), is_spoiled(found.result)
        fresh = shop.run(("http", server.url, "--rate", f"{load:.6g}/s", *FRESH), FRESH_MOST_S)
        truth = kind.truth(time.monotonic() - began_s)
    p99_ns = fresh.result["latency_ns"]["p99"] if fresh.result else None
    p99 = "none" if p99_ns is None else f"{p99_ns / 1e6:.3g} ms"
    steps = len(found.result["steps"])
    said = f"{load:,.0f} of {truth:,.0f}/s in {took_s:.0f} s, {steps} steps; then p99 {p99}"
    said += f", exit {fresh.code}: {fresh.last_line}" if fresh.code else ""
    return Outcome(load, load / truth, fresh.code == 0, said), is_spoiled(fresh.result)


def marks_of(kind: Kind, outcomes: Sequence[Outcome]) -> list[Mark]:
    """The three targets of a kind."""
    times, ratios = len(outcomes), [each.ratio for each in outcomes if each.ratio is not None]
    kept = sum(each.kept for each in outcomes)
    least = Limit(math.ceil(KEPT_SHARE * times), at_least=True, unit=f" of {times}")
    off = abs(median(ratios) - 1) * 100 if ratios else None
    above = (max(ratios) - 1) * 100 if ratios else None
    none = f"none of {times} searches found a load"
    return [
        mark(f"{kind.name}: fresh runs that keep to the limit", least, kept, f"{kept} of {times}"),
        mark(
            f"{kind.name}: median distance from the truth",
            Limit(OFF_MOST, unit=" %"),
            off,
            none if off is None else f"{off:.1f} % ({median(ratios) - 1:+.1%})",
        ),
        mark(
            f"{kind.name}: highest load above the truth",
            Limit(ABOVE_MOST, unit=" %"),
            above,
            none if above is None else f"{above:+.1f} %",
        ),
    ]


def row(kind: Kind, outcomes: Sequence[Outcome]) -> str:
    """The row of a kind."""
    found = [(each.load, each.ratio) for each in outcomes if each.load and each.ratio]
    loads, ratios = [load for load, _ in found], [ratio for _, ratio in found]
    kept = f"{sum(each.kept for each in outcomes)} of {len(outcomes)}"
    if not found:
        return f"| {kind.what} | | none | | {kept} |"
    truth = f"{median(load / ratio for load, ratio in found):,.0f}/s"
    spread = f"{min(loads):,.0f} to {max(loads):,.0f}/s"
    return f"| {kind.what} | {truth} | {spread} | {median(ratios):.3f} | {kept} |"


def measured(shop: Workshop, kinds: Sequence[Kind], times: int, jobs: int) -> Measured:
    """Search each kind so often; return the table, and the targets."""
    lines = [
        "| server | truth | loads found | median / truth | fresh runs that keep to the limit |",
        "|---|--:|---|--:|--:|",
    ]
    marked = []
    for kind in kinds:
        outcomes = []
        for seed, outcome in in_jobs(partial(search, shop, kind), range(times), jobs):
            print(f"{kind.name} {seed + 1}: {outcome.said}", file=sys.stderr, flush=True)
            outcomes.append(outcome)
        lines.append(row(kind, outcomes))
        marked += marks_of(kind, outcomes)
    return lines, marked


def _options() -> argparse.Namespace:
    names = [kind.name for kind in KINDS]
    parser = argparse.ArgumentParser(description="Searches for limits that are known.")
    parser.add_argument("--times", type=int, default=TIMES, help=f"searches of each kind ({TIMES})")
    parser.add_argument("--jobs", type=int, default=JOBS, help=f"searches at once ({JOBS})")
    parser.add_argument("--only", choices=names, action="append", help="one kind of server")
    return parser.parse_args()


def main() -> int:
    """Print the table; return 1 if a target is missed, 2 if nothing can be measured."""
    options = _options()
    times, jobs = options.times, options.jobs
    kinds = [kind for kind in KINDS if kind.name in (options.only or kind.name)]
    asked = f"`trueload http {' '.join(SEARCH)}`, {times} times for each server, then {FRESH_S} s"
    measure = partial(measured, kinds=kinds, times=times, jobs=jobs)
    return report(f"{asked} at the load found.", jobs, measure)


if __name__ == "__main__":
    sys.exit(main())
