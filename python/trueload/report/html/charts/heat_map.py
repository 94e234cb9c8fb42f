"""A client's throughput by pools and concurrency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from trueload.report.html.charts.ranking import short_number
from trueload.report.html.charts.theme import (
    FONT_PX,
    QUIET,
    SERIES,
    Palette,
    TitledChart,
    data,
    finished,
)

CELL_PX = 30
# The scale goes from faint to the light shade of the client's colour; dark text is readable on
# both.
FAINT, DARK = "#eef1f6", "#11151c"


@dataclass(frozen=True)
class Field:
    """One cell, with ``pools`` such as ``4 x 256`` (count x size).

    ``value`` is in requests/s, None if the cell is not ranked.
    """

    pools: str
    pool_order: tuple[int, int]
    concurrency: int
    value: float | None


def heat_map(
    name: str, fields: Sequence[Field], palette: Palette | None = None
) -> TitledChart | None:
    """Return pools against concurrency; None with fewer than two cells, or without any figure."""
    known = [field for field in fields if field.value is not None]
    if len(fields) < 2 or not known:
        return None
    pools = [pool for _, pool in sorted({(f.pool_order, f.pools) for f in fields})]
    most = max(field.value or 0.0 for field in known) or 1.0
    rows = [
        {
            "pools": field.pools,
            "concurrency": str(field.concurrency),
            "value": field.value,
            "said": "invalid" if field.value is None else short_number(field.value),
        }
        for field in fields
    ]
    levels = [str(level) for level in sorted({field.concurrency for field in fields})]
    x = alt.X("concurrency:N", sort=levels, axis=alt.Axis(title="requests at once", labelAngle=0))
    y = alt.Y("pools:N", sort=pools, axis=alt.Axis(title="pools x connections each"))
    base = alt.Chart(data(rows))
    cells = base.transform_filter("isValid(datum.value)").mark_rect()
    full = SERIES[(palette or {}).get(name, 0)][1]
    shade = alt.Scale(domain=[0, most], range=[FAINT, full], interpolate="rgb")
    colour = alt.Color("value:Q", scale=shade, legend=None)
    good = base.transform_filter("isValid(datum.value)").mark_text(fontSize=FONT_PX, color=DARK)
    bad = base.transform_filter("!isValid(datum.value)").mark_text(fontSize=FONT_PX, color=QUIET[0])
    chart = alt.layer(
        cells.encode(x=x, y=y, color=colour),
        good.encode(x=x, y=y, text="said:N"),
        bad.encode(x=x, y=y, text="said:N"),
    ).resolve_scale(color="independent")
    return TitledChart(
        "heat-map",
        f"Requests/s by pools and concurrency: {name}",
        f"Throughput of {name} in {len(fields)} cells; the most is {short_number(most)}.",
        finished(chart, height=CELL_PX * len(pools)),
        "Invalid cells have no figure: what failed is no throughput.",
    )
