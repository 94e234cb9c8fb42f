"""The observer of a run's trials: keeps their tallies, and the exporters that read them.

How: trials are observed beside the live view, on the front's thread, which only replaces one tuple
by another. Each exporter has a thread of its own, reads the tuple when it likes, and ends in
bounded time. The last ``KEPT`` finished trials stay, so that a scrape every 15 s misses none of a
suite's short trials. Libraries are imported only for what was asked for.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from trueload import __version__
from trueload.extras import require
from trueload.metrics.options import MetricsOptions
from trueload.metrics.outlets import Announce, Outlet
from trueload.record.schema import Record
from trueload.report.heading import Heading
from trueload.report.live import NO_LABELS, Watch
from trueload.trial.spec import Interrupt, OnProgress, Progress, TrialSpec

if TYPE_CHECKING:
    from trueload.metrics.tally import Labels, Tally

KEPT = 16


class Exports:
    """The tallies of the trials of one run; ``about`` are labels that hold for all of them."""

    def __init__(self, about: Mapping[str, str]) -> None:
        self._about: Labels = (("version", __version__), *about.items())
        self._tallies: tuple[Tally, ...] = ()
        self._outlets: list[Outlet] = []

    def tallies(self) -> tuple[Tally, ...]:
        """The tallies now. Any thread may call this.

        It returns the same object until something is new.
        """
        return self._tallies

    def add(self, outlet: Outlet) -> None:
        self._outlets.append(outlet)

    def finish(self, stopped: Callable[[], bool], announce: Announce) -> None:
        """Let each exporter deliver the last values; the run is over."""
        for outlet in self._outlets:
            outlet.finish(stopped, announce)

    def close(self) -> list[str]:
        """Close all exporters; return what went wrong with them."""
        faults = [outlet.close() for outlet in self._outlets]
        return [line for line in faults if line is not None]

    def beside(self, watch: Watch) -> Watch:
        """Return a watch that observes trials and passes everything on to ``watch``."""
        if not self._outlets:
            return watch

        def observing(
            spec: TrialSpec, heading: Heading, labels: Mapping[str, str] = NO_LABELS
        ) -> AbstractContextManager[OnProgress | None]:
            return self._observed(spec, labels, watch(spec, heading, labels))

        return observing

    def measured(self, labels: Mapping[str, str], record: Record) -> None:
        """Add a trial that has ended and reported no progress while it ran."""
        if self._outlets:
            from trueload.metrics.tally import Tally

            about = (*self._about, ("url", record.plan.url))
            tally = Tally(tuple(labels.items()), about, False, 0, time.time_ns()).end(record)
            self._tallies = (*self._tallies, tally.over())[-KEPT:]

    @contextmanager
    def _observed(
        self,
        spec: TrialSpec,
        labels: Mapping[str, str],
        shown: AbstractContextManager[OnProgress | None],
    ) -> Iterator[OnProgress]:
        from trueload.metrics.tally import Tally  # imported late: most runs have no exporter

        self._keep_off()
        tally = Tally.of(spec, tuple(labels.items()), self._about, time.time_ns())
        before = self._tallies[-KEPT:]
        self._tallies = (*before, tally)

        try:
            with shown as show:

                def receive(progress: Progress) -> None:
                    self._tallies = (*before, self._tallies[-1].receive(progress))
                    if show is not None:
                        show(progress)

                yield receive
        finally:
            self._tallies = (*before, self._tallies[-1].over())

    def _keep_off(self) -> None:
        """Move the exporters' threads to the CPUs of the front's thread, off those of a subject."""
        cpus = os.sched_getaffinity(0)
        for outlet in self._outlets:
            if outlet.thread.native_id is not None:
                with contextlib.suppress(OSError):
                    os.sched_setaffinity(outlet.thread.native_id, cpus)


@contextmanager
def exporting(
    wanted: MetricsOptions, about: Mapping[str, str], interrupt: Interrupt, announce: Announce
) -> Iterator[Exports]:
    """Run the exporters that were asked for until the block ends. Raises ``UserError`` for one that
    is impossible, before any trial starts."""
    exports = Exports(about)
    with contextlib.ExitStack() as stack:
        stack.callback(lambda: [announce(f"warning: {line}") for line in exports.close()])
        if wanted.otlp is not None:
            require("metrics", "--otlp", "opentelemetry.sdk", "opentelemetry.exporter.otlp")
            from trueload.metrics.otlp import OtlpOutlet

            exports.add(OtlpOutlet(wanted.otlp, exports.tallies))
        if wanted.prometheus is not None:
            require("metrics", "--prometheus", "prometheus_client")
            from trueload.metrics.scrape import ScrapeOutlet

            outlet = ScrapeOutlet(
                wanted.prometheus, exports.tallies, wanted.prometheus_linger_ns or 0
            )
            exports.add(outlet)
            announce(f"metrics at {outlet.url}")
        yield exports
        exports.finish(lambda: interrupt.requested, announce)
