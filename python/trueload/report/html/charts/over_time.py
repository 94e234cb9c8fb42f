"""Each second of the window: latency, and throughput beside the offered rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from trueload.report.html.charts.theme import (
    QUIET,
    Palette,
    TitledChart,
    colours,
    count_axis,
    data,
    finished,
    legend_below,
    series_colour,
    time_axis,
)
from trueload.report.html.curves import SecondPoint

Courses = Mapping[str, Sequence[SecondPoint]]


def latency_over_time(courses: Courses, palette: Palette | None = None) -> TitledChart | None:
    """Return the p99 of each second, a line per entry; a single entry also has a dashed median."""
    alone = len(courses) == 1
    rows: list[dict[str, Any]] = []
    for name, points in courses.items():
        for point in points:
            of = {"name": name, "t": point.t_s}
            rows.append({**of, "which": "p99", "ns": point.p99_ns})
            if alone:
                rows.append({**of, "which": "p50", "ns": point.p50_ns})
    if not any(row["ns"] for row in rows):
        return None
    names = list(courses)
    which = ["p99", "p50"] if alone else ["p99"]
    colour = colours(names[:1], palette)[0]
    dash = alt.StrokeDash(
        "which:N",
        scale=alt.Scale(domain=which, range=[[1, 0], [5, 4]][: len(which)]),
        legend=legend_below(which, symbolType="stroke", symbolStrokeColor=colour)
        if alone
        else None,
    )
    chart = (
        alt.Chart(data(rows))
        .mark_line(strokeWidth=1.75)
        .encode(
            x=_seconds(),
            y=time_axis([row["ns"] for row in rows], "latency" if alone else "p99 of each second"),
            color=series_colour(names, palette),
            strokeDash=dash,
        )
    )
    what = "The median and the p99" if alone else "The p99"
    return TitledChart(
        "latency-over-time",
        "Latency over time",
        f"{what} of each second of the window.",
        finished(chart),
        "A gap: in that second the percentile lay among requests that failed, or nothing ended.",
    )


def throughput_over_time(
    courses: Courses, unit: str, palette: Palette | None = None
) -> TitledChart | None:
    """Return the good answers of each second, with the offered rate as a dashed line."""
    rows = [
        {"name": name, "t": point.t_s, "value": point.ok_per_s}
        for name, points in courses.items()
        for point in points
    ]
    if not rows:
        return None
    x, y = _seconds(), count_axis(unit)
    lines = (
        alt.Chart(data(rows))
        .mark_line(strokeWidth=1.75)
        .encode(x=x, y=y, color=series_colour(list(courses), palette))
    )
    layers = [lines]
    offered = [
        {"t": point.t_s, "value": point.offered_per_s}
        for point in next(iter(courses.values()))
        if point.offered_per_s is not None
    ]
    if offered:
        dashed = alt.Chart(data(offered)).mark_line(
            color=QUIET[0], strokeDash=[5, 4], strokeWidth=1.5
        )
        layers.append(dashed.encode(x=x, y=y))
    return TitledChart(
        "throughput-over-time",
        "Throughput over time",
        f"{unit} that ended well, second by second.",
        finished(alt.layer(*layers)),
        "Dashed: the rate that was offered." if offered else "",
    )


def _seconds() -> Any:
    axis = alt.Axis(title="seconds of the window", tickCount=6, tickMinStep=1, grid=False)
    return alt.X("t:Q", axis=axis, scale=alt.Scale(zero=True, nice=False))
