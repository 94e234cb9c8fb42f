"""The live panel on a terminal: progress, throughput, percentiles and failures while a trial runs.

How: ticks come four times a second; throughput and percentiles are of the last second or so.
``rich`` is imported only when there is a terminal; in a pipe there is nothing of all this. Must not
decide anything, and a panel that cannot be drawn must not disturb a measurement.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

from trueload.plan import Duration, Open, Tick
from trueload.report.text import plain
from trueload.spec import OnProgress, Progress, TrialSpec
from trueload.stats import Quantile, merge_sparse, quantile
from trueload.units import format_count, format_duration, format_rate, format_span

if TYPE_CHECKING:
    from rich.live import Live

RECENT_TICKS = 5  # about a second
BAR_WIDTH = 28


Watch = Callable[[TrialSpec, str], AbstractContextManager[OnProgress | None]]
"""What is told how a trial goes on, under a title."""


def unwatched(spec: TrialSpec, title: str) -> AbstractContextManager[OnProgress | None]:
    """Nobody watches."""
    return nullcontext(None)


def live_view(spec: TrialSpec, title: str) -> AbstractContextManager[OnProgress | None]:
    """A panel on stderr if that is a terminal, else nothing."""
    stream = sys.stderr
    try:
        wanted = stream.isatty()
    except ValueError:  # closed
        wanted = False
    return LivePanel(spec, title) if wanted else nullcontext(None)


class LivePanel:
    """Draws what ``on_progress`` of a trial says."""

    def __init__(self, spec: TrialSpec, title: str) -> None:
        self._spec = spec
        self._title = plain(title)
        self._recent: deque[Tick] = deque(maxlen=RECENT_TICKS)
        self._live: Live | None = None

    def __enter__(self) -> OnProgress:
        from rich.console import Console
        from rich.live import Live

        console = Console(stderr=True)
        self._live = Live(console=console, transient=True, auto_refresh=False)
        self._live.__enter__()
        return self.show

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            # The terminal may have gone; what was measured is what counts.
            with suppress(OSError):
                self._live.__exit__(kind, error, trace)

    def show(self, progress: Progress) -> None:
        """Draw one state."""
        if progress.tick is None:
            self._recent.clear()
        else:
            self._recent.append(progress.tick)
        if self._live is not None:
            try:
                self._live.update(self._panel(progress), refresh=True)
            except OSError:
                self._live = None

    def _panel(self, progress: Progress) -> Any:
        from rich.panel import Panel
        from rich.text import Text

        body = Text("\n".join(panel_lines(self._spec, progress, list(self._recent))))
        return Panel(body, title=Text(self._title), title_align="left", expand=False)


def panel_lines(spec: TrialSpec, progress: Progress, recent: list[Tick]) -> list[str]:
    """What the panel says, as text. Pure."""
    lines = [_progress_line(spec, progress)]
    if not recent:
        return lines
    last, first = recent[-1], recent[0]
    seconds = (last.at_ns - first.at_ns) / 1e9
    if seconds > 0:
        per_s = (last.counts.ok - first.counts.ok) / seconds
        lines.append(f"throughput   {format_rate(round(per_s), 'requests')}")
        if isinstance(spec.load, Open):
            offered = (last.counts.scheduled - first.counts.scheduled) / seconds
            sent = (last.counts.issued - first.counts.issued) / seconds
            lines.append(
                f"rate         offered {format_rate(round(offered), 'requests')},"
                f" sent {format_count(round(sent))}/s"
            )
    buckets = merge_sparse(tick.latency for tick in recent)
    if buckets.total:
        # What is due and not yet sent is slower than what has come back.
        waiting = max(0, last.counts.scheduled - last.counts.issued)
        worse = waiting if isinstance(spec.load, Open) else 0
        p50, p99 = (_shown(quantile(buckets, share, worse)) for share in (0.50, 0.99))
        label = "response" if isinstance(spec.load, Open) else "latency"
        lines.append(f"{label:<12} p50 {p50}   p99 {p99}")
    served = merge_sparse(tick.service for tick in recent)
    if served.total:
        # What waits has no service time yet.
        p50, p99 = (_shown(quantile(served, share)) for share in (0.50, 0.99))
        lines.append(f"{'service':<12} p50 {p50}   p99 {p99}")
    failed = sum(last.counts.failed.values())
    classes = ", ".join(f"{name} {count}" for name, count in sorted(last.counts.failed.items()))
    lines.append(f"requests     {format_count(last.counts.ok)} ok, {format_count(failed)} failed")
    if failed:
        lines.append(f"failures     {plain(classes)}")
    lines.append(f"connections  {last.open} open of {spec.connections}")
    return lines


def _shown(found: Quantile) -> str:
    return f"{'> ' if found.above else ''}{format_duration(found.value or 0)}"


def _progress_line(spec: TrialSpec, progress: Progress) -> str:
    stop = {"warm-up": spec.warmup, "window": spec.stop}.get(progress.stage)
    if isinstance(stop, Duration):
        share = min(1.0, progress.elapsed_ns / stop.ns) if stop.ns else 1.0
        of = f"{format_duration(progress.elapsed_ns)} of {format_span(stop.ns)}"
    elif stop is not None and progress.tick is not None:
        share = min(1.0, progress.tick.counts.issued / stop.count)
        of = f"{format_count(progress.tick.counts.issued)} of {format_count(stop.count)}"
    else:
        return f"{progress.stage:<12} {format_duration(progress.elapsed_ns)}"
    filled = round(share * BAR_WIDTH)
    bar = "█" * filled + "░" * (BAR_WIDTH - filled)
    return f"{progress.stage:<12} {bar} {of}"
