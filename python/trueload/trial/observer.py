"""What a trial sees, as it comes in: the engine's messages, the server's processes, this machine.

The server's process tree and the machine are sampled when the window starts and stops. All of it
goes into one ``Observation``, from which the record is made, and what a user may follow is shown.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from trueload.assemble.observation import HostSample, Observation
from trueload.closeable import Closeable
from trueload.engines.engine import Engine, FailureKind
from trueload.engines.pauses import Pauses
from trueload.errors import refused_by_machine
from trueload.machine.accounting import ProcessTree, machine_sample, used_since
from trueload.machine.locality import may_be_here
from trueload.machine.noise import noise_sample
from trueload.machine.peers import backends
from trueload.machine.processes import process_name
from trueload.places import EngineHost
from trueload.places.local import LocalPlace
from trueload.protocol.cpu_time import CpuTime
from trueload.protocol.plan import (
    Done,
    Duration,
    Error,
    FromEngine,
    PhaseDone,
    PhaseStarted,
    PhaseStopped,
    Ready,
    RequestRows,
)
from trueload.protocol.tick import Tick
from trueload.record.schema import Trouble
from trueload.trial.salvage import check_readable
from trueload.trial.server_discovery import find_server, first_sample
from trueload.trial.spec import (
    CONNECT,
    DRAIN,
    WARMUP,
    WINDOW,
    HostTick,
    OnProgress,
    Progress,
    TrialSpec,
)
from trueload.units import NS_PER_S

if TYPE_CHECKING:
    from trueload.engines.fleet import Fleet

LOOK_WARMUP_NS = NS_PER_S
"""The least warm-up in which we look for peers, after its first quarter of a second. With 10,000
connections that takes 0.16 s on an idle machine (AMD EPYC), and more beside a load."""


class Observer(Closeable):
    """The eyes of a trial, one ``Observation`` after another. A context manager that ends the
    engine, which others start and drive."""

    _seen: Observation
    """That of the window which is measured."""
    _pauses: Pauses

    def __init__(self, spec: TrialSpec, on_progress: OnProgress | None) -> None:
        self._spec = spec
        self._hosts = spec.hosts or (EngineHost(LocalPlace()),)
        self._is_here = any(isinstance(host.place, LocalPlace) for host in self._hosts)
        self._on_progress = on_progress
        self._tree, self._source = find_server(spec)
        self._idle = None if self._tree is None else first_sample(self._tree)
        here = self._is_here and spec.server_place is None
        self._may_be_here = here and any(map(may_be_here, spec.addresses))
        self._engine: Engine | Fleet | None = None
        self._most_connections = 0
        self._measured: list[PhaseDone] = []
        self._phase, self._phase_began_s = CONNECT, time.monotonic()

    def close(self) -> None:
        self._pauses.close()
        if self._engine is not None:
            self._engine.close()

    def _note(self, message: FromEngine) -> None:
        """Store the engine's message; sample the server when the window starts and stops."""
        seen = self._seen
        match message:
            case Ready():
                seen.ready = message
            case PhaseStarted():
                seen.phase(message.id).started_ns = message.at_ns
                # The windows of a session have ids of their own, and this phase in common.
                self._enter(WINDOW if message.id == seen.window.id else message.id)
                if message.id == seen.window.id and seen.before is None:
                    seen.before = self._sample()
            case PhaseStopped():
                if message.id == seen.window.id:
                    seen.after = self._sample()
                    self._look_for_peers()
                seen.phase(message.id).stopped_ns = message.at_ns
                self._enter(DRAIN)
            case RequestRows() if self._spec.request_log is not None:
                self._spec.request_log.add(message)
            case PhaseDone():
                self._measured.append(message)
                if message.id != WARMUP:
                    self._take_over()
                if not isinstance(self._engine, Engine | None) and message.id == seen.window.id:
                    seen.hosts = self._engine.reports(message.id)
            case Tick():
                if message.id is not None:
                    if message.id == WARMUP and not seen.phase(WARMUP).first and self._has_time():
                        self._look_for_peers()  # before the window, which must not be disturbed
                    seen.phase(message.id).add(message)
                self._show(message)
            case Error() if message.class_ == "machine" and seen.ready is None:
                raise refused_by_machine(message.message)
            case Error():
                # The first error is the cause; those that follow from it say less.
                if seen.trouble is None:
                    seen.trouble = Trouble(kind="engine", what=f"the engine: {message.message}")
            case Done() if message.why in ("signalled", "orphaned") and seen.trouble is None:
                # The engine reports what it has before it ends. Without this a window that was cut
                # short could look complete.
                what = f"the engine ended by itself: {message.why}"
                seen.trouble = self._trouble("engine", what)
            case _:
                pass

    def _trouble(self, kind: FailureKind, what: str) -> Trouble:
        """The reason for the end of the trial: this process itself, if it was just paused."""
        paused = self._pauses.behind(what)
        return (
            Trouble(kind=kind, what=what) if paused is None else Trouble(kind="paused", what=paused)
        )

    def _take_over(self) -> None:
        """Move finished measurements into the observation. The warm-up's waits for the window's:
        decoding it takes 20 to 40 ms of CPU time, just when the window has begun."""
        measured, self._measured = self._measured, []
        for done in measured:
            check_readable(done.measurement)
            self._seen.phase(done.id).measurement = done.measurement

    def _has_time(self) -> bool:
        """Whether the warm-up outlasts a look for peers. Else the server would be sampled too late
        for the window, after which there is a look, too."""
        stop = self._seen.warmup.stop if self._seen.warmup is not None else None
        return isinstance(stop, Duration) and stop.ns >= LOOK_WARMUP_NS

    def _look_for_peers(self) -> None:
        """Note the server's peers on this machine; without a known server, our own peers."""
        if not self._may_be_here or self._engine is None:
            return
        tree = self._tree.sample() if self._tree is not None else None
        engines = self._engine.pids_here()
        roots = set(tree.pids) if tree is not None else engines
        found = backends(roots, {os.getpid(), *engines} - roots)
        self._seen.peers |= {pid: process_name(pid) for pid in found}

    def _enter(self, phase: str) -> None:
        self._phase, self._phase_began_s = phase, time.monotonic()
        self._show(None)

    def _show(self, tick: Tick | None) -> None:
        if self._on_progress is not None:
            elapsed_ns = int((time.monotonic() - self._phase_began_s) * NS_PER_S)
            hosts: Callable[[], Sequence[HostTick]] = tuple
            news: tuple[str, ...] = ()
            if not isinstance(self._engine, Engine | None):
                news, self._engine.news = tuple(self._engine.news), []
                if tick is not None:
                    hosts = partial(_last_ticks, self._engine, tick.id)
            server = None if tick is None else self._server_time()
            plan = self._seen.warmup if self._phase == WARMUP else self._seen.window
            self._on_progress(
                Progress(self._phase, elapsed_ns, tick, hosts, server=server, plan=plan, news=news)
            )

    def _server_time(self) -> CpuTime | None:
        """The CPU time of the server's processes as last seen; None if it is on another host."""
        looked = self._seen.before or self._seen.earliest
        sample = self._idle if looked is None else looked.server
        if sample is None or self._spec.server_place is not None:
            return None
        return CpuTime(time.monotonic_ns(), used_since(sample))

    def _sample(self) -> HostSample:
        server = self._tree.sample() if self._tree is not None else None
        if not self._is_here:
            return HostSample(machine=machine_sample(), server=server)
        # What else this machine does matters only where an engine runs on it.
        engine = ProcessTree(self._engine.pids_here).sample() if self._engine is not None else None
        return HostSample(machine_sample(), server, noise_sample(), engine)


def _last_ticks(fleet: Fleet, phase_id: str | None) -> tuple[HostTick, ...]:
    return tuple(HostTick(name, tick) for name, tick in fleet.latest(phase_id))
