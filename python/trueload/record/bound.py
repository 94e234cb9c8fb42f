"""Lower bounds in words: a figure that is at least so much, and a verdict that says so.

A throughput is a lower bound if a faster generator might have shown more. That is so if the
generator was as full as the server (the check `generator-limit`), or if most of p50 was its own
time (`client-share`). A lower bound is a true statement and no doubt about it, so the verdict keeps
its word. Beside it stands an estimate of the truth, marked as one. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from trueload.repetitions import median
from trueload.units import format_count

LOWER_BOUND = "lower bound"


def at_least(text: str, lower_bound: bool) -> str:
    """``≥ 219,763``."""
    return f"≥ {text}" if lower_bound and text else text


def verdict_text(verdict: str, lower_bound: bool) -> str:
    """``valid (lower bound)``."""
    return f"{verdict} ({LOWER_BOUND})" if lower_bound else verdict


def estimate_text(estimate_per_s: float | None) -> str:
    """`` (estimate 183,654)``; empty without one."""
    return "" if estimate_per_s is None else f" (estimate {format_count(estimate_per_s)})"


def middle_estimate(found: Iterable[tuple[float | None, float | None]]) -> float | None:
    """The median of several trials, each given by its estimate and its throughput: the latter
    counts where it is no bound. None if no trial has an estimate."""
    trials = list(found)
    if all(estimate is None for estimate, _ in trials):
        return None
    return median([estimate or per_s or 0.0 for estimate, per_s in trials])
