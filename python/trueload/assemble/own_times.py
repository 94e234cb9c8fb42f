"""The time that the generator itself spent on requests, from its histograms: pure.

How: both histograms of a measurement are already those of all threads and hosts, added without
loss, so each percentile is computed once, from the sum. Must not know how the share is judged.
"""

from __future__ import annotations

from trueload.protocol.plan import Histograms
from trueload.record import figures
from trueload.record.schema import ClientTime, ClientTimes


def make_client_times(histograms: Histograms) -> ClientTimes:
    """The generator's own times as the record has them; a part is None where none was timed."""
    return ClientTimes(
        send=_client_time(histograms.send_lag), receive=_client_time(histograms.receive_lag)
    )


def _client_time(encoded: str | None) -> ClientTime | None:
    found = figures.complete(encoded).figures
    if found.p50 is None or found.p99 is None or found.max is None:
        return None
    return ClientTime(count=found.count, p50=found.p50, p99=found.p99, max=found.max)
