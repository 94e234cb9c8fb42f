"""The observer of a run's trials: keeps their tallies, and the ways out that read them.

How: trials are observed beside the live view, on the thread of the front, which only swaps one
tuple for another; each way out has a thread of its own, reads the tuple when it likes, and is
ended in bounded time. Of trials that are over the last ``KEPT`` stay, so that a scrape every 15 s
misses none of a suite's short trials. Libraries are imported only for what was asked for.

Must not know the command line, or how samples are written down.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from trueload import __version__
from trueload.extras import require
from trueload.metrics.outlets import Outlet, Tell, Wanted
from trueload.metrics.tally import Labels, Tally
from trueload.record.schema import Record
from trueload.report.heading import Heading
from trueload.report.live import NO_LABELS, Watch
from trueload.trial.spec import Interrupt, OnProgress, Progress, TrialSpec

KEPT = 16


class Exports:
    """Tallies of the trials of one run; ``about`` is said of all of them."""

    def __init__(self, about: Mapping[str, str]) -> None:
        self._about: Labels = (("version", __version__), *about.items())
        self._tallies: tuple[Tally, ...] = ()
        self._outlets: list[Outlet] = []

    def tallies(self) -> tuple[Tally, ...]:
        """As they stand; for any thread, and the same object until something is new."""
        return self._tallies

    def add(self, outlet: Outlet) -> None:
        """One more way out."""
        self._outlets.append(outlet)

    def finish(self, stopped: Callable[[], bool], tell: Tell) -> None:
        """The run is over, and all of it has been told."""
        for outlet in self._outlets:
            outlet.finish(stopped, tell)

    def close(self) -> list[str]:
        """End all ways out; what went wrong with them."""
        said = [outlet.close() for outlet in self._outlets]
        return [line for line in said if line is not None]

    def beside(self, watch: Watch) -> Watch:
        """A watch that observes beside another one."""
        if not self._outlets:
            return watch

        def observing(
            spec: TrialSpec, heading: Heading, labels: Mapping[str, str] = NO_LABELS
        ) -> AbstractContextManager[OnProgress | None]:
            return self._observed(spec, labels, watch(spec, heading, labels))

        return observing

    def measured(self, labels: Mapping[str, str], record: Record) -> None:
        """A trial that says nothing while it goes on has ended."""
        if self._outlets:
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
        self._keep_off()
        tally = Tally.of(spec, tuple(labels.items()), self._about, time.time_ns())
        before = self._tallies[-KEPT:]
        self._tallies = (*before, tally)

        def hear(progress: Progress) -> None:
            self._tallies = (*before, self._tallies[-1].hear(progress))

        try:
            with shown as show:
                yield _both(hear, show)
        finally:
            self._tallies = (*before, self._tallies[-1].over())

    def _keep_off(self) -> None:
        """The CPUs of a subject are not for threads of ours, of which the front's is told."""
        cpus = os.sched_getaffinity(0)
        for outlet in self._outlets:
            if outlet.thread.native_id is not None:
                with contextlib.suppress(OSError):
                    os.sched_setaffinity(outlet.thread.native_id, cpus)


def _both(hear: OnProgress, show: OnProgress | None) -> OnProgress:
    if show is None:
        return hear

    def tell(progress: Progress) -> None:
        hear(progress)
        show(progress)

    return tell


@contextmanager
def exporting(
    wanted: Wanted, about: Mapping[str, str], interrupt: Interrupt, tell: Tell
) -> Iterator[Exports]:
    """Everything that was asked for, until the block ends. Raises ``UserError`` for what cannot
    be: before anything has been started."""
    exports = Exports(about)
    with contextlib.ExitStack() as stack:
        stack.callback(lambda: [tell(f"warning: {line}") for line in exports.close()])
        if wanted.otlp is not None:
            require("metrics", "--otlp", "opentelemetry.sdk", "opentelemetry.exporter.otlp")
            from trueload.metrics.otlp import OtlpOutlet

            exports.add(OtlpOutlet(wanted.otlp, exports.tallies))
        if wanted.scrape is not None:
            require("metrics", "--prometheus", "prometheus_client")
            from trueload.metrics.scrape import ScrapeOutlet

            outlet = ScrapeOutlet(wanted.scrape, exports.tallies, wanted.linger_ns)
            exports.add(outlet)
            tell(f"metrics at {outlet.url}")
        yield exports
        exports.finish(lambda: interrupt.requested, tell)
