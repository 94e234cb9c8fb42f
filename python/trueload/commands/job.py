"""Shared parts of commands that measure: the request, the job, its run in the store, its JSON.

Must not know: what is measured, or how a result is shown.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from trueload.closing import Closing
from trueload.errors import ExitCode, UserError
from trueload.files import outputs
from trueload.metrics.outlets import NOTHING_WANTED, Wanted
from trueload.places.named import HERE, Where
from trueload.protocol.exchange import WindowsPlan
from trueload.protocol.streams import StreamPlan
from trueload.record.schema import Record
from trueload.record.shortage import memory_fault
from trueload.record.thresholds import Condition, direction_note
from trueload.report.tls import reasons_text, tls_hint
from trueload.request.data import DataFile
from trueload.request.exchange import Exchange
from trueload.request.plans import RANDOM, has_place
from trueload.request.redact import redact_command, redact_url
from trueload.request.replay import Replay
from trueload.request.route import Route, check_sources
from trueload.request.steps import StepSpec
from trueload.request.target import Target
from trueload.request.values import ANY_ANSWER, Expect, Request, TargetSpec, Tls
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
    """The flags of a protocol as a value: what is sent, where to, and what a good answer is.

    ``kind`` is the command. ``url`` is shown and stored: it holds no secret. ``origins`` is filled
    if the targets have several. ``streams`` are those of ``http2``, if they were given.
    ``connect_open_per_s`` is the rate of new connections, if the load opens them.
    ``follow`` redirects of a request are followed at most.
    """

    kind: str = "http"
    url: str
    target: Target
    route: Route
    local_addresses: tuple[str, ...]
    request: Request | None = None
    expect: Expect = ANY_ANSWER
    targets: tuple[TargetSpec, ...] = ()
    scenario: tuple[StepSpec, ...] = ()
    exchange: Exchange | None = None
    close: bool = False
    connect_open_per_s: float | None = None
    http2: WindowsPlan | None = None
    stream: StreamPlan | None = None
    follow: int | None = None
    streams: int | None = None
    tls: Tls | None = None
    origins: tuple[Target, ...] = ()
    data: DataFile | None = None
    replay: Replay | None = None

    @property
    def has_random(self) -> bool:
        """Whether the requests contain random parts, or random pauses between them."""
        if any(least < most for least, most in (step.think_ns for step in self.scenario)):
            return True
        if self.data is not None and self.data.order == "shuffled":
            return True
        requests = [target.request for target in self.targets]
        requests += [step.request for step in self.scenario]
        requests += [] if self.request is None else [self.request]
        return any(has_place(request, (RANDOM,)) for request in requests)


@dataclass(frozen=True)
class Job:
    """A parsed command line.

    ``spec`` has no addresses yet. ``format`` is how the result is printed; ``shootout`` prints the
    steps of a broadcast as websocket-bench did. ``words`` are the command line after ``trueload``,
    None for this process's own.
    """

    kind: str
    spec: TrialSpec
    target: Target
    route: Route
    repeat: int
    thresholds: tuple[Condition, ...]
    strict: bool
    json_path: Path | None
    save: bool
    live: bool = True
    search: SearchPlan | None = None
    format: str = "text"
    quiet: bool = False
    words: tuple[str, ...] | None = None
    where: Where = HERE
    metrics: Wanted = NOTHING_WANTED
    origins: tuple[Target, ...] = ()
    dry_run: bool = False

    def talk(self) -> TextIO:
        """Return the stream for text: stdout, unless that is for a program."""
        if self.quiet:
            return io.StringIO()
        return sys.stderr if self.format != "text" or str(self.json_path) == "-" else sys.stdout

    def resolved(self) -> TrialSpec:
        """Return the specification with its addresses.

        Asks the system's resolver, in bounded time. Raises ``UserError``.
        """
        spec = with_addresses(self.spec, self.route, self.target, self.origins)
        check_sources(spec.addresses, spec.local_addresses)
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
        kind: str,
        title: str,
        *,
        save: bool = True,
        plan: Any = None,
        seed: int | None = None,
        words: Sequence[str] | None = None,
    ) -> Saved:
        """Open the store and begin a run: it must be writable before anything is sent."""
        if not save:
            return cls(None, None)
        store = stack.enter_context(Store.open())
        command = redact_command(["trueload", *(sys.argv[1:] if words is None else words)])
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
    return (lambda _: None) if job.quiet else announce


def announce(line: str) -> None:
    """Write a line to stderr, where the reader may have gone."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def note_directions(job: Job) -> None:
    """Note the conditions that good values would cross, unless the result is for a program."""
    if job.quiet or job.format == "json" or str(job.json_path) == "-":
        return
    for note in map(direction_note, job.thresholds):
        if note is not None:
            announce(f"note: {plain(note)}")


def note_recording(job: Job) -> None:
    """Note what is replayed and how, unless nothing is to be told."""
    if job.spec.replay is not None:
        for note in job.spec.replay.notes:
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
        unknown = zip(job.origins, record.plan.generate.origins, strict=True)
        target = next((each for each, found in unknown if not found.addresses), job.target)
        target = job.route.next_hop(target)
        why = f"'{target.host}' does not resolve"
        hint = "look for a mistake in the name, or write the address"
    else:
        why = f"no connection became usable: {', '.join(sorted(failed)) or 'none was tried'}"
        if reasons:
            why = f"no connection became usable: {reasons_text(reasons)}"
        hint = (
            _proxy_hint(failed, job)
            or _http2_hint(failed, job)
            or tls_hint(failed, reasons, job.target.unsealed)
            or _ws_hint(failed, job)
            or f"is a server listening on {_asked_for(job)}?"
        )
    return UserError(why, hint, ExitCode.NOTHING_MEASURED)


def _proxy_hint(failed: Mapping[str, int], job: Job) -> str | None:
    proxy = job.route.proxy
    if proxy is None or not any(name.startswith("connect.") for name in failed):
        return None
    if "connect.proxy" in failed:
        return f"does the proxy at {proxy.target.authority} let CONNECT through, to this port?"
    return f"is a proxy listening on {proxy.target.authority}?"


def _asked_for(job: Job) -> str:
    shown = [at.authority for at in job.origins[:ORIGINS_SHOWN]]
    if len(job.origins) > ORIGINS_SHOWN:
        shown.append(f"{len(job.origins) - ORIGINS_SHOWN} others")
    return " or ".join(shown) or job.route.unix or job.target.authority


def _http2_hint(failed: Mapping[str, int], job: Job) -> str | None:
    spoke = (name for name in failed if not name.startswith(("connect.", "local.", "tls.")))
    http2 = job.spec.http2
    if http2 is None or not (any(spoke) or "tls.alpn" in failed):
        return None
    if http2.is_chosen and not any(name.startswith("h2.") for name in failed):
        return None
    return f"{_asked_for(job)} does not speak HTTP/2 to us; try --http 1.1"


def _ws_hint(failed: Mapping[str, int], job: Job) -> str | None:
    reached = (name for name in failed if not name.startswith(("connect.", "local.")))
    if job.target.unsealed != "ws" or not any(reached):
        return None
    path = redact_url(job.target.path)
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
