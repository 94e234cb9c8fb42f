"""Connections that the load opened by a schedule: when each step was done."""

from __future__ import annotations

from functools import partial

from trueload.protocol import openings as protocol
from trueload.protocol.model import Model
from trueload.protocol.sums import add_histograms
from trueload.protocol.tick import Counts
from trueload.record.account import Account, TrialFacts
from trueload.record.sample import Sample, sample
from trueload.record.untimed import without_time
from trueload.stats import Distribution, decode_histogram

CONNECT, FULL, RESUMED = "connect_", "full_handshake_", "resumed_handshake_"
FIRST_BYTE = "first_byte_"
"""Prefixes of percentiles: each step, from the schedule."""


class Openings(Model):
    """The steps of the connections of the window, each from when the connection was due. One that
    did not get so far counts as slower than any. Nobody knows which kind a failed handshake would
    have been, so it counts for both kinds."""

    connect_ns: Distribution
    """To the established TCP connection."""
    full_handshake_ns: Distribution
    """To the end of TLS, whose session was not resumed."""
    resumed_handshake_ns: Distribution
    """To the end of TLS, whose session was resumed."""
    first_byte_ns: Distribution
    """To the first byte of the answer."""
    histograms: protocol.Openings


def step_of(found: protocol.Openings, step: str, counts: Counts) -> Sample:
    """Times from when a connection was due to the step that a prefix names."""
    own: str | None = getattr(found, step.removesuffix("_"))
    if step == FIRST_BYTE and found.sessions:
        return sample(None, 0)  # a session has many answers
    if step == FIRST_BYTE:
        return sample(own, without_time(counts))
    alike = (own,) if step == CONNECT else (found.full_handshake, found.resumed_handshake)
    done = sum(decode_histogram(each).total for each in alike)
    due = found.sessions + counts.unsent if found.sessions else counts.scheduled
    return sample(own, max(0, due - done))


def make_openings(found: protocol.Openings, facts: TrialFacts) -> Openings:
    """What the record keeps of the window."""
    counts = facts.window.counts
    return Openings(
        connect_ns=step_of(found, CONNECT, counts).figures,
        full_handshake_ns=step_of(found, FULL, counts).figures,
        resumed_handshake_ns=step_of(found, RESUMED, counts).figures,
        first_byte_ns=step_of(found, FIRST_BYTE, counts).figures,
        histograms=found,
    )


def _of_record(step: str, kept: Openings, counts: Counts) -> Sample:
    return step_of(kept.histograms, step, counts)


OPENINGS = Account(
    "openings",
    "openings",
    make_openings,
    add_histograms,
    samples={step: partial(_of_record, step) for step in (CONNECT, FULL, RESUMED, FIRST_BYTE)},
)
