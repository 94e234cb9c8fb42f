"""Conditions: what a user will not accept (``--fail-on``), or wants kept (``--limit``), as values.

Grammar: METRIC OPERATOR VALUE, several joined by ``and``. Metrics are ``p50`` ``p99`` ``p99.9``
(any percentile; of a broadcast it is of deliveries, ``receipt_p95`` of receipts; of streamed
answers there are also ``first_part_p99`` and ``gap_p99``, of conversations ``message_gap_p99``
and ``delivery_p99``, with ``--connect-open`` ``connect_p99``,
``full_handshake_p99``, ``resumed_handshake_p99`` and ``first_byte_p99``), ``min``, ``mean`` and
``max`` of the latency, ``throughput`` (requests that ended well, per second) and ``errors`` (failed
of issued). Operators are ``>`` ``>=`` ``<`` ``<=``.

``figures`` defines each metric. Failing must never look fast: ``mean`` and ``max`` cover answers
only, so a limit on them also counts as crossed as soon as one request has no time. One parser reads
all of it; a ``Form`` says what a flag accepts. Pure.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

from trueload.errors import UserError
from trueload.record.accounts.streams import FIRST_PART, GAP
from trueload.record.figures import (
    PREFIXES,
    RECEIPT,
    is_too_few,
    label,
    metric_value,
    of_percentile,
    percentile_share,
    without_prefix,
    without_time,
)
from trueload.record.schema import Record
from trueload.repetitions import median
from trueload.stats import parse_percentile
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
_ELSEWHERE = {
    **dict.fromkeys(("rps", "qps", "http_reqs", "requests", "reqs"), "throughput"),
    **dict.fromkeys(("error", "error_rate", "failed", "failures", "http_req_failed"), "errors"),
    **dict.fromkeys(("avg", "average"), "mean"),
    **dict.fromkeys(("med", "median"), "p50"),
    **dict.fromkeys(("latency", "duration", "http_req_duration"), "p95"),
    "ttft": f"{FIRST_PART}p99",
    **dict.fromkeys(("itl", "tpot", "tbt"), f"{GAP}p99"),
}
"""Metrics by their names in other tools."""
_ORDER = (">", ">=", "<", "<=")

_TOKENS = re.compile(r"(\s*)([A-Za-z][A-Za-z0-9._]*)?(\s*)(>=|<=|>|<)?(\s*)(.*)", re.DOTALL)
_AND = re.compile(r"(?:^|(?<=\s))and(?=\s|$)")
_LATENCIES = ("min", "mean", "max")
# Requests without a time are slower than any answer, so they do not change the least time.
_GUARDED = ("mean", "max")
NO_TIME = "unknown (too many requests were not answered, or none was timed)"
OF_TOO_FEW, AT_MOST = " of too few requests", " (an upper bound)"


@dataclass(frozen=True)
class Form:
    """What a flag accepts: which metrics and operators, and values or ratios of two of them."""

    flag: str
    hint: str
    metrics: tuple[str, ...] = (*_LATENCIES, "throughput", "errors")
    below_only: bool = False
    ratio: bool = False
    prefixes: tuple[str, ...] = ()


FAIL_ON = Form(
    "--fail-on", "write METRIC, > or <, VALUE: 'p99>20ms', 'throughput<50k/s', 'errors>0.1%'"
)
LIMIT = Form(
    "--limit",
    "write METRIC<VALUE: 'p99<10ms', 'p99<10ms and errors<0.1%'",
    metrics=(*_LATENCIES, "errors"),
    below_only=True,
)
CLIENTS_LIMIT = replace(LIMIT, prefixes=(RECEIPT,))
CLIENTS_FAIL_ON = replace(FAIL_ON, prefixes=(RECEIPT,))
"""For a broadcast: ``p95`` is of its deliveries, ``receipt_p95`` of the senders' receipts."""
STREAMS_FAIL_ON = replace(FAIL_ON, prefixes=(FIRST_PART, GAP))
"""For streamed answers: also ``first_part_p99``, and ``gap_p99`` of the times between parts."""
ANY = replace(FAIL_ON, prefixes=tuple(PREFIXES))
RATIO = Form(
    "--fail-on",
    "write METRIC, > or <, RATIO of new to base: 'throughput<0.95', 'p99>1.2'",
    metrics=("mean", "throughput"),
    ratio=True,
)


@dataclass(frozen=True)
class Threshold:
    """One comparison. ``limit`` is in ns, per second, a share or a ratio."""

    text: str
    metric: str
    operator: str
    limit: float

    @property
    def label(self) -> str:
        """Its metric, for people: ``p99``, ``mean of answers``."""
        return label(self.metric)

    @property
    def is_guarded(self) -> bool:
        """Whether one request without a time is as bad as a crossed limit."""
        return self.metric in _GUARDED

    @property
    def wants_worse(self) -> bool:
        """Whether it holds for good values: a fast answer, a high throughput, few errors."""
        return self.side == ("above" if self.metric == "throughput" else "below")

    @property
    def side(self) -> str:
        """Where the values lie for which it holds: ``below`` or ``above`` its limit."""
        return "above" if self.operator.startswith(">") else "below"

    def sentence(self) -> str:
        """For people: ``p99 is at or below 20ms``."""
        verb = "are" if self.metric == "errors" else "is"
        bound = f"at or {self.side}" if self.operator.endswith("=") else self.side
        return f"{self.metric} {verb} {bound} {self._value}"

    def turned(self) -> str:
        """The same limit from the other side: ``p99>20ms`` of ``p99<20ms``."""
        return f"{self.metric}{'<' if self.side == 'above' else '>'}{self._value}"

    @property
    def _value(self) -> str:
        return self.text.partition(self.operator)[2].strip()

    def holds(self, value: float) -> bool:
        """Whether it is true of a value in the limit's unit; never of NaN."""
        return OPERATORS[self.operator](value, self.limit)

    def shown(self, value: float) -> str:
        """A value of its metric, for people."""
        if self.metric == "throughput":
            return f"{format_count(value)}/s"
        if self.metric == "errors":
            return format_share(value)
        return NO_TIME if math.isinf(value) else format_duration(value)


@dataclass(frozen=True)
class Condition:
    """Thresholds that must all hold."""

    text: str
    parts: tuple[Threshold, ...]


@dataclass(frozen=True)
class Crossing:
    """A condition that held, and the values that made it hold, in their units; inf or nan if none
    was measured. ``untimed`` requests without a time would have been enough by themselves.
    ``notes`` on its percentiles: of too few requests, or that it is an upper bound."""

    condition: Condition
    values: tuple[float, ...]
    untimed: int = 0
    notes: Mapping[str, str] = field(default_factory=dict)

    def sentence(self) -> str:
        """For people: ``p99 is 31.0 ms, and --fail-on says p99>20ms``."""
        found = zip(self.condition.parts, self.values, strict=True)
        text = " and ".join(
            f"{part.label}{self.notes.get(part.metric, '')} is {part.shown(value)}"
            for part, value in found
        )
        more = f" with {untimed_text(self.untimed)}" if self.untimed else ""
        return f"{text}{more}, and --fail-on says {self.condition.text}"


def direction_note(condition: Condition) -> str | None:
    """A sentence about a condition that good values would cross; None for any other one.

    Such a condition works as written, but most were meant the other way round.
    """
    parts = condition.parts
    if not all(part.wants_worse for part in parts):
        return None
    fails = " and ".join(part.sentence() for part in parts)
    turned = " and ".join(f"'{part.turned()}'" for part in parts)
    if len(parts) > 1:
        kept, more = "them so", ", each with its own --fail-on"
    else:
        it, more = ("them" if parts[0].metric == "errors" else "it"), ""
        kept = f"{it} {parts[0].side}"
    return f"--fail-on '{condition.text}' fails when {fails}; to keep {kept}, write {turned}{more}"


def untimed_text(untimed: int) -> str:
    """``3 requests that failed, were left open or were never sent``."""
    what, was = ("request", "was") if untimed == 1 else ("requests", "were")
    return f"{format_count(untimed)} {what} that failed, {was} left open or {was} never sent"


def parse_condition(text: str, form: Form = FAIL_ON) -> Condition:
    """Parse an expression. Raises ``UserError`` that points at the character."""
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
    if not metric or not is_metric(metric, ANY):
        why = f"'{metric}' is no metric" if metric else "a metric is missing"
        _refuse(text, match.end(1), why, _suggesting(metric, form))
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
    if (metric, symbol, limit, form.ratio) == ("errors", ">", 1.0, False):
        _refuse(text, match.end(5), f"'{value}' is all: shares are like 1% or 0.01", form)
    return Threshold(text=text[start:end].strip(), metric=metric, operator=symbol, limit=limit)


def _suggesting(metric: str, form: Form) -> Form:
    """Return a form whose hint has the metric that is meant by another tool's name."""
    meant = _ELSEWHERE.get(metric.lower(), metric.lower())
    if not is_metric(meant, form):
        return form
    return replace(form, hint=f"did you mean {meant}? {form.hint}")


def crossed(conditions: Sequence[Condition], records: Sequence[Record]) -> list[Crossing]:
    """The conditions that hold for the median of the trials. If requests have no time, every part
    on answers alone holds."""
    missing, found = untimed(records), []
    for condition in conditions:
        middles = [
            median([metric_value(part.metric, record) for record in records])
            for part in condition.parts
        ]
        values = tuple(math.nan if value is None else value for value in middles)
        guarded = [bool(missing) and part.is_guarded for part in condition.parts]
        parts = zip(condition.parts, values, guarded, strict=True)
        if all(guard or part.holds(value) for part, value, guard in parts):
            metrics = {part.metric for part in condition.parts}
            notes = {metric: note for metric in metrics if (note := _note(metric, records))}
            found.append(Crossing(condition, values, missing if any(guarded) else 0, notes))
    return found


def _note(metric: str, records: Sequence[Record]) -> str:
    if any(is_too_few(metric, record) for record in records):
        return OF_TOO_FEW
    share = percentile_share(metric)
    if share is None:
        return ""
    found = [of_percentile(metric, record).percentile(share) for record in records]
    return AT_MOST if any(each.overstated_ns for each in found) else ""


def untimed(records: Sequence[Record]) -> int:
    """How many requests of some trials have no time."""
    return sum(without_time(record.counts) for record in records)


def is_metric(metric: str, form: Form) -> bool:
    """Whether a flag accepts a metric of that name."""
    bare = without_prefix(metric)
    allowed = bare == metric or metric.startswith(form.prefixes)
    return metric in form.metrics or (allowed and parse_percentile(bare) is not None)


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
