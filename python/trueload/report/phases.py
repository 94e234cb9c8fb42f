"""The progress of a phase, as a bar with the parts done and left. Pure."""

from __future__ import annotations

from trueload.protocol.plan import Duration
from trueload.report.rows import Row, Span, gauge
from trueload.trial.spec import WARMUP, WINDOW, Progress
from trueload.units import counted, format_count, format_duration, format_span

LABEL = 13
BAR_MIN = 10  # a shorter one has a row of its own


def labelled(label: str, *spans: Span) -> Row:
    return (Span(f"{label:<{LABEL}}", "label"), *spans)


def progress_rows(label: str, share: float, text: str, width: int) -> list[Row]:
    """Return the bar with its text after it, or above it if there is no room."""
    head = Span(f"{label:<{LABEL}}", "strong")
    room = width - LABEL - 2 - len(text)
    if room >= BAR_MIN:
        return [(head, *gauge(share, room, "good"), Span(f"  {text}"))]
    return [(head, Span(text)), gauge(share, width, "good")]


def phase_rows(progress: Progress, width: int, *, sessions: bool = False) -> list[Row]:
    """Return the phase of a trial, by its time or by the number of its requests.

    The windows of a session have names of their own. How many ``sessions`` of a scenario have
    ended is known at the end only.
    """
    plan = progress.plan if progress.phase in (WARMUP, WINDOW) else None
    phase = progress.phase if plan is None else plan.id
    stop = None if plan is None else plan.stop
    if isinstance(stop, Duration):
        share = min(1.0, progress.elapsed_ns / stop.ns) if stop.ns else 1.0
        left_s = max(0, stop.ns - progress.elapsed_ns) / 1e9
        text = f"{format_duration(progress.elapsed_ns)} of {format_span(stop.ns)}"
        return progress_rows(phase, share, f"{text}, {left_s:.0f} s left", width)
    if stop is not None and sessions:
        text = (
            f"{format_duration(progress.elapsed_ns)},"
            f" until {counted(stop.count, 'session ends', 'sessions end')}"
        )
        return [(Span(f"{phase:<{LABEL}}", "strong"), Span(text))]
    if stop is not None and progress.tick is not None:
        issued = progress.tick.counts.issued
        return counted_rows(phase, issued, stop.count, progress.elapsed_ns, width)
    return [(Span(f"{phase:<{LABEL}}", "strong"), Span(format_duration(progress.elapsed_ns)))]


def counted_rows(label: str, done: int, of: int, elapsed_ns: int, width: int) -> list[Row]:
    """Return a phase that ends after a number of requests.

    The estimate assumes that the others take as long as those done.
    """
    left = ""
    if done:
        left = f", about {elapsed_ns / done * max(0, of - done) / 1e9:.0f} s left"
    share = min(1.0, done / of) if of else 1.0
    text = f"{format_count(done)} of {format_count(of)}{left}"
    return progress_rows(label, share, text, width)
