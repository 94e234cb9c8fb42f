"""Times as text: of a record, of a target, of a row of a table. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trueload.record.figures import BRIEF, SHOWN
from trueload.report.quantile import quantile_text
from trueload.stats import Distribution
from trueload.units import NS_PER_MS, format_bound, format_duration, largest_text

if TYPE_CHECKING:
    from trueload.suites.figures import Figures


def times_text(found: Distribution, *more: str, most: str = "max") -> str:
    """Return the percentiles and the maximum of some times; empty if nothing has a time.

    Example: ``p50 0.42 ms   p99 > 5.00 s   max 5.00 s``.
    """
    if found.max is None:
        return ""
    parts = [f"{each.label} {quantile_text(found.at(each.name))}" for each in SHOWN]
    return "   ".join([*parts, f"{most} {format_duration(found.max)}", *more])


def brief_text(found: Distribution, names: Sequence[str] = BRIEF, between: str = ", ") -> str:
    """Return a few percentiles: ``p50 0.42 ms, p99 > 5.00 s``."""
    return between.join(f"{name} {quantile_text(found.at(name))}" for name in names)


def figure_text(figures: Figures, name: str) -> str:
    """Return a time of a table's row as text, like ``quantile_text``."""
    ms = figures.ms(name)
    text = format_bound(
        None if ms is None else ms * NS_PER_MS,
        above=name in figures.latency_at_least,
        too_few=name in figures.latency_too_few,
        at_most=name in figures.latency_at_most,
    )
    return largest_text(text, figures.largest_of if name == "max" else None)
