"""The record's account of streamed answers, from what the engine counted. Pure."""

from __future__ import annotations

from trueload.protocol.plan import Measurement
from trueload.record import figures
from trueload.record.streams import Streams
from trueload.units import NS_PER_S


def make_streams(measured: Measurement) -> Streams | None:
    """Return the account of the window; None if answers are no streams."""
    found = measured.streams
    if found is None:
        return None
    histograms, took_ns = found.histograms, measured.window_ns + measured.drain_ns
    return Streams(
        whole=found.whole,
        parts=found.parts,
        parts_per_s=found.parts * NS_PER_S / took_ns if took_ns > 0 else None,
        together=found.together,
        first_part_ns=figures.first_part(histograms, measured.counts).figures,
        gap_ns=figures.gap(histograms, measured.counts).figures,
        parts_per_answer=figures.complete(histograms.parts_per_answer).figures,
        histograms=histograms,
    )
