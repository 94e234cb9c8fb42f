"""The throughput of a window, its standard error, and the tail of a run by count.

The rule (docs/method.md): in a closed loop an answer counts with the share of its time that
lies in the window. So a window that is no multiple of that time has as many answers per second as
one that is. An open loop that asks evenly has as many answers cut at one edge as at the other, and
what is read in the window counts. One whose rate changes has all answers to its schedule counted,
unless a queue has grown by its end. If a load begins with the window, its beginning is left out:
all requests begin at once then, and the short ones are answered first. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from trueload.protocol.flow import Backlog, Flow
from trueload.protocol.plan import Duration, LoadPlan, Measurement, Open, Phase, Turns
from trueload.record.schema import Record, Tail, Throughput
from trueload.stats import Distribution
from trueload.units import NS_PER_S

# Two mean times after a common start, requests with exponentially distributed times are answered
# within 1 % of their long-run rate (the renewal function). By then each slot of a queue has been
# answered at least once.
FILLING = 2.0
FILLING_MOST = 0.75  # of the window; the rest still says more than nothing
BLOCKS, BLOCKS_MIN = 32, 8
LAG_MOST = 0.02  # of a schedule: throughput is off by no more then
LAG_CHANCE = 3.0  # standard errors between the mean times of two quarters
LAG_SPREAD = 2.0  # a standard deviation, of the mean: more is the work of a queue
STEADY_MIN = 10  # answers of a quarter: fewer say nothing of the next
STEADY_CHANCE = 2.0  # standard errors between the answers of two quarters
TAIL_SHARE = 0.5  # requests that took more than this share of the tail are the last


@dataclass(frozen=True)
class Stretch:
    """The part of a window that counts, in ns since its start, and its answers in equal parts; the
    last part may be shorter."""

    from_ns: float
    to_ns: float
    part_ns: float
    counts: tuple[float, ...]

    @property
    def total(self) -> float:
        return math.fsum(self.counts)

    @property
    def per_s(self) -> float:
        """Answers per second."""
        ns = self.to_ns - self.from_ns
        return self.total * NS_PER_S / ns if ns > 0 else 0.0


def stretch_of(
    counts: Sequence[float], part_ns: int, from_ns: float, to_ns: float, exact: bool
) -> Stretch:
    """The answers from the first part that begins at ``from_ns`` or later, to ``to_ns``. With
    ``exact`` the last part has nothing behind ``to_ns``; else only a share of it counts."""
    first, last = math.ceil(from_ns / part_ns), int(to_ns // part_ns)
    within = [*counts, *(0.0 for _ in range(last + 1 - len(counts)))][first : last + 1]
    if within and not exact:
        within[-1] *= to_ns / part_ns - last
    return Stretch(min(first * part_ns, to_ns), to_ns, part_ns, tuple(within))


def filling_ns(took_ns: float, warmup: Phase | None, window_ns: float) -> float:
    """How much of a window passes before a load is in steady flow that began with the window, or
    shortly before it."""
    before_ns = 0.0
    if warmup is not None:
        before_ns = warmup.stop.ns if isinstance(warmup.stop, Duration) else math.inf
    return min(max(0.0, FILLING * took_ns - before_ns), FILLING_MOST * window_ns)


def is_even(load: LoadPlan) -> bool:
    """Whether an open loop asks at one rate all the time."""
    return isinstance(load, Open) and len({r for s in load.stages for r in (s.from_, s.to)}) == 1


def pipe_ns(backlog: Backlog) -> float:
    """Time that the first answers of an open loop took, extrapolated from the latencies of the
    first two quarters of its schedule. In a growing queue the first quarter's own ones are longer.
    """
    first, second = (
        ns / count if count else 0.0
        for ns, count in zip(backlog.latency_sum_ns[:2], backlog.answered[:2], strict=True)
    )
    return min(first, max(0.0, first - (second - first) / 2)) if second else first


def lag_ns(backlog: Backlog, spread_ns: float) -> float:
    """How far a server lags behind at the end of a schedule: by how much longer the last quarter's
    requests took than those of the quickest, beyond chance, in ns. What only fills a pipe takes no
    longer. ``spread_ns`` is the standard deviation of a time. inf if none of the last was answered.
    """
    quarters = list(zip(backlog.latency_sum_ns, backlog.answered, strict=True))
    last_ns, last = quarters[-1]
    if not last:
        return math.inf
    least_ns, least = min((ns / count, count) for ns, count in quarters if count)
    spread_ns = min(spread_ns, LAG_SPREAD * least_ns)
    chance_ns = LAG_CHANCE * spread_ns * math.sqrt(1 / last + 1 / least)
    return max(0.0, last_ns / last - least_ns - chance_ns)


def of_closed(flow: Flow, took_ns: float, warmup: Phase | None) -> Stretch:
    """The part that counts of a closed loop, or of turns: the window's work without its start."""
    skipped_ns = filling_ns(took_ns, warmup, flow.whole_ns)
    work = flow.work
    return stretch_of(work.answers, work.part_ns, skipped_ns, flow.whole_ns, exact=True)


def of_open(flow: Flow, load: LoadPlan, ok: int, spread_ns: float = 0.0) -> tuple[Stretch, float]:
    """The part that counts of an open loop, and its answers per second. ``spread_ns`` is the
    standard deviation of a time.

    If the rate changes, what is under way at one end says nothing of the other. So all answers to
    the schedule count (``ok``) over its time. If the server lags behind at its end, they do not:
    they are as many as were asked for, whatever the server carries.

    While the first requests are under way nothing can be answered. If fewer requests than that were
    open at the start, all answers to the schedule count, too, unless the server lags behind. Then
    answers to requests of the window are counted, over the time in which there can be any.
    """
    whole = stretch_of(flow.answered, flow.part_ns, 0.0, flow.whole_ns, exact=False)
    backlog, per_s = flow.backlog, whole.per_s
    if backlog is None:
        return whole, per_s
    lags = lag_ns(backlog, spread_ns) > LAG_MOST * flow.whole_ns
    counted = ok * NS_PER_S / flow.whole_ns
    if not is_even(load):
        return whole, per_s if lags else counted
    first_ns = pipe_ns(backlog)
    if per_s and backlog.at_start >= per_s * first_ns / NS_PER_S:
        return whole, per_s
    if lags and first_ns <= FILLING_MOST * flow.whole_ns:
        left_ns = flow.whole_ns - first_ns
        # Requests that were never sent count for nothing.
        counted = min(counted, max(0.0, whole.total - backlog.at_start) * NS_PER_S / left_ns)
    chance = LAG_CHANCE * math.sqrt(whole.total) * NS_PER_S / flow.whole_ns
    return whole, counted if counted <= per_s + chance else min(counted, steady_per_s(whole))


def steady_per_s(whole: Stretch) -> float:
    """The most answers per second that a window without a pipe can stand for; inf if one fills.

    A server that answers some connections at once and leaves the others waiting has long times
    from the beginning, as a pipe has. In a pipe that fills, answers become more from quarter to
    quarter. Where the last has no more than the first, beyond chance, the window's own rate counts;
    where they have become more, but do so no longer, that of the best quarter and what chance adds.
    """
    parts, each = whole.counts, len(whole.counts) // 4
    if not each:
        return math.inf
    quarters = [sum(parts[at * each : (at + 1) * each]) for at in range(4)]
    first, _, third, last = quarters
    if third >= STEADY_MIN and not _is_more(last, first):
        return whole.per_s
    if third < STEADY_MIN or _is_more(last, third):
        return math.inf
    most = max(quarters)
    return (most + LAG_CHANCE * math.sqrt(most)) * NS_PER_S / (each * whole.part_ns)


def _is_more(now: float, before: float) -> bool:
    """Whether a count of answers is larger than another beyond chance."""
    return now > before + STEADY_CHANCE * math.sqrt(now + before)


def standard_error(found: Stretch, took: Distribution) -> float | None:
    """How far off the answers per second may be, as a standard deviation.

    It comes from successive differences of blocks that are longer than an answer takes on average
    (von Neumann 1941). It is widened if blocks two apart differ more than neighbours, because they
    depend on each other then. With fewer than eight such blocks requests are assumed to be
    independent. Then n of them vary by the square root of n times their coefficient of variation
    (renewal theory), and each request that an edge cuts has a share between none and all.
    """
    mean_ns = took.mean or 0.0
    width = max(1, math.ceil(mean_ns / found.part_ns), len(found.counts) // BLOCKS)
    rates = [
        sum(found.counts[at : at + width]) * NS_PER_S / (width * found.part_ns)
        for at in range(0, len(found.counts) - width, width)  # the last part may be short
    ]
    if len(rates) >= BLOCKS_MIN:
        return math.sqrt(_variance(rates) / len(rates))
    if found.total <= 0 or mean_ns <= 0:
        return None
    varies = ((took.stdev or 0.0) / mean_ns) ** 2
    cut = found.per_s * mean_ns / NS_PER_S / 6  # two edges, and 1/12 for the shares of each
    return found.per_s * math.sqrt(found.total * varies + cut) / found.total


def _variance(rates: Sequence[float]) -> float:
    """The variance that one rate contributes to their mean. It comes from the differences of
    neighbours, and is larger if rates two apart differ more. Neighbours are correlated then, and
    their correlation is assumed to fade by the same factor with each step."""
    near, far = (_half_square(rates, apart) for apart in (1, 2))
    correlation = min(0.5, max(0.0, far / near - 1)) if near else 0.0
    return near * (1 + correlation) / (1 - correlation) ** 2


def _half_square(rates: Sequence[float], apart: int) -> float:
    pairs = list(zip(rates, rates[apart:], strict=False))
    return sum((two - one) ** 2 for one, two in pairs) / (2 * len(pairs))


def make_throughput(
    measured: Measurement, window: Phase, warmup: Phase | None, took: Distribution
) -> Throughput:
    """A window's answers and bytes per second. ``took`` are the times of its answers: from the
    send, or, if each has a connection of its own, from the attempt to connect."""
    flow, counts = measured.flow, measured.counts
    window_s = measured.window_ns / NS_PER_S
    totals = {"bytes_in": measured.bytes_in, "bytes_out": measured.bytes_out}
    is_open = isinstance(window.load, Open)
    known = flow is not None and (counts.ok if is_open else any(flow.work.answers))
    if flow is None or not known or flow.whole_ns <= 0:
        return Throughput(
            ok_per_s=counts.ok / window_s,
            bytes_in_per_s=measured.bytes_in / window_s,
            bytes_out_per_s=measured.bytes_out / window_s,
            **totals,
        )
    if is_open:
        found, per_s = of_open(flow, window.load, counts.ok, took.stdev or 0.0)
        out_per_s = measured.bytes_out / window_s
    else:
        found = of_closed(flow, took.mean or 0.0, warmup)
        # Answers that turned out to have failed are taken back, and may leave a remainder.
        per_s = found.per_s if counts.ok else 0.0
        # Whatever is sent in a burst at an edge of the window, each answer takes one request.
        in_window = counts.ok or found.per_s * window_s
        out_per_s = measured.bytes_out / in_window * found.per_s
    return Throughput(
        ok_per_s=per_s,
        bytes_in_per_s=measured.bytes_in / max(1, flow.came) * per_s,
        bytes_out_per_s=out_per_s,
        ok_error_per_s=standard_error(found, took),
        counted_from_ns=round(found.from_ns),
        counted_to_ns=round(found.to_ns),
        **totals,
    )


def make_tail(measured: Measurement, window: Phase) -> Tail | None:
    """What was left to do after the part that counts of a run by count; None if nothing."""
    flow = measured.flow
    if flow is None or isinstance(window.stop, Duration) or isinstance(window.load, Turns):
        return None
    ns = measured.window_ns - flow.whole_ns
    if ns <= 0:
        return None
    late_ns = flow.whole_ns + ns * TAIL_SHARE
    ok = sum(flow.answered[math.ceil(late_ns / flow.part_ns) :])
    # Failures are known only by the second, which is precise enough for time-outs.
    bad = sum(second.failed for second in measured.series if second.t_s * NS_PER_S >= late_ns)
    return Tail(ns=ns, last=max(1, ok + bad))


def bytes_moved(record: Record) -> tuple[int, int]:
    """Bytes in and out, from the window's start to the end of its drain; for older records,
    computed from their rates."""
    found, window_s = record.throughput, record.window.window_ns / NS_PER_S
    if found.bytes_in is not None and found.bytes_out is not None:
        return found.bytes_in, found.bytes_out
    return (
        round((found.bytes_in_per_s or 0.0) * window_s),
        round((found.bytes_out_per_s or 0.0) * window_s),
    )
