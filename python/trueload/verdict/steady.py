"""The check `steady-state`: would another stretch of the same window have given the same figure?

How: answers are counted in some 32 parts of the window. Every stretch of two parts to half of them
is left out in turn. If the throughput of the rest is another one, by more than chance explains, the
figure depends on when one looks. So a slow start, a slow middle, a pause and a slope are all seen:
quarters and steps between any two parts are such stretches. What chance explains is told by the
differences of successive parts, which a trend hardly enters (J. von Neumann, *Distribution of the
ratio of the mean square successive difference to the variance*, 1941). Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from trueload.protocol.plan import Closed, Flow
from trueload.record.schema import Record
from trueload.units import NS_PER_S, format_count, format_duration, format_rate
from trueload.verdict.common import Definition, Finding, graded_beyond, is_staged, not_applicable
from trueload.verdict.throttling import TURN_NS

PARTS, PARTS_MIN = 32, 20
ANSWERS_MIN = 10  # in a part, on average: fewer are a matter of chance
STRETCH_MIN = 2  # parts
# A rate that is 5 % off because the window began too early is another rate, and a longer warm-up is
# the cure. Later a machine that others share changes its speed by as much, and there is no cure; a
# server that slows down or pauses does more. The last is what halves that differ by 50 % do to each
# other's mean.
START_WARN, LATER_WARN, STEADY_FAIL = 0.05, 0.10, 0.25
# Of 10,000 simulated steady runs at most 1 % have a stretch beyond so many standard errors, where
# successive parts have a correlation of 0 to 0.5 (docs/method.md, `steady-state`).
STANDARD_ERRORS = 6.0
CORRELATION_MOST = 0.5  # a trend looks like correlation, too
SPREAD_LEAST = 1e-6  # of the mean: parts that are all the same have a spread, too
EDGES = 2  # of a pause: the differences over them are no chance
# Before answers come as fast as requests go out, those of the first requests must have come.
FILLING = 2.0  # mean service times, without a warm-up


@dataclass(frozen=True)
class Stretch:
    """Parts ``first`` to ``end`` of a window of ``count``: the mean rates in it and outside, and by
    how many standard errors these differ."""

    first: int
    end: int
    count: int
    inside: float
    outside: float
    errors: float

    def effect(self, mean: float) -> float:
        """By how much the mean of all differs from that of the rest; inf where the rest has
        none."""
        return abs(mean / self.outside - 1) if self.outside else math.inf

    @property
    def limit(self) -> float:
        """The effect above which it is told."""
        slower = self.inside < self.outside
        began_slowly = self.first == 0 if slower else self.end == self.count
        return START_WARN if began_slowly else LATER_WARN

    @property
    def worth(self) -> float:
        """How many parts' work was done less in it, or more."""
        faster = max(self.inside, self.outside)
        return (self.end - self.first) * abs(self.inside - self.outside) / faster if faster else 0.0


def check_steady_state(record: Record) -> Finding:
    """The stretch of the window that differs from the rest, and what it does to the whole."""
    if is_staged(record):
        return not_applicable("the load itself changes (--stages)")
    flow = record.flow
    if flow is None:
        return not_applicable("it is not known when answers came")
    skipped_ns = _filling_ns(record)
    rates, part_ns = rates_by_part(flow, skipped_ns)
    if len(rates) < PARTS_MIN:
        return not_applicable(_too_few(flow, skipped_ns))
    mean = sum(rates) / len(rates)
    at_once, turn = _at_once(record) * NS_PER_S / part_ns, TURN_NS / part_ns
    found = largest_change(rates, at_once, turn)
    if found is None:
        return Finding("pass", f"{format_rate(mean, 'requests')} throughout", 0.0, START_WARN)
    effect = found.effect(mean)
    status, limit = graded_beyond(effect, found.limit, STEADY_FAIL)
    from_ns, to_ns = (skipped_ns + part_ns * at for at in (found.first, found.end))
    why = (
        f"{format_rate(found.inside, 'requests')} from {format_duration(from_ns)} to"
        f" {format_duration(to_ns)}, {format_count(found.outside)}/s in the rest of the window"
    )
    return Finding(status, why, min(effect, 1.0), limit)


STEADY_STATE = Definition(
    name="steady-state",
    order=130,
    compute=check_steady_state,
    fault="subject",
    meaning="A figure of a run that still changes depends on when one looks.",
    remedy=(
        "Use a longer --warmup; if it still changes, look at the server's memory and the machine."
    ),
)


def rates_by_part(flow: Flow, skipped_ns: float = 0.0) -> tuple[list[float], float]:
    """Answers per second in parts of equal length, 32 to 39 where there are enough answers, and how
    long a part is. The last stretch of the window that fills none is left out."""
    skipped = math.ceil(skipped_ns / flow.part_ns)
    whole = flow.whole_ns // flow.part_ns
    counts = list(flow.answered[skipped:whole])
    counts += [0] * (whole - skipped - len(counts))
    wanted = min(PARTS, sum(counts) // ANSWERS_MIN)
    if wanted < PARTS_MIN:
        return [], 0.0
    width = max(1, len(counts) // wanted)
    part_ns = width * flow.part_ns
    starts = range(0, len(counts) - width + 1, width)
    return [sum(counts[at : at + width]) * NS_PER_S / part_ns for at in starts], part_ns


def largest_change(
    rates: Sequence[float], at_once: float = 0.0, turn: float = 0.0
) -> Stretch | None:
    """Of the stretches that matter the one that is farthest from the rest; None where chance
    explains them all. As much as ``at_once`` may fall on either side of an edge of a part; the work
    of ``turn`` parts may be missing because a thread waited for its turn."""
    found = (each for each in _stretches(rates, at_once) if each.errors > STANDARD_ERRORS)
    mean = sum(rates) / len(rates)
    telling = [each for each in found if each.effect(mean) > each.limit and each.worth > turn]
    return max(telling, key=lambda each: each.errors, default=None)


def _stretches(rates: Sequence[float], at_once: float) -> Iterator[Stretch]:
    """All of them."""
    count, sums = len(rates), list(accumulate(rates, initial=0.0))
    spread = max(spread_of(rates), SPREAD_LEAST * sums[-1] / count)
    for first in range(count):
        for end in range(first + STRETCH_MIN, min(count, first + count // 2) + 1):
            parts, left = end - first, count - (end - first)
            inside = (sums[end] - sums[first]) / parts
            outside = (sums[-1] - sums[end] + sums[first]) / left
            share = 1 / parts + 1 / left
            apart = max(0.0, abs(inside - outside) - at_once * share)
            errors = apart / (spread * math.sqrt(share))
            yield Stretch(first, end, count, inside, outside, errors)


def spread_of(rates: Sequence[float]) -> float:
    """The standard deviation of a part that gives a mean of many its standard error: by the
    differences of successive parts, and by how much more those differ that are two apart. If parts
    have a correlation r with the one before, the mean square differences are as 1 to 1 + r, and
    the variance of means is (1 + r) / (1 - r)^2 times that which the first ones give."""
    near, far = _half_square(rates, 1), _half_square(rates, 2)
    correlation = min(CORRELATION_MOST, max(0.0, far / near - 1)) if near else 0.0
    return math.sqrt(near * (1 + correlation)) / (1 - correlation)


def _half_square(rates: Sequence[float], apart: int) -> float:
    """Half the mean square difference of parts that are so far apart, less those over two edges."""
    squares = sorted((two - one) ** 2 for one, two in zip(rates, rates[apart:], strict=False))
    count = len(rates)
    # By so much the largest differences of normal noise raise the sum: within 1 % of simulated
    # values for 20 to 48 parts.
    factor = 1 + (14 / count if apart == 1 else 26 / (count - 5.5))
    return factor * sum(squares[: -EDGES * apart]) / (2 * len(squares))


def _at_once(record: Record) -> int:
    """Answers that may come together: one of each slot, where slots keep step in a closed loop."""
    generate = record.plan.generate
    closed = isinstance(record.plan.window.load, Closed)
    return generate.connections * generate.pipeline if closed and record.client is None else 0


def _filling_ns(record: Record) -> float:
    """For how long no answer can come though all goes well: without a warm-up, the first ones."""
    if record.plan.warmup is not None or record.client is not None:
        return 0.0
    return FILLING * (record.service_ns.mean or 0.0)


def _too_few(flow: Flow, skipped_ns: float) -> str:
    """Why a window has too few parts."""
    least = PARTS_MIN * ANSWERS_MIN
    if sum(flow.answered) < least:
        return f"{format_count(sum(flow.answered))} answers are too few to tell; it takes {least}"
    why = f"a window of {format_duration(flow.whole_ns)} is too short to tell"
    if skipped_ns:
        why += f", as the first answers are still due for {format_duration(skipped_ns)}"
    return why
