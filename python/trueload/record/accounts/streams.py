"""Streamed answers: when parts came, and how many there were."""

from __future__ import annotations

from collections.abc import Sequence

from trueload.protocol import streams as protocol
from trueload.protocol.model import Model
from trueload.protocol.streams import StreamHistograms
from trueload.protocol.sums import add_histograms, add_up
from trueload.protocol.tick import Counts
from trueload.record.account import Account, TrialFacts
from trueload.record.sample import Sample, complete, sample
from trueload.record.untimed import without_time
from trueload.stats import Distribution
from trueload.units import NS_PER_S

STALL = "timeout.stall"
"""The class of a stream whose next part did not come in time."""
FIRST_PART, GAP = "first_part_", "gap_"
"""Prefixes of percentiles: the time to the first part, and between parts."""


class Streams(Model):
    """The parts of streamed answers of the window."""

    whole: int
    """Streams that came to their end."""
    parts: int
    """Parts that came, in all streams."""
    parts_per_s: float | None
    """Parts per second of the part of the window that counts; without a good answer, of the window
    and its drain."""
    together: int
    """Parts that came at the same time as the part before, so that their gaps are 0."""
    first_part_ns: Distribution
    """From the scheduled send of a request to the first part (the time to first token); a request
    that failed has none, and counts as slower."""
    gap_ns: Distribution
    """From one part to the next (the time between tokens), also in streams that failed later; the
    gap in which a stream stalled counts as longer than any."""
    parts_per_answer: Distribution
    """The number of parts of each stream that was complete."""
    histograms: StreamHistograms


def first_part(of: StreamHistograms, counts: Counts) -> Sample:
    """Times from when a request was due to its first part; one that failed has none."""
    return sample(of.first_part, without_time(counts))


def gap(of: StreamHistograms, counts: Counts) -> Sample:
    """Times from one part of a stream to the next; the gap in which a stream stalled has no end."""
    return sample(of.gap, counts.failed.get(STALL, 0))


def add_streams(parts: Sequence[protocol.Streams]) -> protocol.Streams:
    return add_up(parts, histograms=add_histograms([part.histograms for part in parts]))


def make_streams(found: protocol.Streams, facts: TrialFacts) -> Streams:
    """What the record keeps of the window."""
    histograms, window = found.histograms, facts.window
    return Streams(
        **found.model_dump(exclude={"histograms"}),
        parts_per_s=_parts_per_s(found, facts),
        first_part_ns=first_part(histograms, window.counts).figures,
        gap_ns=gap(histograms, window.counts).figures,
        parts_per_answer=complete(histograms.parts_per_answer).figures,
        histograms=histograms,
    )


def _parts_per_s(found: protocol.Streams, facts: TrialFacts) -> float | None:
    """Parts per second, as bytes per second are counted: so many as come with each answer."""
    window = facts.window
    if facts.ok_per_s and window.counts.ok:
        return found.parts / window.counts.ok * facts.ok_per_s
    took_ns = window.window_ns + window.drain_ns
    return found.parts * NS_PER_S / took_ns if took_ns > 0 else None


STREAMS = Account(
    "streams",
    "streams",
    make_streams,
    add_streams,
    in_suites=True,
    samples={
        FIRST_PART: lambda kept, counts: first_part(kept.histograms, counts),
        GAP: lambda kept, counts: gap(kept.histograms, counts),
    },
)
