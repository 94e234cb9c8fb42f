"""Conditions: what a user will not accept (``--fail-on``), or wants kept (``--limit``), as values.

Grammar: METRIC OPERATOR VALUE, several joined by ``and``. Metrics are ``p50`` ``p99`` ``p99.9``
(any percentile), ``min``, ``mean`` and ``max`` of the latency, ``throughput`` (requests that ended
well, per second) and ``errors`` (failed of issued). Operators are ``>`` ``>=`` ``<`` ``<=``. A
request that failed, stayed open or was never sent counts as slower than any: failing must never
look fast. One parser reads all of it; a ``Form`` says what a flag takes of it. Pure.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from trueload.errors import UserError
from trueload.record.schema import Record
from trueload.stats import decode_histogram, median, parse_percentile, quantile
from trueload.units import (
    format_count,
    format_duration,
    format_share,
    parse_duration,
    parse_rate,
    parse_share,
)

OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_ORDER = (">", ">=", "<", "<=")

_TOKENS = re.compile(r"(\s*)([A-Za-z][A-Za-z0-9.]*)?(\s*)(>=|<=|>|<)?(\s*)(.*)", re.DOTALL)
_AND = re.compile(r"(?:^|(?<=\s))and(?=\s|$)")
_LATENCIES = ("min", "mean", "max")


@dataclass(frozen=True)
class Form:
    """What a flag takes: which metrics, which operators, and values or ratios of two of them."""

    flag: str
    hint: str
    metrics: tuple[str, ...] = (*_LATENCIES, "throughput", "errors")
    below_only: bool = False
    ratio: bool = False


FAIL_ON = Form(
    "--fail-on", "write METRIC, > or <, VALUE: 'p99>20ms', 'throughput<50k/s', 'errors>0.1%'"
)
LIMIT = Form(
    "--limit",
    "write METRIC<VALUE: 'p99<10ms', 'p99<10ms and errors<0.1%'",
    metrics=(*_LATENCIES, "errors"),
    below_only=True,
)
RATIO = Form(
    "--fail-on",
    "write METRIC, > or <, RATIO of new to base: 'throughput<0.95', 'p99>1.2'",
    metrics=("mean", "throughput"),
    ratio=True,
)


@dataclass(frozen=True)
class Threshold:
    """One comparison. ``limit`` in ns, per second, as a share, or as a ratio."""

    text: str
    metric: str
    operator: str
    limit: float

    def holds(self, value: float) -> bool:
        """Whether it is true of a value in the limit's unit; never of one that is no number."""
        return OPERATORS[self.operator](value, self.limit)

    def shown(self, value: float) -> str:
        """A value of its metric, for people."""
        if self.metric == "throughput":
            return f"{format_count(value)}/s"
        if self.metric == "errors":
            return format_share(value)
        return "above everything measured" if math.isinf(value) else format_duration(value)


@dataclass(frozen=True)
class Condition:
    """Thresholds that must all hold."""

    text: str
    parts: tuple[Threshold, ...]


@dataclass(frozen=True)
class Crossed:
    """A condition that held, and the values that made it, in their units; inf where none was
    measured."""

    condition: Condition
    values: tuple[float, ...]

    def sentence(self) -> str:
        """For people: ``p99 is 31.0 ms, and --fail-on says p99>20ms``."""
        found = zip(self.condition.parts, self.values, strict=True)
        shown = " and ".join(f"{part.metric} is {part.shown(value)}" for part, value in found)
        return f"{shown}, and --fail-on says {self.condition.text}"


def parse_condition(text: str, form: Form = FAIL_ON) -> Condition:
    """Read an expression. Raises ``UserError`` that points at the character."""
    ands = list(_AND.finditer(text))
    starts = [0, *(found.end() for found in ands)]
    ends = [*(found.start() for found in ands), len(text)]
    parts = tuple(
        _parse_part(text, start, end, form) for start, end in zip(starts, ends, strict=True)
    )
    return Condition(text=text.strip(), parts=parts)


def _parse_part(text: str, start: int, end: int, form: Form) -> Threshold:
    match = _TOKENS.fullmatch(text, start, end)
    assert match is not None, "every part is optional"
    metric, symbol, value = match[2] or "", match[4] or "", match[6].rstrip()
    if not metric or not _is_metric(metric, FAIL_ON.metrics):
        why = f"'{metric}' is no metric" if metric else "a metric is missing"
        _refuse(text, match.end(1), why, form)
    if not is_metric(metric, form):
        _refuse(text, match.end(1), f"'{metric}' cannot be used here", form)
    allowed = ("<=", "<") if form.below_only else tuple(OPERATORS)
    if symbol not in allowed:
        why = f"one of {' '.join(sorted(allowed, key=_ORDER.index))} is missing"
        _refuse(text, match.end(3), why, form)
    try:
        limit = _parse_ratio(value) if form.ratio else _parse_limit(metric, value)
    except ValueError as error:
        _refuse(text, match.end(5), str(error) if value else "a value is missing", form)
    return Threshold(text=text[start:end].strip(), metric=metric, operator=symbol, limit=limit)


def crossed(conditions: Sequence[Condition], records: Sequence[Record]) -> list[Crossed]:
    """The conditions that hold of the median of the trials."""

    def middle(metric: str) -> float | None:
        return median([metric_value(metric, record) for record in records])

    return crossed_by(conditions, middle)


def crossed_by(
    conditions: Sequence[Condition], value_of: Callable[[str], float | None]
) -> list[Crossed]:
    """The conditions that hold of what ``value_of`` says of each metric; None holds nothing."""
    found = []
    for condition in conditions:
        values = [value_of(part.metric) for part in condition.parts]
        known = [value for value in values if value is not None]
        pairs = zip(condition.parts, known, strict=False)
        if len(known) == len(values) and all(part.holds(value) for part, value in pairs):
            found.append(Crossed(condition, tuple(known)))
    return found


def metric_value(metric: str, record: Record) -> float:
    """One metric of one record: ns, per second, or a share. inf for a latency that nobody knows."""
    counts = record.counts
    failed = sum(counts.failed.values())
    if metric == "throughput":
        return record.throughput.ok_per_s or 0.0
    if metric == "errors":
        return failed / counts.issued if counts.issued else 1.0
    worse = failed + counts.cancelled + counts.unsent
    if metric in ("mean", "max") and (worse or record.latency_ns.max is None):
        return math.inf
    if metric in _LATENCIES:
        value = getattr(record.latency_ns, metric)
        return math.inf if value is None else float(value)
    share = parse_percentile(metric)
    assert share is not None, metric
    at = quantile(decode_histogram(record.histograms.latency), share, worse)
    return math.inf if at.above or at.value is None else float(at.value)


def is_metric(metric: str, form: Form) -> bool:
    """Whether a flag takes a metric of that name."""
    return _is_metric(metric, form.metrics)


def _is_metric(metric: str, named: Sequence[str]) -> bool:
    return metric in named or parse_percentile(metric) is not None


def _parse_limit(metric: str, value: str) -> float:
    if metric == "throughput":
        return parse_rate(value)
    if metric == "errors":
        return parse_share(value)
    return float(parse_duration(value))


def _parse_ratio(value: str) -> float:
    if re.fullmatch(r"\d+(\.\d+)?", value, re.ASCII) is None:
        raise ValueError(f"'{value}' is not a ratio: ratios are like 0.95")
    return float(value)


def _refuse(text: str, at: int, why: str, form: Form) -> NoReturn:
    shown = text.rstrip()
    pointer = f"at character {at + 1}" if at < len(shown) else "at its end"
    raise UserError(f"{form.flag} '{text}', {pointer}: {why}", form.hint)
