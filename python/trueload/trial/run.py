"""One trial: start the engine, connect, warm up, measure, and make the record.

How: a session runs one window after another over the same connections. The specification holds all
a trial needs, so nothing here asks the network or the user. What is seen meanwhile goes into the
observation (`observer`). A trial always ends in bounded time with a record. If the engine dies,
hangs or sends junk, the record is made from its last ticks, is partial, and says so in ``trouble``;
its verdict is then invalid. Of several hosts each keeps what it told.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trueload.assemble.observation import Observation
from trueload.assemble.trial import make_record
from trueload.deadline import seconds_left
from trueload.engines.engine import Engine, EngineError
from trueload.engines.launch import start_engines
from trueload.engines.pauses import PAUSE_S, Pauses
from trueload.errors import UserError
from trueload.ids import now_iso, record_id
from trueload.machine.locality import sees_all_processes
from trueload.places.lines import LINES_MAX
from trueload.places.local import LocalPlace
from trueload.protocol.plan import (
    Done,
    Error,
    FromEngine,
    Phase,
    PhaseDone,
    PhaseStarted,
    PhaseStopped,
    Ready,
    Requests,
)
from trueload.protocol.tick import Tick
from trueload.record.account import Step
from trueload.record.schema import Claim, Record
from trueload.record.shortage import HINTS, crowded_ports
from trueload.trial.addresses import with_sources
from trueload.trial.blobs import blobs, pieces
from trueload.trial.cpus import CpuWatch
from trueload.trial.environment import read_environment
from trueload.trial.observer import Observer
from trueload.trial.plan import STEP_NS, make_phases, make_plan, make_step
from trueload.trial.request_log import ROWS_MOST
from trueload.trial.salvage import keep_heard
from trueload.trial.server_discovery import affinity, choose_cpus, server_cpus
from trueload.trial.server_files import reached_limit
from trueload.trial.spec import CONNECT, ENDED, Interrupt, OnProgress, Progress, TrialSpec
from trueload.units import NS_PER_S

if TYPE_CHECKING:
    from trueload.engines.fleet import Fleet

SLACK_S = 2.0  # law 3: a trial lasts at most connect + warm-up + duration + timeout + 2 s
CONNECT_SLACK_S = 5.0  # for an engine that starts on a busy machine
SILENCE_S = 3.0  # the engine ticks every 250 ms; one that is silent for this long hangs
STOP_S = 1.5  # the engine ends within 1 s of `stop`
MANY_HOSTS = 100  # the results of 256 take 3 s to add up
POLL_S = 0.1  # how soon an interrupt is noticed
DATA_BYTES_PER_S = 10e6  # an engine reads data ten times as fast, if it is not alone
LOG_ROWS_PER_S = 50e3  # a third of what a machine reads beside the load, for slow links
BLOB_BYTES_PER_S = 2e6  # of blobs that become requests, which takes several times as long

NOT_READY = Ready.model_construct(
    type="ready", at_ns=0, listen=None, requested=0, established=0, failed={}, address=None
)


class ShortageError(UserError):
    """This machine has too few descriptors or local ports: nothing was sent. ``record`` is that of
    a run in which every connection failed for that reason."""

    def __init__(self, message: str, hint: str, record: Record) -> None:
        super().__init__(message, hint)
        self.record = record


def run_trial(
    spec: TrialSpec, *, on_progress: OnProgress | None = None, interrupt: Interrupt | None = None
) -> Record:
    """Run one trial and return its record, whatever happens to the engine.

    An interrupted trial returns a partial record; the caller checks ``interrupt``. Raises
    ``UserError`` if there is no engine, or it refuses the plan before anything is sent; and
    ``ShortageError`` if this machine lacks descriptors or ports.
    """
    with Session(spec, on_progress=on_progress, interrupt=interrupt) as session:
        return session.measure(*make_phases(spec), last=True)


class Session(Observer):
    """An engine with its connections, and one window of load after another over them.

    Each window leaves a record, as if it were a trial of its own. A context manager that leaves
    nothing running.
    """

    def __init__(
        self,
        spec: TrialSpec,
        *,
        on_progress: OnProgress | None = None,
        interrupt: Interrupt | None = None,
    ) -> None:
        super().__init__(with_sources(spec), on_progress)
        spec = self._spec
        self._interrupt = interrupt
        all_here = all(isinstance(host.place, LocalPlace) for host in self._hosts)
        self._generate = make_plan(spec, choose_cpus(spec, self._idle), is_here=all_here)
        mine = self._generate.cpus or affinity(0)
        self._cpus = CpuWatch(mine, server_cpus(spec, self._idle), self._is_here)
        self._pauses = Pauses()
        self._ready: Ready | None = None
        self.over = False
        """Nothing more can be measured: the engine has ended, or there is no connection."""

    def measure(
        self, warmup: Phase | None, window: Phase, *, claim: Claim | None = None, last: bool = False
    ) -> Record:
        """Run one window over as many connections as it asks for, and return its record.

        Takes bounded time. With ``last`` the engine is read to its end before the record is made.
        Raises ``UserError`` as ``run_trial`` does.
        """
        self._seen = seen = self._observation(warmup, window, claim)
        began_s = time.monotonic()
        self._enter(CONNECT)
        if self._spec.addresses:
            try:
                try:
                    self._drive(began_s, last=last)
                finally:
                    self._take_over()
            except EngineError as error:
                # An error that the engine reported earlier is the cause, and is kept.
                here = error.kind == "memory" and isinstance(self._engine, Engine | None)
                at = f" in the {self._phase} phase" if here else ""
                seen.trouble = seen.trouble or self._trouble(error.kind, f"{error}{at}")
                self._show(None)
                if not isinstance(self._engine, Engine | None):
                    keep_heard(self._engine, seen)
        self.over = self.over or last or seen.trouble is not None or not self._spec.addresses
        if seen.before is not None and seen.after is None:
            with contextlib.suppress(EngineError):  # the server's host may be lost
                seen.after = self._sample()
        seen.wall_s = time.monotonic() - began_s
        hosts = len(self._spec.hosts)
        if not isinstance(self._engine, Engine | None) and hosts >= MANY_HOSTS:
            self._engine.news.append(f"adding up what {hosts:,} hosts have reported")
            self._show(None)
        record = make_record(seen)
        if self._spec.request_log is not None:
            counts = self._spec.request_log.counts()
            record = record.model_copy(update={"request_log": counts})
        # A server seldom gives back what it took for more connections than there are now.
        established = record.connections.established
        self._most_connections = max(self._most_connections, established)
        if self._on_progress is not None:
            self._on_progress(Progress(ENDED, 0, None, record=record))
        return record

    def _observation(self, warmup: Phase | None, window: Phase, claim: Claim | None) -> Observation:
        """The observation for one window, counting only that window's connections."""
        spec, generate = self._spec, self._generate
        if window.connections is not None:
            sending = window.connections - window.idle
            generate = generate.model_copy(update={"connections": sending})
        seen = Observation(
            id=record_id(),
            started_at=now_iso(),
            url=spec.url,
            generate=generate,
            warmup=warmup,
            window=window,
            environment=read_environment(None),
            place=self._hosts[0].place.name,
            several_hosts=len(self._hosts) > 1 or spec.late is not None,
            is_here=self._is_here,
            server_place=spec.server_place,
            server_source=self._source,
            claim=claim or spec.claim,
            target_urls=spec.traffic.shown_urls,
            origin_urls=tuple(origin.url for origin in spec.traffic.origins),
            payload_bytes=spec.traffic.message_bytes,
            idle_server=self._idle,
            may_be_here=self._may_be_here,
            sees_all=sees_all_processes(),
            most_connections=self._most_connections,
            resolve_failed=not spec.addresses,
        )
        if self._ready is not None:
            # The first window's record already tells how the first connections were set up.
            changes = {"failed": {}, "reasons": {}, "set_up_ns": 0, "grown_bytes": 0}
            seen.ready = self._ready.model_copy(update=changes)
        return seen

    def _drive(self, began_s: float, *, last: bool) -> None:
        seen = self._seen
        first = self._engine is None
        if self._engine is None:
            self._engine = self._start()
        engine = self._engine
        seen.environment = read_environment(engine.hello.version)
        connected = self._connect(engine) if first else self._join(engine)
        seen.connect_wall_s = time.monotonic() - began_s
        self._look_at_files()
        if connected:
            self._ready = seen.ready
            steps = self._spec.load.idle if first else ()
            connected = all(self._step(engine, idle) for idle in steps)
        if connected:
            seen.engine_cpus = seen.generate.cpus or engine.allowed_cpus()
            seen.earliest = self._sample()
            if seen.warmup is None:
                seen.before = seen.earliest  # a short window could end before its start is reported
            self._cpus.begin(engine)
            for phase in (seen.warmup, seen.window):
                if phase is not None:
                    engine.send(phase)
            self._measure(engine)
            self._look_at_files()
            self._cpus.end(engine, seen, self._note)
        if last or not connected or seen.interrupted:
            self.over = True
            self._finish(engine)

    def _start(self) -> Engine | Fleet:
        spec = self._spec
        engine = start_engines(
            self._hosts,
            self._generate.connections,
            spec.load.pacing,
            self._pauses,
            spec.allow_lost,
            spec.late,
        )
        self._engine = engine
        self._cpus.before(engine, self._note)
        environment = spec.traffic.environment(os.environ)
        engine.send(self._generate.model_copy(update={"environment": environment}))
        for blob in blobs(spec.traffic):
            engine.send(blob)
        for piece in pieces(self._spec.traffic, self._generate):
            engine.send(piece)
        return engine

    def _connect(self, engine: Engine | Fleet) -> bool:
        """Wait for the connections; return True if at least one was established."""
        data = self._spec.traffic.data
        for message in self._connecting(engine, self._generate.connections):
            if isinstance(message, Error) and message.class_ == "data" and data:
                raise data.refused(message.message)
            if isinstance(message, Error) and message.class_ == "plan":
                raise UserError(
                    f"the engine refused the plan: {message.message}", "change the option it names"
                )
            self._note(message)
            if self._seen.ready is not None:
                return self._seen.ready.established > 0
        return False

    def _join(self, engine: Engine | Fleet) -> bool:
        """Wait until as many connections are established as the window asks for. A phase that sends
        nothing does this, so that the server is sampled before the first request. Returns False if
        the user asked for the end."""
        seen = self._seen
        count = seen.window.connections or seen.generate.connections
        nothing = {"id": f"{seen.window.id}, joining", "stop": Requests(count=0)}
        join = seen.window.model_copy(update=nothing)
        engine.send(join)
        for message in self._connecting(engine, count):
            if not isinstance(message, PhaseStarted | PhaseStopped):
                self._note(message)
            if isinstance(message, Done):
                raise EngineError("engine", f"the engine ended by itself: {message.why}")
            seen.joined = seen.phase(join.id).measurement
            if seen.joined is not None:
                return True
        return False

    def _step(self, engine: Engine | Fleet, idle: int) -> bool:
        """Raise the idle connections to ``idle``, hold them, and sample the server's memory.
        Returns False if the user asked for the end."""
        spec, phase = self._spec, make_step(self._spec, idle)
        step = Step(idle=idle)
        self._seen.steps.append(step)
        engine.send(phase)
        for message in self._connecting(engine, spec.load.connections + idle, STEP_NS):
            if isinstance(message, PhaseStopped):
                step.server = self._tree.sample() if self._tree is not None else None
            elif isinstance(message, PhaseDone):
                step.measurement = message.measurement
                return True
            elif isinstance(message, Error | Done):
                self._note(message)
                raise EngineError("engine", "the engine ended before its window")
            elif isinstance(message, Tick):
                self._show(message)
        return False

    def _connecting(
        self, engine: Engine | Fleet, connections: int, more_ns: int = 0
    ) -> Iterator[FromEngine]:
        """Yield what the engine says while it opens so many connections, until the user asks for
        the end. Raises ``EngineError`` if it takes too long, ``ShortageError`` if it cannot."""
        deadline = self._connect_deadline(connections) + more_ns / NS_PER_S
        while not self._interrupted():
            message = engine.receive(min(POLL_S, seconds_left(deadline)))
            self._refuse_shortage(message)
            if message is not None:
                yield message
            elif seconds_left(deadline) == 0:
                raise self._unconnected()
            if not isinstance(message, Tick):
                self._show(None)

    def _connect_deadline(self, connections: int) -> float:
        """Return the time by which ``connections`` connections must have been tried."""
        spec = self._spec
        tries_s = len(spec.addresses) * spec.engine.timeout_ns / NS_PER_S
        takes_s = connections / spec.engine.connect_rate_per_s + tries_s + CONNECT_SLACK_S
        if spec.traffic.data is not None:
            takes_s += spec.traffic.data.size_bytes / DATA_BYTES_PER_S
        if spec.traffic.replay is not None:
            size_bytes = spec.traffic.replay.size_bytes(close=spec.load.close)
            takes_s += size_bytes / BLOB_BYTES_PER_S
        return time.monotonic() + takes_s

    def _unconnected(self) -> EngineError:
        """The error for connections that took too long, with the cause if it is known."""
        seen = self._seen
        generate, phase = seen.generate, seen.window
        connections = max(generate.connections, phase.connections or 0)
        connections += max(self._spec.load.idle, default=0)
        crowded = crowded_ports(connections, len(generate.local_addresses), seen.environment)
        return EngineError(
            "silent", (f"the engine did not report in time that its connections are open{crowded}")
        )

    def _refuse_shortage(self, message: FromEngine | None) -> None:
        if isinstance(message, Error) and message.class_ in HINTS:
            self.over = True
            raise self._short(message)

    def _short(self, message: Error) -> ShortageError:
        """The error for a shortage, with a record in which every connection failed for it."""
        asked = self._seen.generate.connections
        self._seen.ready = NOT_READY.model_copy(
            update={
                "requested": asked,
                "failed": {message.class_: asked},
                "reasons": {message.class_: message.message},
            }
        )
        hint = HINTS[message.class_]
        if message.class_ == "local.fds" and self._spec.engine.driver == "epoll":
            hint += ", or leave --driver epoll out: io_uring may need none"
        return ShortageError(message.message, hint, make_record(self._seen))

    def _measure(self, engine: Engine | Fleet) -> None:
        """Follow the phases to the end of the window."""
        deadline = self._phases_deadline()
        silent_from = time.monotonic()
        seen = self._seen
        received_late = 0
        while not seen.interrupted and seen.phase(seen.window.id).measurement is None:
            if self._interrupted():
                return
            asked = time.monotonic()
            message = engine.receive(0.0 if received_late else POLL_S)
            now = time.monotonic()
            if now - asked > PAUSE_S:  # nothing could be heard while we were paused
                silent_from = now
            if message is not None:
                self._note(message)
                silent_from = now
                if isinstance(message, Done):
                    raise EngineError("engine", f"the engine ended by itself: {message.why}")
            elif now - silent_from > SILENCE_S:
                raise EngineError("silent", f"the engine said nothing for {SILENCE_S:g} s")
            if deadline is None or now <= deadline:
                continue
            # Read the lines that came by the deadline first: here it is the front that is late.
            received_late += 1
            ended = seen.phase(seen.window.id).measurement is not None
            if not ended and (message is None or received_late > LINES_MAX):
                raise EngineError("late", "the engine did not end its phases in time")

    def _phases_deadline(self) -> float | None:
        """The deadline of the phases; None if one ends by a count: only silence shows a hang."""
        seconds = 0.0
        for phase in (self._seen.warmup, self._seen.window):
            if phase is None:
                continue
            if isinstance(phase.stop, Requests):
                return None
            seconds += phase.stop.ns / NS_PER_S
        slack_s = SLACK_S + self._log_s
        return time.monotonic() + seconds + self._spec.engine.timeout_ns / NS_PER_S + slack_s

    @property
    def _log_s(self) -> float:
        """The longest that the log of single requests may take."""
        return 0.0 if self._spec.request_log is None else ROWS_MOST / LOG_ROWS_PER_S

    def _look_at_files(self) -> None:
        """Check whether the server left connections waiting because it ran out of open files."""
        seen = self._seen
        measured = seen.phase(seen.window.id).measurement or seen.joined
        found = seen.ready if measured is None else measured.connections
        waiting = found is not None and found.established < found.requested
        if waiting or (measured is not None and measured.slots.never_answered):
            seen.server_files = seen.server_files or reached_limit(self._spec.addresses)

    def _finish(self, engine: Engine | Fleet) -> None:
        """Tell the engine to end, and read its remaining lines."""
        engine.stop()
        deadline = time.monotonic() + STOP_S + self._log_s
        while seconds_left(deadline) > 0:
            try:
                message = engine.receive(seconds_left(deadline))
            except EngineError:
                return  # the engine has already sent all that the record needs
            if message is not None:
                self._note(message)
            if isinstance(message, Done):
                return

    def _interrupted(self) -> bool:
        if self._interrupt is None or not self._interrupt.requested:
            return False
        self._seen.interrupted = True
        return True
