"""HTTP/2: how requests spent their time in flight, and what the peers announced."""

from __future__ import annotations

from collections.abc import Sequence

from trueload.protocol import http2 as protocol
from trueload.protocol.http2 import HeaderBytes, SettingRange
from trueload.protocol.model import Model
from trueload.protocol.sums import add_up
from trueload.record.account import Account, TrialFacts


class WaitShares(Model):
    """Shares (0 to 1) of the time that all requests were in flight in the window, the wait for a
    stream included."""

    stream: float
    """The server permitted no more streams."""
    send_connection: float
    """Our body waited because the server's window for the connection was used up."""
    send_stream: float
    """Our body waited because the server's window for its stream was used up."""
    receive_connection: float
    """The server had used up our window of the connection, from its last bytes to its next. An
    upper bound, since all answers of the connection count as held up."""
    receive_stream: float
    """The server had used up our window of the stream, from its last bytes to its next."""


class Http2(Model):
    """HTTP/2 of a trial. The last four are the server's SETTINGS."""

    connections: int
    """Connections that made requests in the window, all over HTTP/2."""
    http1: int
    """Attempts of the whole trial that were answered in HTTP/1; if the server chooses the version,
    how many connections made requests in HTTP/1.1 in the window."""
    goaways: int
    """Connections that the server ended (GOAWAY)."""
    returned: int
    """Requests that came back undone (GOAWAY, REFUSED_STREAM)."""
    resets: int
    """Streams that we reset, most of them for a time-out."""
    streams: float | None
    """The mean number of streams in flight over all connections; null without a window."""
    waited: WaitShares | None
    """Null if nothing was in flight."""
    headers_out: HeaderBytes
    """Before and after compression, as ``headers_in``."""
    headers_in: HeaderBytes
    max_concurrent_streams: SettingRange
    initial_window_size: SettingRange
    max_frame_size: SettingRange
    header_table_size: SettingRange


def add_http2(parts: Sequence[protocol.Http2]) -> protocol.Http2:
    """The sum of all, with what all of their peers announced."""
    connected = [part for part in parts if part.connections]
    announced = (
        name
        for name, field in protocol.Http2.model_fields.items()
        if field.annotation is SettingRange
    )
    return add_up(
        parts,
        waits_ns=add_up([part.waits_ns for part in parts]),
        headers_out=add_up([part.headers_out for part in parts]),
        headers_in=add_up([part.headers_in for part in parts]),
        **{name: _all_announced([getattr(part, name) for part in connected]) for name in announced},
    )


def _all_announced(parts: Sequence[SettingRange]) -> SettingRange:
    """The smallest and the largest value of all; no limit (None) is larger than any."""
    limits = [part.least for part in parts if part.least is not None]
    most = [part.most for part in parts]
    return SettingRange(
        least=min(limits, default=None),
        most=max((each for each in most if each is not None), default=None)
        if None not in most
        else None,
    )


def make_http2(found: protocol.Http2, facts: TrialFacts) -> Http2:
    """What the record keeps of the window. Unless the server may choose the protocol, it has the
    HTTP/1 connections of all phases."""
    counts = found.model_dump(exclude={"streams_ns", "waits_ns"})
    if facts.generate.http2 is None or not facts.generate.http2.is_chosen:
        counts["http1"] = sum(
            phase.http2.http1 for phase in facts.phases if phase.http2 is not None
        )
    window_ns = facts.window.window_ns
    return Http2(
        **counts,
        streams=found.streams_ns / window_ns if window_ns > 0 else None,
        waited=_waited(found),
    )


def _waited(found: protocol.Http2) -> WaitShares | None:
    in_flight_ns = found.streams_ns + found.waits_ns.queued
    if in_flight_ns == 0:
        return None
    waits = ((name, getattr(found.waits_ns, name)) for name in WaitShares.model_fields)
    return WaitShares(**{name: wait_ns / in_flight_ns for name, wait_ns in waits})


HTTP2 = Account("http2", "http2", make_http2, add_http2, in_suites=True)
