"""What is certain of a condition, although something disturbed the run.

How: a check that fails moves figures in a known direction, or in any (``Record.bounds``). So each
figure has a range in which the truth lies. A condition is decided if all of that range says the
same. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from trueload.record.bound import estimate_text
from trueload.record.figures import latency, metric_value, of_percentile, percentile_share
from trueload.record.schema import Direction, Record
from trueload.record.thresholds import Condition, Crossing, Threshold, crossed, untimed
from trueload.repetitions import median
from trueload.units import format_duration, format_rate

Range = tuple[float, float]
ANYWHERE: Range = (-math.inf, math.inf)
SIGNS: dict[Direction, str] = {"exact": " ", "at_most": " ≤ ", "at_least": " ≥ "}
LEAST: dict[Direction, str] = {"exact": "", "at_most": "at most ", "at_least": "at least "}
USABLE = {"p50": 0.5, "p99": 0.99}


@dataclass(frozen=True)
class Ruling:
    """What became of a condition: ``crossed``, ``kept``, or ``undecided`` by what was measured.

    ``why`` tells it in a sentence; it is empty where a condition is kept by exact figures.
    """

    condition: Condition
    state: Literal["crossed", "kept", "undecided"]
    why: str = ""


def range_of(metric: str, record: Record) -> Range:
    """Return the range in which the truth of a metric lies, in its unit."""
    if metric == "throughput" and record.throughput.ok_per_s is None:
        return ANYWHERE
    low = high = metric_value(metric, record)
    share = percentile_share(metric)
    if share is not None:
        low -= of_percentile(metric, record).percentile(share).overstated_ns
    match direction_of(metric, record):
        case "at_most":
            return (-math.inf, high)
        case "at_least":
            return (low, math.inf)
        case "unknown":
            return ANYWHERE
        case "exact":
            return (low, high)


def direction_of(metric: str, record: Record) -> Direction:
    """Return how what failed can have moved a metric; records of before say nothing of it."""
    if record.bounds is None:
        return "exact"
    if metric in ("throughput", "errors"):
        return record.bounds.throughput if metric == "throughput" else record.bounds.errors
    return record.bounds.latency


def rule(conditions: Sequence[Condition], records: Sequence[Record]) -> list[Ruling]:
    """Rule on each condition, by the medians of the trials."""
    over = {each.condition.text: each for each in crossed(conditions, records)}
    return [_ruling(each, over.get(each.text), records) for each in conditions]


def _ruling(condition: Condition, found: Crossing | None, records: Sequence[Record]) -> Ruling:
    ranges = [_middle_range(part, records) for part in condition.parts]
    holds = [
        True if part.is_guarded and untimed(records) else _holds(part, between)
        for part, between in zip(condition.parts, ranges, strict=True)
    ]
    shown = " and ".join(
        _shown(part, between, records)
        for part, between in zip(condition.parts, ranges, strict=True)
    )
    return decided(condition, holds, found.sentence() if found else "", shown, records)


def decided(
    condition: Condition,
    holds: Sequence[bool | None],
    sentence: str,
    shown: str,
    records: Sequence[Record],
) -> Ruling:
    """Rule on a condition by its parts: whether each holds, or is not known to.

    ``sentence`` tells that all hold by what was measured, and ``shown`` what is known of each.
    """
    if sentence and all(holds):
        return Ruling(condition, "crossed", sentence)
    says = f"--fail-on says {condition.text}"
    if False in holds:
        disturbed = any(record.verdict == "invalid" for record in records)
        why = f"{shown}, whatever disturbed this run, and {says}" if disturbed else ""
        return Ruling(condition, "kept", why)
    reasons = "; ".join([f"{shown}, and {says}", *_disturbances(records)])
    return Ruling(condition, "undecided", reasons)


def _middle_range(part: Threshold, records: Sequence[Record]) -> Range:
    """The medians of both ends over the trials; any value where they have none."""
    ends = zip(*(range_of(part.metric, record) for record in records), strict=True)
    low, high = (median(each) for each in ends)
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return ANYWHERE
    return low, high


def _holds(part: Threshold, between: Range) -> bool | None:
    """Whether a part is true of the whole range (True) or of none of it (False)."""
    at_low, at_high = map(part.holds, between)
    return at_low if at_low == at_high else None


def _shown(part: Threshold, between: Range, records: Sequence[Record]) -> str:
    """``p99 is at most 3.80 ms``."""
    value = median([metric_value(part.metric, record) for record in records]) or 0.0
    low, high = between
    word = "roughly "
    if low == high:
        word = ""
    elif between != ANYWHERE and value in between:
        word = "at most " if value == high else "at least "
    verb = "are" if part.metric == "errors" else "is"
    return f"{part.label} {verb} {word}{part.shown(value)}"


def _disturbances(records: Sequence[Record]) -> list[str]:
    """What kept the trials from deciding, a text for each check: ``hiccup: the generator …``."""
    found = {
        check.name: check.why
        for record in records
        for check in record.checks
        if check.status in ("fail", "bound")
    }
    return [f"{name}: {why}" for name, why in found.items()]


def usable_text(record: Record) -> str:
    """What an invalid run leaves to use: ``p50 ≤ 1.2 ms, p99 ≤ 3.8 ms, at least 61,000
    requests/s``; empty if nothing, or if its figures are those of the server all the same."""
    bounds = record.bounds
    if record.verdict != "invalid" or bounds is None or record.client is not None:
        return ""
    if {bounds.latency, bounds.throughput} <= {"exact"}:
        return ""
    parts = []
    if bounds.latency != "unknown":
        found = {name: latency(record).percentile(share) for name, share in USABLE.items()}
        parts = [
            f"{name}{SIGNS[bounds.latency]}{format_duration(each.known)}"
            for name, each in found.items()
            if each.known is not None
        ]
    if bounds.throughput != "unknown" and record.throughput.ok_per_s:
        rate = format_rate(record.throughput.ok_per_s, "requests")
        estimate = estimate_text(record.throughput.estimate_per_s)
        parts.append(f"{LEAST[bounds.throughput]}{rate}{estimate}")
    return ", ".join(parts)
