"""Latency by percentile, to show where the tail begins.

Each further nine takes the same width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt

from trueload.report.html.charts.theme import (
    Palette,
    TitledChart,
    data,
    finished,
    series_colour,
    time_axis,
)
from trueload.report.html.curves import PercentilePoint
from trueload.units import counted

NINES_EXPR = (
    "datum.value < 3 ? '50' : datum.value < 11 ? '90' :"
    " datum.value < 101 ? '99' : datum.value < 1001 ? '99.9' : '99.99'"
)
TICKS = [2, 10, 100, 1_000, 10_000]


def percentiles(
    curves: Mapping[str, Sequence[PercentilePoint]], palette: Palette | None = None
) -> TitledChart | None:
    """Return a line per entry; None if nothing ended well."""
    shown = {name: points for name, points in curves.items() if len(points) > 1}
    if not shown:
        return None
    rows = [
        {"name": name, "nines": 1 / (1 - point.share), "ns": max(point.ns, 1)}
        for name, points in shown.items()
        for point in points
    ]
    x = alt.X(
        "nines:Q",
        scale=alt.Scale(type="log", domain=[1, 10_000]),
        axis=alt.Axis(
            values=TICKS,
            labelExpr=NINES_EXPR,
            labelOverlap=False,
            title="% of the requests that were as quick",
        ),
    )
    y = time_axis([row["ns"] for row in rows], "latency")  # type: ignore[misc]
    chart = (
        alt.Chart(data(rows))
        .mark_line(strokeWidth=2, interpolate="step-after")
        .encode(x=x, y=y, color=series_colour(list(shown), palette))
    )
    return TitledChart(
        "percentiles",
        "Latency by percentile",
        f"Latency from the quickest request to 99.99 %: {counted(len(shown), 'entry', 'entries')}.",
        finished(chart),
        "A line ends where nothing more is known: too few requests, or some failed or never ended.",
    )
