"""The outcome of a broadcast's messages: each was to reach every receiver once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trueload.protocol import broadcast as protocol
from trueload.protocol.broadcast import DeliveryHistograms
from trueload.protocol.model import Model
from trueload.protocol.sums import add_histograms, add_up
from trueload.record.account import Account, TrialFacts
from trueload.record.sample import Sample, complete, sample
from trueload.stats import Distribution
from trueload.units import NS_PER_S, format_count, format_duration, format_share


class Deliveries(Model):
    """Outcomes of the messages of a broadcast. Times per message are per host, too: when the first,
    median, 95th and last receiver on that host had it."""

    expected: int
    delivered: int
    lost: int
    duplicate: int
    out_of_order: int
    per_s: float | None
    """Delivered per second; null without a window."""
    delivery_ns: Distribution
    """Every delivery, from the send of its message."""
    first_ns: Distribution
    median_ns: Distribution
    p95_ns: Distribution
    last_ns: Distribution
    untimed: int = 0
    """Deliveries that came without the send time of another host."""
    negative: int = 0
    """Deliveries that seem to have come before they were sent, and count as taking no time."""
    negative_max_ns: int = 0
    """By how much they seem to, at most."""
    clock_bound_ns: int | None = None
    """By how much a time from one host to another is wrong at most; null with one host."""
    spread_ns: Distribution | None = None
    """For messages of another host, from their first receiver on a host to the last."""
    histograms: DeliveryHistograms


def add_deliveries(parts: Sequence[protocol.Deliveries]) -> protocol.Deliveries:
    """The sum of all, each counted where it arrived. Raises ``ValueError`` for junk."""
    return add_up(
        parts,
        negative_max_ns=max(part.negative_max_ns for part in parts),
        histograms=add_histograms([part.histograms for part in parts]),
    )


def make_deliveries(found: protocol.Deliveries, facts: TrialFacts) -> Deliveries:
    """What the record keeps of the window."""
    encoded, window_ns = found.histograms, facts.window.window_ns
    times: dict[str, Any] = {
        f"{name}_ns": complete(getattr(encoded, name)).figures
        for name in DeliveryHistograms.model_fields
        if name != "spread"
    }
    return Deliveries(
        **found.model_dump(exclude={"histograms"}),
        **times,
        per_s=found.delivered * NS_PER_S / window_ns if window_ns > 0 else None,
        spread_ns=None if encoded.spread is None else complete(encoded.spread).figures,
        clock_bound_ns=facts.clock_bound_ns,
        histograms=encoded,
    )


def of_deliveries(found: Deliveries) -> Sample:
    """Times from the send of a message to each of its receivers; a lost delivery has no time, nor
    has one whose send time the server changed."""
    changed = 0 if found.clock_bound_ns is None else found.untimed
    return sample(found.histograms.delivery, found.lost + changed)


def across_text(found: Deliveries) -> str:
    """How exact the times from one host to another are; '' if there are none."""
    if found.clock_bound_ns is None:
        return ""
    text = f"times between hosts are accurate to within {format_duration(found.clock_bound_ns)}"
    if found.delivery_ns.p50:
        text += f", {format_share(found.clock_bound_ns / found.delivery_ns.p50)} of the median"
    if found.negative:
        text += (
            f"; {format_count(found.negative)} seem to have come up to"
            f" {format_duration(found.negative_max_ns)} before they were sent, and count as 0"
        )
    return text


DELIVERIES = Account("deliveries", "deliveries", make_deliveries, add_deliveries)
