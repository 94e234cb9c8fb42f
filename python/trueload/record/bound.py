"""Lower bounds in words: a figure that is at least so much, and a verdict that says so.

A throughput is a lower bound if a faster generator might have shown more. That is so if the
generator was as full as the server (the check `generator-limit`), or if most of p50 was its own
time (`client-share`). A lower bound is a true statement and no doubt about it, so the verdict keeps
its word. Pure.
"""

from __future__ import annotations

LOWER_BOUND = "lower bound"


def at_least(text: str, lower_bound: bool) -> str:
    """``≥ 219,763``."""
    return f"≥ {text}" if lower_bound and text else text


def verdict_text(verdict: str, lower_bound: bool) -> str:
    """``valid (lower bound)``."""
    return f"{verdict} ({LOWER_BOUND})" if lower_bound else verdict
