"""The record's account of a broadcast's deliveries, and of the memory that each client costs.

Pure. Must not know: processes, or how anything is judged.
"""

from __future__ import annotations

from trueload.machine.accounting import TreeSample
from trueload.protocol.plan import Measurement
from trueload.record import figures
from trueload.record.deliveries import Deliveries
from trueload.units import NS_PER_S

# Below this many connections, most of a server's growth is what it allocates once at its start.
MEANINGFUL_CONNECTIONS = 100


def make_deliveries(measured: Measurement, clock_bound_ns: int | None = None) -> Deliveries | None:
    """Return the deliveries for the record; None if nothing is broadcast. ``clock_bound_ns`` is for
    times from one host to another."""
    found = measured.deliveries
    if found is None:
        return None
    of = found.histograms
    delivery, first, median, p95, last = (
        figures.complete(encoded).figures
        for encoded in (of.delivery, of.first, of.median, of.p95, of.last)
    )
    spread = None if of.spread is None else figures.complete(of.spread).figures
    window_ns = measured.window_ns
    return Deliveries(
        **found.model_dump(exclude={"histograms"}),
        per_s=found.delivered * NS_PER_S / window_ns if window_ns > 0 else None,
        delivery_ns=delivery,
        first_ns=first,
        median_ns=median,
        p95_ns=p95,
        last_ns=last,
        spread_ns=spread,
        clock_bound_ns=clock_bound_ns,
        histograms=of,
    )


def with_joining(measured: Measurement, joined: Measurement) -> Measurement:
    """Return a window's measurement with the connection figures of the phase before it.

    In that phase the window's connections were set up and nothing was sent.
    """
    before, after = joined.connections, measured.connections
    connections = after.model_copy(
        update={
            "failed": before.failed,
            "set_up_ns": before.set_up_ns,
            "dropped": before.dropped + after.dropped,
            "reasons": {**after.reasons, **before.reasons},
        }
    )
    histograms = measured.histograms.model_copy(update={"connect": joined.histograms.connect})
    return measured.model_copy(update={"connections": connections, "histograms": histograms})


def bytes_per_connection(
    idle: TreeSample | None, now: TreeSample, connections: int
) -> float | None:
    """Return the growth of the tree's resident memory since ``idle``, per connection, in bytes.

    ``connections`` is the largest number of connections since then. None if there is no idle
    sample, if memory has not grown, or with fewer than ``MEANINGFUL_CONNECTIONS`` connections.
    """
    if idle is None or connections < MEANINGFUL_CONNECTIONS:
        return None
    grown = rss_bytes(now) - rss_bytes(idle)
    return grown / connections if grown > 0 else None


def rss_bytes(sample: TreeSample) -> int:
    """The resident memory of all processes of a tree; shared pages count once per process."""
    return sum(process.rss_bytes for process in sample.processes.values())
