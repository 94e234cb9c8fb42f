"""``--fail-on 'p99>20ms'``: what a user will not accept, as a value.

Grammar: METRIC OPERATOR VALUE. Metrics are ``p50`` ``p99`` ``p99.9`` (any percentile), ``min``,
``mean`` and ``max`` of the latency, ``throughput`` (requests that ended well, per second) and
``errors`` (failed of issued). Operators are ``>`` ``>=`` ``<`` ``<=``. A request that failed,
stayed open or was never sent counts as slower than any: failing must never look fast. Pure.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from trueload.errors import UserError
from trueload.record import Record
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
HINT = "write METRIC, > or <, VALUE: 'p99>20ms', 'throughput<50k/s', 'errors>0.1%'"

_TOKENS = re.compile(r"(\s*)([A-Za-z][A-Za-z0-9.]*)?(\s*)(>=|<=|>|<)?(\s*)(.*)", re.DOTALL)
_LATENCIES = ("min", "mean", "max")


@dataclass(frozen=True)
class Threshold:
    """A condition under which the command fails. ``limit`` in ns, per second, or as a share."""

    text: str
    metric: str
    operator: str
    limit: float


@dataclass(frozen=True)
class Crossed:
    """A threshold and the value that crossed it, in its unit; inf where none was measured."""

    threshold: Threshold
    value: float

    def sentence(self) -> str:
        """For people: ``p99 is 31.0 ms, and --fail-on says p99>20ms``."""
        return (
            f"{self.threshold.metric} is {self._shown()}, and --fail-on says {self.threshold.text}"
        )

    def _shown(self) -> str:
        if self.threshold.metric == "throughput":
            return f"{format_count(self.value)}/s"
        if self.threshold.metric == "errors":
            return format_share(self.value)
        if math.isinf(self.value):
            return "above everything measured"
        return format_duration(self.value)


def parse_threshold(text: str) -> Threshold:
    """Read one expression. Raises ``UserError`` that points at the character."""
    match = _TOKENS.fullmatch(text)
    assert match is not None, "every part is optional"
    metric, symbol, value = match[2] or "", match[4] or "", match[6]
    if not _is_metric(metric):
        _refuse(text, match.end(1), f"'{metric}' is no metric" if metric else "a metric is missing")
    if not symbol:
        _refuse(text, match.end(3), "one of > >= < <= is missing")
    try:
        limit = _parse_limit(metric, value)
    except ValueError as error:
        _refuse(text, match.end(5), str(error) if value.strip() else "a value is missing")
    return Threshold(text=text, metric=metric, operator=symbol, limit=limit)


def crossed(thresholds: Sequence[Threshold], records: Sequence[Record]) -> list[Crossed]:
    """The thresholds that the median of the trials crosses."""
    found = []
    for threshold in thresholds:
        value = median([metric_value(threshold.metric, record) for record in records])
        if value is not None and OPERATORS[threshold.operator](value, threshold.limit):
            found.append(Crossed(threshold, value))
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


def _is_metric(metric: str) -> bool:
    named = (*_LATENCIES, "throughput", "errors")
    return metric in named or parse_percentile(metric) is not None


def _parse_limit(metric: str, value: str) -> float:
    if metric == "throughput":
        return parse_rate(value)
    if metric == "errors":
        return parse_share(value)
    return float(parse_duration(value))


def _refuse(text: str, at: int, why: str) -> NoReturn:
    shown = text.rstrip()
    pointer = f"at character {at + 1}" if at < len(shown) else "at its end"
    raise UserError(f"--fail-on '{text}': {why}, {pointer}", HINT)
