"""The record's account of HTTP/2, from what the engine counted. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from trueload.protocol import http2
from trueload.protocol.plan import Generate, Measurement
from trueload.record.http2 import Http2, Waited

NOT_IN_RECORD = {"streams_ns", "waits_ns"}


def make_http2(
    generate: Generate, measured: Measurement, phases: Sequence[Measurement]
) -> Http2 | None:
    """Return the account of the window; None for other protocols, and without a measurement.

    Unless the server may choose the protocol, it counts the HTTP/1 connections of all phases.
    """
    found = measured.http2
    if found is None:
        return None
    counts = {name: getattr(found, name) for name in http2.Http2.model_fields}
    if generate.http2 is None or not generate.http2.is_chosen:
        counts["http1"] = sum(phase.http2.http1 for phase in phases if phase.http2 is not None)
    window_ns = measured.window_ns
    return Http2(
        **{name: value for name, value in counts.items() if name not in NOT_IN_RECORD},
        streams=found.streams_ns / window_ns if window_ns > 0 else None,
        waited=_waited(found),
    )


def _waited(found: http2.Http2) -> Waited | None:
    in_flight_ns = found.streams_ns + found.waits_ns.queued
    if in_flight_ns == 0:
        return None
    waits = ((name, getattr(found.waits_ns, name)) for name in Waited.model_fields)
    return Waited(**{name: wait_ns / in_flight_ns for name, wait_ns in waits})
