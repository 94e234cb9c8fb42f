"""A command line that measures, as a value, and the run in the store that it fills."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from trueload.closeable import Closeable
from trueload.commands.measure_options import ResultOptions
from trueload.errors import UserError
from trueload.metrics.options import NO_METRICS, MetricsOptions
from trueload.places.names import HERE, Placement
from trueload.record.schema import Record
from trueload.record.thresholds import Condition
from trueload.request.redact import redact_command
from trueload.request.route import Route, check_sources
from trueload.request.traffic import Traffic
from trueload.request.url import Url
from trueload.store.rows import Run, RunState
from trueload.store.runs import Store, StoreError
from trueload.text import labelled
from trueload.trial.addresses import with_addresses
from trueload.trial.spec import TrialSpec

if TYPE_CHECKING:
    from trueload.record.certainty import Ruling
    from trueload.search.execute import SearchPlan, StepResult

# The command by which subjects start trueload. -P keeps the current folder off the path, so that a
# subject's folder cannot shadow a module of ours.
TRUELOAD_COMMAND = (sys.executable, "-P", "-m", "trueload")


@dataclass(frozen=True, kw_only=True)
class Workload:
    """What a protocol's options ask for: what is sent, where to, and when connections are opened.

    ``kind`` is the command. ``url`` is shown and stored: it holds no secret.
    """

    kind: str = "http"
    url: str
    endpoint: Url
    route: Route
    traffic: Traffic
    origins: tuple[Url, ...] = ()
    """The origins of the targets, if there is more than one."""
    close: bool = False
    connect_open_per_s: float | None = None
    """The rate of new connections, if the load opens them."""
    streams: int | None = None
    """Streams on each HTTP/2 connection (``--streams``); None if not given."""
    timeout_ns: int | None = None
    """That of a curl command, which counts if no other is given."""
    request_log: Path | None = None
    """The file for the single requests of the window."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A parsed command line."""

    workload: Workload
    spec: TrialSpec
    """What each trial does; it has no addresses yet."""
    given: ResultOptions
    """What happens with the result."""
    format: str
    """How it is printed; ``shootout`` prints the steps of a broadcast as websocket-bench did."""
    thresholds: tuple[Condition, ...]
    repeat: int = 1
    live: bool = True
    search: SearchPlan | None = None
    words: tuple[str, ...] | None = None
    """The command line after ``trueload``; None for this process's own."""
    placement: Placement = HERE
    metrics: MetricsOptions = NO_METRICS

    def talk(self) -> TextIO:
        """Return the stream for text: stdout, unless that is for a program."""
        if self.given.quiet:
            return io.StringIO()
        return (
            sys.stderr if self.format != "text" or str(self.given.json_path) == "-" else sys.stdout
        )

    def resolved(self) -> TrialSpec:
        """Return the specification with its addresses.

        Asks the system's resolver, in bounded time. Raises ``UserError``.
        """
        workload = self.workload
        spec = with_addresses(self.spec, workload.route, workload.endpoint, workload.origins)
        check_sources(spec.addresses, spec.traffic.local_addresses)
        return spec


class RunWriter(Closeable):
    """The run in the store, if there is one.

    If the store fails during the run, that is reported and the measurement goes on.
    """

    def __init__(self, store: Store | None, run: Run | None) -> None:
        self._store = store
        self._run = run
        self._ended = False
        self._partial = False
        self._doubted = False
        self.error: StoreError | None = None

    def close(self) -> None:
        """Mark a run as interrupted if its end was not recorded."""
        if not self._ended:
            self.end(interrupted=True)

    @classmethod
    def begin(
        cls,
        stack: contextlib.ExitStack,
        job: Job,
        kind: str,
        title: str,
        *,
        plan: Any = None,
        seed: int | None = None,
    ) -> RunWriter:
        """Open the store and begin a run: it must be writable before anything is sent."""
        if job.given.no_save:
            return cls(None, None)
        store = stack.enter_context(Store.open())
        command = redact_command(["trueload", *(sys.argv[1:] if job.words is None else job.words)])
        run = store.new_run(kind=kind, title=title, plan=plan, seed=seed, command=command)
        return cls(store, run)

    @property
    def run_id(self) -> str | None:
        """The run's id, if all of it was saved."""
        return self._run.id if self._run is not None and self.error is None else None

    def lines(self) -> list[str]:
        """Say where the run is kept, if it is."""
        if self.run_id is None:
            return []
        show = f"trueload runs show {self.run_id}"
        if self._doubted:
            return [*labelled("why", f"{show} --why"), *labelled("saved", self.run_id)]
        return labelled("saved", f"{self.run_id}   ({show})")

    def add(
        self, record: Record, *, key: str = "", labels: Mapping[str, str] | None = None
    ) -> None:
        self._partial = self._partial or record.partial
        self._doubted = self._doubted or record.verdict != "valid"
        if self._store is not None and self._run is not None and self.error is None:
            try:
                self._store.add_record(self._run, record, key=key, labels=labels)
            except StoreError as error:
                self.error = error

    def end(self, interrupted: bool) -> None:
        """Record how the run ended: also whether a trial measured less than was planned."""
        self._ended = True
        state: RunState = "partial" if self._partial else "finished"
        if self._store is not None and self._run is not None and self.error is None:
            try:
                self._store.end_run(self._run, "interrupted" if interrupted else state)
            except StoreError as error:
                self.error = error

    def report_unsaved(self, *unwritten: UserError | None) -> bool:
        """Report what was not saved or written; return whether everything was."""
        failed = [error for error in (*unwritten, self.error) if error is not None]
        for error in failed:
            sys.stderr.write(f"error: {error.message}\nhint: {error.hint}\n")
        return not failed


@dataclass(frozen=True)
class JobResult:
    """The result of a job: its trials, in order, and what became of its thresholds.

    Of a search, ``taken`` has the steps, and ``records`` the deciding one, if there was any step.
    """

    records: tuple[Record, ...]
    rulings: tuple[Ruling, ...]
    saved: RunWriter
    unwritten: UserError | None = None
    """Why the log of single requests could not be written."""
    taken: tuple[StepResult, ...] = ()
