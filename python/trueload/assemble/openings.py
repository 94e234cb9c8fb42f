"""The record's account of connections that the load opened, from what the engine timed. Pure."""

from __future__ import annotations

from trueload.protocol.plan import Measurement
from trueload.record import figures
from trueload.record.openings import Openings


def make_openings(measured: Measurement) -> Openings | None:
    """Return the account of the window; None if the load opened no connections."""
    found, counts = measured.openings, measured.counts
    if found is None:
        return None
    return Openings(
        connect_ns=figures.opening(found, figures.CONNECT, counts).figures,
        full_handshake_ns=figures.opening(found, figures.FULL, counts).figures,
        resumed_handshake_ns=figures.opening(found, figures.RESUMED, counts).figures,
        first_byte_ns=figures.opening(found, figures.FIRST_BYTE, counts).figures,
        histograms=found,
    )
