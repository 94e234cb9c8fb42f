"""The record's account of redirects, from what the engine counted. Pure."""

from __future__ import annotations

from trueload.protocol.plan import Measurement
from trueload.record import figures
from trueload.record.redirects import Redirects


def make_redirects(measured: Measurement) -> Redirects | None:
    """Return the account of the window; None if no redirects are followed."""
    found = measured.redirects
    if found is None:
        return None
    requests = sum(found.hops.values())
    hops = sum(int(count) * times for count, times in found.hops.items())
    return Redirects(
        followed=sum(found.statuses.values()),
        statuses=found.statuses,
        hops=found.hops,
        hops_mean=hops / requests if requests else None,
        redirect_ns=figures.complete(found.time).figures,
        histogram=found.time,
    )
