"""The progress of a trial in a pipe: a line after five seconds, every ten from then on, and news.

How: a line has the phase, its time and its counts, so that a log shows that nothing hangs. Pure
except for where the lines go.
"""

from __future__ import annotations

from collections.abc import Callable

from trueload.protocol.plan import Duration
from trueload.record import figures
from trueload.trial.spec import CONNECT, OnProgress, Progress, TrialSpec
from trueload.units import NS_PER_S, counted, format_count, format_span

FIRST_S = 5.0
EVERY_S = 10.0


def progress_logger(
    spec: TrialSpec, title: str, clock: Callable[[], float], announce: Callable[[str], object]
) -> OnProgress:
    """Return an observer that announces lines of a trial, at their times by ``clock`` (s)."""
    next_s = clock() + FIRST_S

    def show(progress: Progress) -> None:
        nonlocal next_s
        now_s = clock()
        for each in progress.news:
            announce(f"{title}: {each}")
        if now_s >= next_s and progress.record is None:
            next_s = now_s + EVERY_S
            announce(f"{title}: {line(spec, progress)}")

    return show


def line(spec: TrialSpec, progress: Progress) -> str:
    """Return a line: ``window 12s of 60s, 1,234,567 ok, 12 failed, 64 of 64 connections open``."""
    stop = {"warm-up": spec.load.warmup, "window": spec.load.stop}.get(progress.phase)
    of = f" of {format_span(stop.ns)}" if isinstance(stop, Duration) else ""
    parts = [f"{progress.phase} {progress.elapsed_ns // NS_PER_S}s{of}"]
    if progress.tick is None and progress.phase == CONNECT:
        parts.append(f"opening {counted(spec.load.connections, 'connection')}")
    if progress.tick is not None:
        counts = progress.tick.counts
        if progress.phase != CONNECT:
            parts.append(f"{format_count(counts.ok)} ok")
            parts.append(f"{format_count(figures.failed(counts))} failed")
        count = counted(spec.load.connections, "connection")
        parts.append(f"{format_count(progress.tick.open)} of {count} open")
    return ", ".join(parts)
