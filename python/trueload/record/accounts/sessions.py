"""Whole sessions of a scenario.

How: the end of a window cuts sessions, and long ones most, so those that have ended are too short.
Of one that was cut it is known that it takes longer than its age. The estimate of Kaplan and Meier
(1958) uses that: step by step, which share of the sessions that were that long ended then. Sessions
that began before the window are compared from the age that they had at its beginning (Lynden-Bell
1971). Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from pydantic import Field

from trueload.protocol.model import Model
from trueload.protocol.scenario import Sessions
from trueload.protocol.tick import Sparse
from trueload.record.account import Account, TrialFacts
from trueload.record.sample import Sample
from trueload.stats import Distribution, merge_sparse


class SessionsRecord(Model):
    """Whole sessions of the window. One request that fails makes a session fail."""

    begun: int
    ok: int
    failed: int
    unfinished: int
    """How many had not ended when the window did."""
    latency_ns: Distribution
    """The time of a session without its pauses: the sum of its requests' latencies. A session that
    failed has no time, and counts as slower. One that the window's end cut takes longer than its
    age."""
    latency: Sparse
    """The times of sessions that ended well as a sparse histogram of two digits."""
    entered: Sparse = Field(default_factory=dict)
    """The ages of sessions under way when the window began; empty in older records."""
    cut: Sparse = Field(default_factory=dict)
    """The ages of the unfinished ones; empty in older records."""


def of_sessions(sessions: SessionsRecord) -> Sample:
    """The time of whole sessions, without their pauses."""
    if not sessions.cut:
        return Sample(merge_sparse([sessions.latency]), sessions.failed)
    ended = sum(sessions.latency.values())
    known = with_cut(sessions)
    longer = ended + sessions.unfinished - sum(known.values())
    return Sample(merge_sparse([known]), sessions.failed + longer)


def with_cut(sessions: SessionsRecord) -> Mapping[int, int]:
    """How many sessions take each time, of all that ended well or were cut. Those that are missing
    take longer than any that ended. Failed ones have no time: they count as slower throughout."""
    entered, cut, ended = Counter(sessions.entered), sessions.cut, sessions.latency
    whole = sum(ended.values()) + sessions.unfinished
    entered[0] += whole + sessions.failed - sum(sessions.entered.values())
    at_risk, left, told = 0, 1.0, 0
    known = {}
    for index in sorted({*entered, *cut, *ended}):
        at_risk += entered[index]
        ends = ended.get(index, 0)
        if ends:
            left *= 1 - ends / max(ends, at_risk)
            so_far = round((1 - left) * (whole + sessions.failed))
            known[index], told = so_far - told, so_far
        at_risk -= ends + cut.get(index, 0)
    return known


def renewed(sessions: SessionsRecord) -> SessionsRecord:
    """The same, with its times by the rule."""
    return sessions.model_copy(update={"latency_ns": of_sessions(sessions).figures})


def make_sessions(found: Sessions, _: TrialFacts) -> SessionsRecord:
    """What the record keeps of the window."""
    return renewed(SessionsRecord(**found.model_dump(), latency_ns=Distribution()))


SESSIONS = Account("sessions", "sessions", make_sessions, renew=renewed)
