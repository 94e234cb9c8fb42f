"""Better, worse or the same: two runs compared row by row.

Strategy: the records of each run are grouped into rows that mean the same on both sides (subject,
variant, load); each metric of a row becomes the ratio of the medians, new to base, with where it
lies. From six repetitions a side on that is a bootstrap interval, below the range of the ratios;
with one trial a side it is what is known within the runs, which says nothing of how two equal runs
differ: there a difference counts only beyond ``BETWEEN_RUNS``. Pure.

Must not know: the store, files, how a comparison is shown.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from trueload.distance import moved_between_text
from trueload.plan import Closed, Open, RequestPlan, Stage
from trueload.record import Record
from trueload.stats import (
    coefficient_of_variation,
    decode_histogram,
    median,
    parse_percentile,
    rank_interval,
    ratio,
    ratio_interval,
)
from trueload.thresholds import Condition, Crossed, crossed_by, metric_value
from trueload.units import format_count
from trueload.verdict import decide, worst_checks

METRICS = ("throughput", "mean", "p50", "p75", "p90", "p95", "p99", "p99.9")
HIGHER_IS_BETTER = frozenset({"throughput"})

# Within a run even a steady server drifts by as much (`steady-state` lets 5 % pass): of single
# trials less than this is not called a difference.
BETWEEN_RUNS = 0.05
PATH_SHOWN = 60  # characters: a note is one line

# Nobody can call the same what may be a fifth less or a quarter more: the margins of
# bioequivalence (FDA, Statistical Approaches to Establishing Bioequivalence, 2001).
SAME_LOW, SAME_HIGH = 0.80, 1.25

# Two ranges that do not overlap may have come so by chance: of n and m equal trials in 2 of
# (n + m over n) orders (the extreme of Wilcoxon's rank sum). More often than this is no finding.
CHANCE_MAX = 0.05

NORMAL_975 = 1.96  # of the normal distribution, two-sided 95 %
SAMPLES_MIN = 5  # seconds of a window, or answers, from which a deviation tells anything

Word = Literal["better", "worse", "same", "unclear"]
Kind = Literal["95 % interval", "range", "within the runs"]


@dataclass(frozen=True)
class Within:
    """Where a ratio lies, and by what."""

    low: float
    high: float
    kind: Kind


@dataclass(frozen=True)
class Ratio:
    """One metric of one row. Values in ns or per second, inf where nobody knows; ``ratio`` is new
    to base, None where there is none; ``cv`` of each side from two trials on."""

    metric: str
    base: float
    new: float
    ratio: float | None
    within: Within | None
    word: Word
    base_cv: float | None
    new_cv: float | None


@dataclass(frozen=True)
class RowCompared:
    """One row, with the verdict of both sides: the worst of its trials'."""

    name: str
    base_verdict: str
    new_verdict: str
    base_trials: int
    new_trials: int
    ratios: tuple[Ratio, ...]

    @property
    def verdict(self) -> str:
        """The worse of both."""
        order = ("invalid", "suspect", "valid")
        return min(self.base_verdict, self.new_verdict, key=order.index)


@dataclass(frozen=True)
class Comparison:
    """Rows that both runs have, names of those that only one has, and what to know of it."""

    rows: tuple[RowCompared, ...]
    only_base: tuple[str, ...]
    only_new: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class CrossedRow:
    """A condition that holds of a row."""

    row: str
    crossed: Crossed

    def sentence(self) -> str:
        """For people: ``throughput is 0.91 of the base, and --fail-on says throughput<0.95``."""
        found = zip(self.crossed.condition.parts, self.crossed.values, strict=True)
        shown = " and ".join(f"{part.metric} is {value:.3f} of the base" for part, value in found)
        name = f"{self.row}: " if self.row else ""
        return f"{name}{shown}, and --fail-on says {self.crossed.condition.text}"


Groups = Mapping[str, Sequence[Record]]


def compare(base: Groups, new: Groups, metrics: Sequence[str] = METRICS) -> Comparison:
    """Row by row, by name: a run has them in an order of chance."""
    both = sorted((name for name in new if name in base), key=_by_number)
    return Comparison(
        rows=tuple(_row(name, base[name], new[name], metrics) for name in both),
        only_base=tuple(sorted((name for name in base if name not in new), key=_by_number)),
        only_new=tuple(sorted((name for name in new if name not in base), key=_by_number)),
        notes=(
            *(
                f"{name + ': ' if name else ''}{note}"
                for name in both
                for note in _notes(base[name][0], new[name][0])
            ),
            *_moved([base[name] for name in both], [new[name] for name in both]),
        ),
    )


def _moved(base: Sequence[Sequence[Record]], new: Sequence[Sequence[Record]]) -> list[str]:
    """Whether the CPUs were elsewhere on one side, or in a part of a side."""
    sides = ([record.cpu_distance for row in rows for record in row] for rows in (base, new))
    text = moved_between_text(*sides)
    return [text] if text else []


def _notes(base: Record, new: Record) -> Iterator[str]:
    """What a reader has to know of a row before its ratios."""
    old, now = _load(base), _load(new)
    if old != now:
        yield f"the loads differ: {old} against {now}"
    if _question(base) != _question(new):
        old, now = _question_text(base), _question_text(new)
        how = f": {old} against {now}" if old != now else " in headers, bodies or weights"
        yield f"what is asked differs{how}"


def _question(record: Record) -> object:
    """What is asked, but not of whom: two servers may be compared by it."""
    generate = record.plan.generate
    if record.client is not None or generate.exchange is not None:
        return _question_text(record)
    if generate.request is None:
        return [(target.weight, _request(target.request)) for target in generate.targets]
    return _request(generate.request), bool(generate.tls)


def _request(request: RequestPlan) -> object:
    own = tuple(pair for pair in request.headers if pair[0].lower() != "host")
    return request.method, request.path, own, request.body_sha256, request.template


def _question_text(record: Record) -> str:
    generate = record.plan.generate
    if record.client is not None:
        return "by clients"
    if generate.exchange is not None:
        return f"{generate.exchange.kind} of {record.plan.payload_bytes} bytes".replace("_", " ")
    if generate.request is None:
        return f"{len(generate.targets)} targets"
    path = generate.request.path
    shown = path if len(path) <= PATH_SHOWN else f"{path[:PATH_SHOWN]}…"
    return f"{generate.request.method} {shown}{' over TLS' if generate.tls else ''}"


def _by_number(name: str) -> list[tuple[int, str]]:
    """A key by which 8 connections come before 16."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", name)]


def _load(record: Record) -> str:
    generate, load = record.plan.generate, record.plan.window.load
    if record.client is not None:
        return f"a wait of {record.client.asked.wait_ms} ms"  # the rest is in the row's name
    parts = [f"{generate.connections} connections"]
    if generate.pipeline > 1:
        parts.append(f"pipeline {generate.pipeline}")
    if generate.close:
        parts.append("one per request")
    parts += [_stage(stage, "/s") for stage in load.stages] if isinstance(load, Open) else []
    parts += [_stage(stage, " active") for stage in load.active] if isinstance(load, Closed) else []
    return f"{load.kind} loop, " + ", ".join(parts)


def _stage(stage: Stage, unit: str) -> str:
    ramp = f" to {format_count(stage.to)}{unit}" if stage.to != stage.from_ else ""
    return f"{format_count(stage.from_)}{unit}{ramp}"


def crossed_rows(comparison: Comparison, conditions: Sequence[Condition]) -> list[CrossedRow]:
    """The conditions that the ratios of a row make true; a ratio that nobody knows makes none."""
    found = []
    for row in comparison.rows:
        known = {each.metric: each.ratio for each in row.ratios}
        found += [CrossedRow(row.name, each) for each in crossed_by(conditions, known.get)]
    return found


def with_metrics(conditions: Sequence[Condition]) -> tuple[str, ...]:
    """The metrics to compare: the usual ones, and those that a condition names."""
    named = [part.metric for condition in conditions for part in condition.parts]
    return tuple(dict.fromkeys((*METRICS, *named)))


# What is known of a client without its own word.
OF_CLIENTS = ("throughput", "errors")


def _row(
    name: str, base: Sequence[Record], new: Sequence[Record], metrics: Sequence[str]
) -> RowCompared:
    if base[0].client is not None:
        metrics = [metric for metric in metrics if metric in OF_CLIENTS]
    return RowCompared(
        name=name,
        base_verdict=decide(worst_checks(base)),
        new_verdict=decide(worst_checks(new)),
        base_trials=len(base),
        new_trials=len(new),
        ratios=tuple(compare_metric(metric, base, new) for metric in metrics),
    )


def compare_metric(metric: str, base: Sequence[Record], new: Sequence[Record]) -> Ratio:
    """One metric of two sides, at least a record each."""
    olds = [metric_value(metric, record) for record in base]
    news = [metric_value(metric, record) for record in new]
    old, now = median(olds), median(news)
    assert old is not None, "there is a record"
    assert now is not None, "there is a record"
    found = ratio(now, old)
    if len(olds) > 1 or len(news) > 1:
        across = ratio_interval(olds, news)
        within = Within(across.low, across.high, across.kind) if across else None
    else:
        within = _within_runs(metric, base[0], new[0])
    return Ratio(
        metric=metric,
        base=old,
        new=now,
        ratio=found,
        within=within,
        word=word_of(metric, found, within, 2 / math.comb(len(olds) + len(news), len(olds))),
        base_cv=coefficient_of_variation(olds),
        new_cv=coefficient_of_variation(news),
    )


def word_of(metric: str, found: float | None, within: Within | None, chance: float = 0.0) -> Word:
    """What a ratio means. The same: 1 is not outside of where it lies, and that is narrow; unclear:
    it is wide, or 1 is outside, but so few trials would fall so with more than ``CHANCE_MAX`` if
    there were no difference."""
    if found is None:
        return "unclear"
    if math.isinf(found) or found == 0:  # one side has an answer, the other none
        more = math.isinf(found)
    elif within is None:
        return "unclear"
    else:
        slack = BETWEEN_RUNS if within.kind == "within the runs" else 0.0
        if within.low <= 1 <= within.high or abs(found - 1) <= slack:
            return "same" if within.low >= SAME_LOW and within.high <= SAME_HIGH else "unclear"
        if within.kind == "range" and chance > CHANCE_MAX:
            return "unclear"
        more = found > 1
    return "better" if more == (metric in HIGHER_IS_BETTER) else "worse"


def _within_runs(metric: str, base: Record, new: Record) -> Within | None:
    """The widest ratio of what two single trials leave open: by rank for a percentile, by the
    seconds of the window for throughput; None where they are too short to tell."""
    old, now = _span(metric, base), _span(metric, new)
    if old is None or now is None or old[0] <= 0:
        return None
    return Within(now[0] / old[1], now[1] / old[0], "within the runs")


def _span(metric: str, record: Record) -> tuple[float, float] | None:
    share = parse_percentile(metric)
    if share is not None:
        counts = record.counts
        worse = sum(counts.failed.values()) + counts.cancelled + counts.unsent
        return rank_interval(decode_histogram(record.histograms.latency), share, worse)
    value = metric_value(metric, record)
    count, deviation = _samples(metric, record)
    if count < SAMPLES_MIN or not math.isfinite(value) or value <= 0:
        return None
    half = NORMAL_975 * deviation / math.sqrt(count)
    return max(0.0, value - half), value + half


def _samples(metric: str, record: Record) -> tuple[int, float]:
    """How many values a mean is of, and their standard deviation."""
    if metric == "mean":
        return record.latency_ns.count, record.latency_ns.stdev or 0.0
    per_s = [second.ok / second.width_s for second in record.whole_seconds()]
    cv = coefficient_of_variation(per_s)
    return (len(per_s), cv * math.fsum(per_s) / len(per_s)) if cv is not None else (0, 0.0)
