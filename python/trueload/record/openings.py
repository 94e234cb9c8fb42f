"""Connections that were opened by a schedule, in a record: when each step was done."""

from __future__ import annotations

from trueload.protocol import openings
from trueload.protocol.model import Model
from trueload.stats import Distribution


class Openings(Model):
    """The steps of the connections of the window, each from when the connection was due.
    ``connect_ns`` is to the established TCP connection, the handshakes to the end of TLS, and
    ``first_byte_ns`` to the first byte of the answer. A connection that did not get so far counts
    as slower than any. Nobody knows which kind a failed handshake would have been, so it counts for
    both kinds."""

    connect_ns: Distribution
    full_handshake_ns: Distribution
    resumed_handshake_ns: Distribution
    first_byte_ns: Distribution
    histograms: openings.Openings
