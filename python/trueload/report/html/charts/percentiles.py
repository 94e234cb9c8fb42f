"""Times by percentile, to show where the tail begins, and the latency by step.

Each further nine takes the same width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from trueload.report.html.charts.theme import (
    NS_EXPR,
    ROW_PX,
    Palette,
    TitledChart,
    colours,
    data,
    finished,
    readable,
    series_colour,
    time_axis,
    told,
    two_bars,
)
from trueload.report.html.curves import PercentilePoint
from trueload.report.quantile import quantile_text
from trueload.stats import Distribution
from trueload.units import format_duration

NINES_EXPR = (
    "datum.value < 3 ? '50' : datum.value < 11 ? '90' :"
    " datum.value < 101 ? '99' : datum.value < 1001 ? '99.9' : '99.99'"
)
TICKS = [2, 10, 100, 1_000, 10_000]
TOLD = (0.5, 0.99, 0.999)
BARS_MAX = 30
# Values can be read off from the median on; below it nobody looks, and few requests say nothing.
MEDIAN = 2


def percentiles(
    curves: Mapping[str, Sequence[PercentilePoint]],
    palette: Palette | None = None,
    what: str = "Latency",
) -> TitledChart | None:
    """Return a line per entry; None if nothing ended well.

    Parts that came together have no gap, which a logarithmic axis cannot show.
    """
    found = {name: [point for point in curve if point.ns > 1] for name, curve in curves.items()}
    shown = {name: points for name, points in found.items() if len(points) > 1}
    if not shown:
        return None
    rows: list[dict[str, Any]] = [
        {"name": name, "nines": 1 / (1 - point.share), "ns": point.ns}
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
            title="% that were as quick",
        ),
    )
    y = time_axis([row["ns"] for row in rows], what.lower())
    lines = (
        alt.Chart(data(rows))
        .mark_line(strokeWidth=2, interpolate="step-after")
        .encode(x=x, y=y, color=series_colour(list(shown), palette))
    )
    return TitledChart(
        f"{what} percentiles".lower().replace(" ", "-").removeprefix("latency-"),
        f"{what} by percentile",
        f"{what} by percentile. {told({name: _told(points) for name, points in shown.items()})}",
        finished(
            alt.layer(lines, readable([r for r in rows if r["nines"] >= MEDIAN], x, y, _text))
        ),
        "A line ends where nothing more is known: too few requests, or some failed or never ended.",
    )


def by_step(
    name: str, what: str, steps: Mapping[str, Distribution], palette: Palette | None = None
) -> TitledChart | None:
    """Return the p50 and the p99 of each step or request; None with fewer than two of them."""
    rows: list[dict[str, Any]] = [
        {
            "name": step,
            "p50": times.known("p50"),
            "p99": times.known("p99"),
            "said": " / ".join(quantile_text(times.at(each)) for each in ("p50", "p99")),
            "colour": colours([name], palette)[0],
        }
        for step, times in steps.items()
        if times.count
    ][:BARS_MAX]
    if len(rows) < 2:
        return None
    axis = alt.Axis(labelExpr=NS_EXPR, title="latency", tickCount=4)
    _, _, bars = two_bars(rows, ("p50", "p99"), axis=axis)
    return TitledChart(
        "latency-by-step",
        f"Latency by {what}: {name}",
        f"p50 / p99. {told({row['name']: row['said'] for row in rows})}",
        finished(alt.layer(*bars), height=ROW_PX * len(rows)),
        "p50 / p99: the bar of the p99 is the pale one.",
    )


def _text(row: dict[str, Any]) -> str:
    return f"{row['name']}: p{100 - 100 / row['nines']:.4g} {format_duration(row['ns'])}"


def _told(points: Sequence[PercentilePoint]) -> str:
    """Return a few percentiles in words."""
    found = {share: [p.ns for p in points if p.share >= share] for share in TOLD}
    return ", ".join(f"p{100 * s:g} {format_duration(ns[0])}" for s, ns in found.items() if ns)
