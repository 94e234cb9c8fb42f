"""The trials of a suite of clients: the repetitions of a round are orders to one process.

How: the first repetition of a round starts the process, sends its setup and warms it up. The others
go on with the same process. It ends after the last one, or when another cell's turn comes. Any
fault ends it; the execution then decides about the cell.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from trueload.assemble.client import make_client_record
from trueload.engines.engine import EngineError
from trueload.protocol.client_progress import OnClientProgress, WatchClient, unwatched_client
from trueload.protocol.plan import Duration
from trueload.runner.build import Build
from trueload.runner.client import ClientError
from trueload.runner.client_session import (
    ClientLoad,
    ClientSession,
    UnsupportedError,
    client_session,
)
from trueload.runner.cpus import Layout
from trueload.runner.process import StartError
from trueload.runner.trials import TrialFailure, TrialResult
from trueload.subjects.manifest import Subject
from trueload.suites.plan import Cell, SuitePlan, Trial, rounds
from trueload.units import NS_PER_MS


@dataclass
class ClientTrials:
    """The running process, if there is one, and the cell that it belongs to."""

    plan: SuitePlan
    trueload_command: tuple[str, ...]
    stopped: Callable[[], bool]
    watch: WatchClient = unwatched_client
    _cell: Cell | None = None
    _session: ClientSession | None = None
    _exit: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def measure(
        self, trial: Trial, subject: Subject, built: Build, layout: Layout
    ) -> TrialResult | TrialFailure:
        """Run one repetition. Raises ``UserError``, ``OSError``, ``BuildError`` for our side."""
        try:
            with self.watch() as on_progress:
                session = self._at_work(trial.cell, subject, built, layout, on_progress)
                record = make_client_record(session.measure())
        except UnsupportedError as why:
            self.close()
            return TrialFailure(str(why), "", unsupported=True)
        except StartError as error:
            self.close()
            return TrialFailure(f"it cannot be started: {error}", "")
        except (ClientError, ValueError, EngineError) as error:
            return self._failed(error)
        last = any(trial.repetition == numbers[-1] for numbers in rounds(self.plan))
        fault = self._end(session) if last else None
        return TrialResult(record, None, None, "", fault=fault)

    def close(self) -> None:
        """End the process and its server. Idempotent: calling it again does nothing."""
        self._cell = self._session = None
        done, self._exit = self._exit, contextlib.ExitStack()
        done.close()

    def _at_work(
        self,
        cell: Cell,
        subject: Subject,
        built: Build,
        layout: Layout,
        on_progress: OnClientProgress | None,
    ) -> ClientSession:
        if self._session is not None and self._cell == cell:
            self._session.on_progress = on_progress
            return self._session
        self.close()
        session = self._exit.enter_context(
            client_session(
                subject,
                built,
                layout,
                replace(client_load(self.plan, cell), keep_alive=subject.manifest.keep_alive),
                trueload_command=self.trueload_command,
                stopped=self.stopped,
            )
        )
        self._cell, self._session = cell, session
        session.on_progress = on_progress
        session.begin()
        return session

    def _failed(self, error: Exception) -> TrialFailure:
        """Return the fault of the client, or of our server; nothing of either is left."""
        tail = ""
        if self._session is not None:
            self._session.client.processes.end(0)
            tail = self._session.client.processes.log_tail()
        self.close()
        if isinstance(error, EngineError):
            return TrialFailure(f"the reference server failed: {error}", tail, again=True)
        return TrialFailure(str(error), tail, again=True)

    def _end(self, session: ClientSession) -> str | None:
        """End the process after the last repetition of a round; return its fault, if any."""
        try:
            session.client.finish_well()
        except (ClientError, OSError) as fault:
            return str(fault)
        finally:
            self.close()
        return None


def client_load(plan: SuitePlan, cell: Cell) -> ClientLoad:
    pools, wait_ms = cell.load.pools, plan.client_wait_ms
    assert pools is not None
    assert wait_ms is not None
    assert isinstance(plan.stop, Duration)
    warmup_ns = plan.warmup.ns if isinstance(plan.warmup, Duration) else 0
    return ClientLoad(
        **dict(pools),
        wait_ms=wait_ms,
        timeout_ms=max(1, plan.timeout_ns // NS_PER_MS),
        span_ns=plan.stop.ns,
        warmup_ns=warmup_ns,
    )
