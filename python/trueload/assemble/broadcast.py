"""What a record says of a broadcast's deliveries, and of the memory that each client costs.

Pure. Must not know processes, or how anything is judged.
"""

from __future__ import annotations

from trueload.machine.accounting import TreeSample
from trueload.protocol.plan import Measurement
from trueload.record import figures
from trueload.record.schema import Deliveries
from trueload.units import NS_PER_S

# With fewer connections what a server needs once, for its first requests, is most of what it grows.
TELLING_CONNECTIONS = 100


def make_deliveries(measured: Measurement) -> Deliveries | None:
    """As the record has them; None where nothing is broadcast."""
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
        histograms=of,
    )


def with_joining(measured: Measurement, joined: Measurement) -> Measurement:
    """A window with what was seen of its connections in the phase before it, in which they were
    set up and nothing was sent."""
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
    """Growth of a tree's resident memory since it was ``idle``, for each of the most connections
    that it had since then; None where it was not seen then, has not grown, or has too few to tell.
    """
    if idle is None or connections < TELLING_CONNECTIONS:
        return None
    grown = rss_bytes(now) - rss_bytes(idle)
    return grown / connections if grown > 0 else None


def rss_bytes(sample: TreeSample) -> int:
    """Resident memory of all processes of a tree; what they share is counted in each."""
    return sum(process.rss_bytes for process in sample.processes.values())
