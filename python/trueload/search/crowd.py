"""Measures a broadcast to a number of clients: one engine, whose clients stay from step to step.

How: each step is a window of one session, for which clients join or leave. If the engine has ended,
the next step begins a new session.
"""

from __future__ import annotations

from trueload.closeable import Closeable
from trueload.protocol.plan import Phase
from trueload.record.schema import Record
from trueload.trial.addresses import with_sources
from trueload.trial.run import Session, ShortageError
from trueload.trial.spec import Interrupt, OnProgress, Progress, TrialSpec

ROOM = 64_000
"""The number of clients to provide local addresses for; all ports of these take far more."""


class Crowd(Closeable):
    """A context manager that leaves nothing running.

    ``most`` is the largest number of clients it may come to.
    """

    def __init__(self, interrupt: Interrupt, most: float) -> None:
        self._interrupt = interrupt
        self._room = int(min(most, ROOM))
        self._session: Session | None = None
        self._steps = 0
        self._on_progress: OnProgress | None = None

    def close(self) -> None:
        if self._session is not None:
            self._session.close()

    def measure(self, spec: TrialSpec, on_progress: OnProgress | None = None) -> Record:
        """Measure one step with the connections of ``spec``.

        Raises ``UserError`` if the first step is impossible. If the machine has too little for a
        later step, its record says so.
        """
        self._on_progress = on_progress
        self._steps += 1
        window = Phase(
            id=f"step {self._steps}",
            load=spec.load.pacing,
            connections=spec.load.connections,
            stop=spec.load.stop,
            at_ns=None,
        )
        session = self._open(spec)
        try:
            return session.measure(None, window, claim=spec.claim)
        except ShortageError as short:
            if self._steps == 1:
                raise
            return short.record

    def _open(self, spec: TrialSpec) -> Session:
        if self._session is not None and not self._session.over:
            return self._session
        if self._session is not None:
            self._session.close()
        spec = with_sources(spec, self._room)
        self._session = Session(spec, on_progress=self._report, interrupt=self._interrupt)
        return self._session

    def _report(self, progress: Progress) -> None:
        if self._on_progress is not None:
            self._on_progress(progress)
