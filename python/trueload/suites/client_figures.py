"""The figures of a client's row, for one repetition and for several combined. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trueload import stats
from trueload.record.schema import Record

NS_PER_US = 1_000


@dataclass(frozen=True)
class ClientFigures:
    """The figures of one repetition of a client.

    Rates are by the server's clock. `requests_open_*` and `connections_open_peak` count what the
    server saw at once. `opened` is the number of connections opened during the order.
    `server_saturation` is how busy the server was.
    """

    goodput_per_s: float | None
    answered_per_s: float | None
    error_share: float
    retries: int
    cpu_us_per_request: float | None
    requests_open_peak: int
    requests_open_mean: float
    connections_open_peak: int
    opened: int
    pool_ceiling_per_s: float
    ceiling_per_s: float
    ceiling_share: float | None
    server_saturation: float | None


def client_figures(record: Record) -> ClientFigures | None:
    """Return the figures of one record; None if a server was measured."""
    found, counts = record.client, record.counts
    if found is None:
        return None
    seen, cpu_ns = found.seen, found.cpu_ns_per_request
    return ClientFigures(
        goodput_per_s=found.goodput_per_s,
        answered_per_s=found.answered_per_s,
        error_share=1 - min(counts.ok, counts.issued) / counts.issued,
        retries=found.retries,
        cpu_us_per_request=None if cpu_ns is None else cpu_ns / NS_PER_US,
        requests_open_peak=seen.open_requests.peak,
        requests_open_mean=seen.open_requests.mean,
        connections_open_peak=seen.connections.peak,
        opened=seen.accepted,
        pool_ceiling_per_s=found.pool_ceiling_per_s,
        ceiling_per_s=found.ceiling_per_s,
        ceiling_share=found.ceiling_share,
        server_saturation=record.server.saturation if record.server is not None else None,
    )


def together(some: Sequence[ClientFigures]) -> ClientFigures | None:
    """Combine several repetitions: maxima of peaks, sums of counts, and medians of the rest.

    The orders may differ in size, so the share of errors is a median, too.
    """
    if not some:
        return None

    def middle(name: str) -> float | None:
        values = [getattr(each, name) for each in some]
        return stats.median([value for value in values if value is not None])

    return ClientFigures(
        goodput_per_s=middle("goodput_per_s"),
        answered_per_s=middle("answered_per_s"),
        error_share=middle("error_share") or 0.0,
        retries=sum(each.retries for each in some),
        cpu_us_per_request=middle("cpu_us_per_request"),
        requests_open_peak=max(each.requests_open_peak for each in some),
        requests_open_mean=middle("requests_open_mean") or 0.0,
        connections_open_peak=max(each.connections_open_peak for each in some),
        opened=sum(each.opened for each in some),
        pool_ceiling_per_s=some[0].pool_ceiling_per_s,
        ceiling_per_s=some[0].ceiling_per_s,
        ceiling_share=middle("ceiling_share"),
        server_saturation=middle("server_saturation"),
    )
