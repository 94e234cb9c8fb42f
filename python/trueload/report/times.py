"""Times as text: of a record, of a target, of a row of a table. Pure."""

from __future__ import annotations

from trueload.stats import Quantile
from trueload.suites.figures import Figures
from trueload.units import format_bound, largest_text

NS_PER_MS = 1e6


def quantile_text(found: Quantile) -> str:
    """Return a time as text; empty if nothing has a time.

    Examples: ``1.20 ms``, ``> 5.00 s``, ``≤ 8.40 ms``, ``too few``, ``8.27 ms (largest of 100)``.
    """
    at_most = found.overstated_ns > 0
    text = format_bound(found.value, above=found.above, too_few=found.too_few, at_most=at_most)
    return largest_text(text, found.largest_of)


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
