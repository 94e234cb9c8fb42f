"""The deliveries of a broadcast that several engines shared, as if one had counted them. Pure:
every delivery was counted at the engine where it arrived, so that all is added up.
"""

from __future__ import annotations

from collections.abc import Sequence

from trueload.fleet.histograms import merge_histogram
from trueload.plan import Deliveries, DeliveryHistograms


def merge_deliveries(parts: Sequence[Deliveries | None]) -> Deliveries | None:
    """The sum of all; None where nothing was broadcast. Raises ``ValueError`` for junk."""
    found = [part for part in parts if part is not None]
    if not found:
        return None
    names = DeliveryHistograms.model_fields
    histograms = {
        name: merge_histogram(getattr(part.histograms, name) for part in found) for name in names
    }
    return Deliveries(
        expected=sum(part.expected for part in found),
        delivered=sum(part.delivered for part in found),
        lost=sum(part.lost for part in found),
        duplicate=sum(part.duplicate for part in found),
        out_of_order=sum(part.out_of_order for part in found),
        untimed=sum(part.untimed for part in found),
        histograms=DeliveryHistograms(**histograms),
    )
