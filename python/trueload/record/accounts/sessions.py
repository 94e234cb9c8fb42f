"""Whole sessions of a scenario."""

from __future__ import annotations

from trueload.protocol.model import Model
from trueload.protocol.plan import Sessions, Sparse
from trueload.record.account import Account, TrialFacts
from trueload.record.sample import Sample
from trueload.stats import Distribution, merge_sparse


class SessionsRecord(Model):
    """Whole sessions that ended in the window. One request that fails makes a session fail."""

    begun: int
    ok: int
    failed: int
    unfinished: int
    """How many had not ended when the window did."""
    latency_ns: Distribution
    """The time of a session without its pauses: the sum of its requests' latencies. A session that
    failed has no time, and counts as slower."""
    latency: Sparse
    """The times of ``latency_ns`` as a sparse histogram of two digits."""


def of_sessions(sessions: SessionsRecord) -> Sample:
    """The time of whole sessions that have ended, without their pauses."""
    return Sample(merge_sparse([sessions.latency]), sessions.failed)


def renewed(sessions: SessionsRecord) -> SessionsRecord:
    """The same, with its times by the rule."""
    return sessions.model_copy(update={"latency_ns": of_sessions(sessions).figures})


def make_sessions(found: Sessions, _: TrialFacts) -> SessionsRecord:
    """What the record keeps of the window."""
    return renewed(SessionsRecord(**found.model_dump(), latency_ns=Distribution()))


SESSIONS = Account("sessions", "sessions", make_sessions, renew=renewed)
