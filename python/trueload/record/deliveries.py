"""The outcome of a broadcast's messages, as a record has it."""

from __future__ import annotations

from trueload.protocol.broadcast import DeliveryHistograms
from trueload.protocol.model import Model
from trueload.stats import Distribution
from trueload.units import format_count, format_duration, format_share


class Deliveries(Model):
    """Outcomes of the messages of a broadcast: each was to reach every receiver once.
    ``delivery_ns`` covers every delivery, from the send of its message. ``first_ns``,
    ``median_ns``, ``p95_ns`` and ``last_ns`` have one value per message and host: when the first,
    median, 95th and last receiver on that host had it. ``per_s`` is null without a window.

    With several hosts, ``clock_bound_ns`` is by how much a time from one host to another is wrong
    at most; null with one. ``negative`` deliveries seem to have come before they were sent, by up
    to ``negative_max_ns``, and count as taking no time. ``untimed`` of those delivered came without
    the send time of another host. ``spread_ns`` is for messages of another host, from their first
    receiver on a host to the last.
    """

    expected: int
    delivered: int
    lost: int
    duplicate: int
    out_of_order: int
    per_s: float | None
    delivery_ns: Distribution
    first_ns: Distribution
    median_ns: Distribution
    p95_ns: Distribution
    last_ns: Distribution
    untimed: int = 0
    negative: int = 0
    negative_max_ns: int = 0
    clock_bound_ns: int | None = None
    spread_ns: Distribution | None = None
    histograms: DeliveryHistograms


def across_text(found: Deliveries) -> str:
    """How exact the times from one host to another are; '' if there are none."""
    if found.clock_bound_ns is None:
        return ""
    text = f"times between hosts are right to within {format_duration(found.clock_bound_ns)}"
    if found.delivery_ns.p50:
        text += f", {format_share(found.clock_bound_ns / found.delivery_ns.p50)} of the median"
    if found.negative:
        text += (
            f"; {format_count(found.negative)} seem to have come up to"
            f" {format_duration(found.negative_max_ns)} before they were sent, and count as 0"
        )
    return text
