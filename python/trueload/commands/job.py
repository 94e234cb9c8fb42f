"""Shared parts of commands that measure: the request, the job, its run in the store, its JSON."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from trueload.closeable import Closing
from trueload.commands.measure_options import ResultOptions
from trueload.errors import ExitCode, UserError
from trueload.files import outputs
from trueload.metrics.outlets import NOTHING_WANTED, Wanted
from trueload.places.names import HERE, Where
from trueload.record.schema import Record
from trueload.record.shortage import memory_fault
from trueload.record.thresholds import Condition, direction_note
from trueload.report.tls import reasons_text, tls_hint
from trueload.request.redact import redact_command, redact_url
from trueload.request.route import Route, check_sources
from trueload.request.traffic import Traffic
from trueload.request.url import Target
from trueload.search.execute import SearchPlan
from trueload.store.runs import Run, RunState, Store, StoreError
from trueload.text import plain
from trueload.trial.addresses import with_addresses
from trueload.trial.spec import TrialSpec

ORIGINS_SHOWN = 3  # a hint is one line
# The command by which subjects start trueload. -P keeps the current folder off the path, so that a
# subject's folder cannot shadow a module of ours.
TRUELOAD_COMMAND = (sys.executable, "-P", "-m", "trueload")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a protocol's options ask for: what is sent, where to, and when connections are opened.

    ``kind`` is the command. ``url`` is shown and stored: it holds no secret.
    """

    kind: str = "http"
    url: str
    target: Target
    route: Route
    traffic: Traffic
    origins: tuple[Target, ...] = ()
    """The origins of the targets, if there is more than one."""
    close: bool = False
    connect_open_per_s: float | None = None
    """The rate of new connections, if the load opens them."""
    streams: int | None = None
    """Streams on each HTTP/2 connection (``--streams``); None if not given."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A parsed command line."""

    asked: Asked
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
    where: Where = HERE
    metrics: Wanted = NOTHING_WANTED

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
        asked = self.asked
        spec = with_addresses(self.spec, asked.route, asked.target, asked.origins)
        check_sources(spec.addresses, spec.traffic.local_addresses)
        return spec


class Saved(Closing):
    """The run in the store, if there is one.

    If the store fails during the run, that is reported and the measurement goes on.
    """

    def __init__(self, store: Store | None, run: Run | None) -> None:
        self._store = store
        self._run = run
        self._ended = False
        self._partial = False
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
    ) -> Saved:
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

    def add(
        self, record: Record, *, key: str = "", labels: Mapping[str, str] | None = None
    ) -> None:
        """Save one trial."""
        self._partial = self._partial or record.partial
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

    def report_unsaved(self, unwritten: UserError | None = None) -> bool:
        """Report what was not saved or written; return whether everything was."""
        failed = [error for error in (unwritten, self.error) if error is not None]
        for error in failed:
            sys.stderr.write(f"error: {error.message}\nhint: {error.hint}\n")
        return not failed


def notes_of(job: Job) -> Callable[[str], None]:
    """Return the function for notes to the user; it does nothing with ``--quiet``."""
    return (lambda _: None) if job.given.quiet else announce


def announce(line: str) -> None:
    """Write a line to stderr, where the reader may have gone."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def note_directions(job: Job) -> None:
    """Note the conditions that good values would cross, unless the result is for a program."""
    if job.given.quiet or job.format == "json" or str(job.given.json_path) == "-":
        return
    for note in map(direction_note, job.thresholds):
        if note is not None:
            announce(f"note: {plain(note)}")


def note_recording(job: Job) -> None:
    """Note what is replayed and how, unless nothing is to be told."""
    replay = job.spec.traffic.replay
    if replay is not None:
        for note in replay.notes:
            notes_of(job)(f"note: {plain(note)}")


def report_shortfall(job: Job, records: Sequence[Record]) -> None:
    """Report that the engine ran out of memory, or that no trial had a usable connection.

    Says nothing if the user interrupted the attempts, as that is reported elsewhere.
    """
    spent = [record for record in records if memory_fault(record)]
    if not spent and any(record.connections.established for record in records):
        return
    record = (spent or records)[0]
    if record.partial and record.trouble is None and not record.counts.failed:
        return
    why = nothing_measured(job, record)
    sys.stderr.write(f"error: {why.message}\nhint: {why.hint}\n")


def nothing_measured(job: Job, record: Record) -> UserError:
    """Return the error that explains why no connection became usable."""
    failed, reasons = record.counts.failed, record.connections.reasons
    if (spent := memory_fault(record)) is not None:
        return spent
    if record.trouble is not None:
        why, hint = record.trouble.what, "`trueload doctor` looks at this machine"
    elif "dns" in failed:
        unknown = zip(job.asked.origins, record.plan.generate.origins, strict=True)
        target = next((each for each, found in unknown if not found.addresses), job.asked.target)
        target = job.asked.route.next_hop(target)
        why = f"'{target.host}' does not resolve"
        hint = "look for a mistake in the name, or write the address"
    else:
        why = f"no connection became usable: {', '.join(sorted(failed)) or 'none was tried'}"
        if reasons:
            why = f"no connection became usable: {reasons_text(reasons)}"
        hint = (
            _proxy_hint(failed, job)
            or _http2_hint(failed, job)
            or tls_hint(failed, reasons, job.asked.target.unsealed)
            or _ws_hint(failed, job)
            or f"is a server listening on {_asked_for(job)}?"
        )
    return UserError(why, hint, ExitCode.NOTHING_MEASURED)


def _proxy_hint(failed: Mapping[str, int], job: Job) -> str | None:
    proxy = job.asked.route.proxy
    if proxy is None or not any(name.startswith("connect.") for name in failed):
        return None
    if "connect.proxy" in failed:
        return f"does the proxy at {proxy.target.authority} let CONNECT through, to this port?"
    return f"is a proxy listening on {proxy.target.authority}?"


def _asked_for(job: Job) -> str:
    shown = [at.authority for at in job.asked.origins[:ORIGINS_SHOWN]]
    if len(job.asked.origins) > ORIGINS_SHOWN:
        shown.append(f"{len(job.asked.origins) - ORIGINS_SHOWN} others")
    return " or ".join(shown) or job.asked.route.unix or job.asked.target.authority


def _http2_hint(failed: Mapping[str, int], job: Job) -> str | None:
    spoke = (name for name in failed if not name.startswith(("connect.", "local.", "tls.")))
    http2 = job.spec.traffic.http2
    if http2 is None or not (any(spoke) or "tls.alpn" in failed):
        return None
    if http2.is_chosen and not any(name.startswith("h2.") for name in failed):
        return None
    return f"{_asked_for(job)} does not speak HTTP/2 to us; try --http 1.1"


def _ws_hint(failed: Mapping[str, int], job: Job) -> str | None:
    reached = (name for name in failed if not name.startswith(("connect.", "local.")))
    if job.asked.target.unsealed != "ws" or not any(reached):
        return None
    path = redact_url(job.asked.target.path)
    return f"does the server speak WebSocket at {path}, in this dialect?"


def write_json(path: Path | None, value: dict[str, Any]) -> UserError | None:
    """Write the result as one JSON object, if asked for; to stdout for ``-``.

    Returns the error if it could not be written. It is reported last, after the result.
    """
    if path is None:
        return None
    text = json.dumps(value) + "\n"
    if str(path) == "-":
        sys.stdout.write(text)
        return None
    try:
        outputs.write_text(path, text)
    except UserError as error:
        return error
    return None
