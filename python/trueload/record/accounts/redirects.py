"""Redirects: how many were followed, and how long they took."""

from __future__ import annotations

from collections.abc import Sequence

from trueload import hdr
from trueload.protocol import redirects as protocol
from trueload.protocol.model import Model
from trueload.protocol.sums import add_up
from trueload.record.account import Account, TrialFacts
from trueload.record.sample import complete
from trueload.stats import Distribution


class Redirects(Model):
    """The redirects of the window; requests and latency are those of the whole chains."""

    followed: int
    statuses: dict[str, int]
    """Redirects by status code, also those of requests that failed later."""
    hops: dict[str, int]
    """Requests that ended well, by the number of redirects before their final answers."""
    hops_mean: float | None
    """Redirects before a final answer, on average; null if no request ended well."""
    redirect_ns: Distribution
    """From the send of the request, or from the redirect before, to a redirect's last byte."""
    histogram: str | None
    """The times of ``redirect_ns``."""


def add_redirects(parts: Sequence[protocol.Redirects]) -> protocol.Redirects:
    return add_up(parts, time=hdr.added([part.time for part in parts]))


def make_redirects(found: protocol.Redirects, _: TrialFacts) -> Redirects:
    """What the record keeps of the window."""
    requests = sum(found.hops.values())
    hops = sum(int(count) * times for count, times in found.hops.items())
    return Redirects(
        followed=sum(found.statuses.values()),
        statuses=found.statuses,
        hops=found.hops,
        hops_mean=hops / requests if requests else None,
        redirect_ns=complete(found.time).figures,
        histogram=found.time,
    )


REDIRECTS = Account("redirects", "redirects", make_redirects, add_redirects, in_suites=True)
