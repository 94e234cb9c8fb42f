"""A time that may be a bound, as text. Pure."""

from __future__ import annotations

from trueload.stats import Quantile
from trueload.units import format_bound, largest_text


def quantile_text(found: Quantile) -> str:
    """Return a time as text; empty if nothing has a time.

    Examples: ``1.20 ms``, ``> 5.00 s``, ``≤ 8.40 ms``, ``too few``, ``8.27 ms (largest of 100)``.
    """
    at_most = found.overstated_ns > 0
    text = format_bound(found.value, above=found.above, too_few=found.too_few, at_most=at_most)
    return largest_text(text, found.largest_of)
