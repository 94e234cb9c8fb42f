"""Measures a broadcast to so many clients: one engine, whose clients stay from step to step.

How: each step is a window of one session, for which clients join or leave; a step for which the
engine is no longer there begins a new session. Must not know which step comes next.
"""

from __future__ import annotations

from trueload.closing import Closing
from trueload.protocol.plan import Phase
from trueload.record.schema import Record
from trueload.trial.addresses import with_sources
from trueload.trial.run import Session, ShortageError
from trueload.trial.spec import Interrupt, OnProgress, Progress, TrialSpec

ROOM = 64_000
"""For how many clients local addresses are had ready; with all the ports of each it is far more."""


class Crowd(Closing):
    """A context manager that leaves nothing running. ``most`` are the clients it may come to."""

    def __init__(self, interrupt: Interrupt, most: float) -> None:
        self._interrupt = interrupt
        self._room = int(min(most, ROOM))
        self._session: Session | None = None
        self._steps = 0
        self._on_progress: OnProgress | None = None

    def close(self) -> None:
        """End the engine."""
        if self._session is not None:
            self._session.close()

    def measure(self, spec: TrialSpec, on_progress: OnProgress | None = None) -> Record:
        """One step with the connections of ``spec``. Raises ``UserError`` if not even the first
        one can be: a later one that this machine has too little for leaves a record of that."""
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
        self._session = Session(spec, on_progress=self._tell, interrupt=self._interrupt)
        return self._session

    def _tell(self, progress: Progress) -> None:
        if self._on_progress is not None:
            self._on_progress(progress)
