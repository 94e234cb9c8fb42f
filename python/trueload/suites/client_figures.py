"""The figures of a client's row, for one repetition and for several combined. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from trueload import repetitions
from trueload.record.schema import Record

NS_PER_US = 1_000


@dataclass(frozen=True)
class ClientFigures:
    """The figures of one repetition of a client, or of several. Rates are by the server's clock."""

    goodput_per_s: float | None
    answered_per_s: float | None
    error_share: float
    retries: int
    cpu_us_per_request: float | None
    requests_open_peak: int
    """What the server saw at once, as the two below."""
    requests_open_mean: float
    connections_open_peak: int
    opened: int
    """Connections opened during the order."""
    pool_ceiling_per_s: float
    ceiling_per_s: float
    ceiling_share: float | None
    server_saturation: float | None
    """How busy the server was."""


# Of the other figures several repetitions have the median: orders may differ in size.
COMBINED: dict[str, Callable[[Sequence[Any]], Any]] = {
    "retries": sum,
    "opened": sum,
    "requests_open_peak": max,
    "connections_open_peak": max,
}


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


def known(some: Sequence[object], name: str) -> list[Any]:
    """The values of one attribute, as far as they are known."""
    values = (getattr(each, name) for each in some)
    return [value for value in values if value is not None]


def together(some: Sequence[ClientFigures]) -> ClientFigures | None:
    """Combine several repetitions: maxima of peaks, sums of counts, and medians of the rest."""
    if not some:
        return None
    found: dict[str, Any] = {}
    for each in fields(ClientFigures):
        found[each.name] = COMBINED.get(each.name, repetitions.median)(known(some, each.name))
    return ClientFigures(**found)
