"""The time that the generator itself spent on requests, from its histograms. Pure.

How: both histograms of a measurement are already lossless sums over all threads and hosts. Each
percentile is therefore computed once, from the sum. Must not know: how the share is judged.
"""

from __future__ import annotations

from trueload.protocol.plan import Histograms
from trueload.record import figures
from trueload.record.schema import ClientTime, ClientTimes


def make_client_times(histograms: Histograms) -> ClientTimes:
    """Return the generator's own times for the record; a part is None if nothing was timed."""
    return ClientTimes(
        send=_client_time(histograms.send_lag), receive=_client_time(histograms.receive_lag)
    )


def _client_time(encoded: str | None) -> ClientTime | None:
    found = figures.complete(encoded)
    p50, p99, longest = (found.percentile(share).value for share in (0.5, 0.99, 1))
    if p50 is None or p99 is None or longest is None:
        return None
    return ClientTime(count=found.count, p50=p50, p99=p99, max=longest)
