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

from trueload.record.figures import latency, metric_value, of_percentile, percentile_share
from trueload.record.schema import Direction, Record
from trueload.record.thresholds import Condition, Crossing, Threshold, crossed, untimed
from trueload.repetitions import median
from trueload.units import format_duration, format_rate

Range = tuple[float, float]
ANYWHERE: Range = (-math.inf, math.inf)
WORDS: dict[Direction, str] = {
    "exact": "",
    "at_most": "at most ",
    "at_least": "at least ",
    "unknown": "roughly ",
}
"""What is said before a value."""
SIGNS: dict[Direction, str] = {"exact": " ", "at_most": " ≤ ", "at_least": " ≥ "}
USABLE = {"p50": 0.5, "p99": 0.99}


@dataclass(frozen=True)
class Ruling:
    """What became of a condition: ``crossed``, ``kept``, or ``undecided`` by what was measured.

    ``why`` tells it in a sentence; it is empty where a condition is kept by exact figures.
    """

    condition: Condition
    state: Literal["crossed", "kept", "undecided"]
    why: str = ""


def direction(metric: str, record: Record) -> Direction:
    """Where the truth of a metric lies, seen from its value in a record."""
    if record.bounds is None:
        return "exact"
    if metric in ("throughput", "errors"):
        return record.bounds.throughput if metric == "throughput" else record.bounds.errors
    return record.bounds.latency


def range_of(metric: str, record: Record) -> Range:
    """Return the range in which the truth of a metric lies, in its unit; NaN if it has no value."""
    value = metric_value(metric, record)
    if value is None:
        return (math.nan, math.nan)
    share = percentile_share(metric)
    of = None if share is None else of_percentile(metric, record).percentile(share)
    low, high = value - (of.overstated_ns if of is not None else 0), value
    match direction(metric, record):
        case "at_most":
            return (-math.inf, high)
        case "at_least":
            return (low, math.inf)
        case "unknown":
            return ANYWHERE
        case "exact":
            return (low, high)


def rule(conditions: Sequence[Condition], records: Sequence[Record]) -> list[Ruling]:
    """Rule on each condition, by the medians of the trials."""
    over = {each.condition.text: each for each in crossed(conditions, records)}
    return [_ruling(each, over.get(each.text), records) for each in conditions]


def _ruling(condition: Condition, found: Crossing | None, records: Sequence[Record]) -> Ruling:
    parts = [_holds(part, records) for part in condition.parts]
    says = f"--fail-on says {condition.text}"
    if all(parts):
        return Ruling(condition, "crossed", found.sentence() if found else says)
    shown = " and ".join(_shown(part, records) for part in condition.parts)
    if False in parts:
        disturbed = any(record.verdict == "invalid" for record in records)
        why = f"{shown}, whatever disturbed this run, and {says}" if disturbed else ""
        return Ruling(condition, "kept", why)
    return Ruling(condition, "undecided", f"{shown}, and {says}; {missing(records)}")


def _holds(part: Threshold, records: Sequence[Record]) -> bool | None:
    """Whether a part holds for all of the range of its metric (true) or for none of it (false)."""
    if part.is_guarded and untimed(records):
        return True
    ranges = [range_of(part.metric, record) for record in records]
    if any(math.isnan(low) for low, _ in ranges):
        return False
    low, high = (median(list(ends)) or 0.0 for ends in zip(*ranges, strict=True))
    at_low, at_high = part.holds(low), part.holds(high)
    return at_low if at_low == at_high else None


def _shown(part: Threshold, records: Sequence[Record]) -> str:
    """``p99 is at most 3.80 ms``."""
    values = [metric_value(part.metric, record) for record in records]
    verb = "are" if part.metric == "errors" else "is"
    directions = {direction(part.metric, record) for record in records}
    if any(math.isfinite(high - low) and high > low for low, high in _ranges(part, records)):
        directions |= {"at_most"}
    directions -= {"exact"} if len(directions) > 1 else set()
    word = WORDS[directions.pop() if len(directions) == 1 else "unknown"]
    return f"{part.label} {verb} {word}{part.shown(median(values) or 0.0)}"


def _ranges(part: Threshold, records: Sequence[Record]) -> list[Range]:
    return [range_of(part.metric, record) for record in records]


def missing(records: Sequence[Record]) -> str:
    """What kept a run from deciding, in one line: ``hiccup: the generator stood still for …``."""
    found = {
        check.name: check.why
        for record in records
        for check in record.checks
        if check.status in ("fail", "bound")
    }
    return "; ".join(f"{name}: {why}" for name, why in found.items())


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
        parts.append(f"{WORDS[bounds.throughput]}{rate}")
    return ", ".join(parts)
