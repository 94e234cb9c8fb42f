"""Times in words, with ``>`` where a time is only known to be more. Pure."""

from __future__ import annotations

from trueload.stats import Quantile
from trueload.units import format_duration


def bounded(ns: float, *, above: bool) -> str:
    """A time, with ``>`` where it is only known to be more."""
    return f"{'> ' if above else ''}{format_duration(ns)}"


def quantile_text(found: Quantile) -> str:
    """``1.20 ms``, ``> 5.00 s``; empty where nothing has a time."""
    return "" if found.value is None else bounded(found.value, above=found.above)
