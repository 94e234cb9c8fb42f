"""Redirects in a record: how many were followed, and how long they took."""

from __future__ import annotations

from trueload.protocol.model import Model
from trueload.stats import Distribution


class Redirects(Model):
    """The redirects of the window; requests and latency are those of the whole chains.

    ``followed`` redirects were followed, ``statuses`` has them by status code, also those of
    requests that failed later. ``hops`` counts the requests that ended well, by the number of
    redirects before their final answers. ``hops_mean`` is their mean; null if no request ended
    well. ``redirect_ns`` is how long each redirect took: from the send of the request, or from the
    redirect before it, to its last byte. ``histogram`` has these times.
    """

    followed: int
    statuses: dict[str, int]
    hops: dict[str, int]
    hops_mean: float | None
    redirect_ns: Distribution
    histogram: str | None
