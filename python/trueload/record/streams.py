"""Streamed answers in a record: when parts came, and how many there were."""

from __future__ import annotations

from trueload.protocol.model import Model
from trueload.protocol.streams import StreamHistograms
from trueload.stats import Distribution


class Streams(Model):
    """The parts of streamed answers of the window. ``whole`` streams came to their end. ``parts``
    is how many parts came in all, ``parts_per_s`` how many per second of the window and its drain;
    ``together`` of them came at the same time as the part before, so that their gaps are 0.

    ``first_part_ns`` is from the scheduled send of a request to the first part (the time to first
    token); a request that failed has none, and counts as slower. ``gap_ns`` is from one part to the
    next (the time between tokens), also in streams that failed later; the gap in which a stream
    stalled counts as longer than any. ``parts_per_answer`` covers streams that came to their end.
    """

    whole: int
    parts: int
    parts_per_s: float | None
    together: int
    first_part_ns: Distribution
    gap_ns: Distribution
    parts_per_answer: Distribution
    histograms: StreamHistograms
