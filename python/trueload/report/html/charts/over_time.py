"""Each second of the window: latency, throughput beside the offered rate, and failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import altair as alt

from trueload.report.html.charts.theme import (
    COUNT_EXPR,
    QUIET,
    Palette,
    TitledChart,
    colours,
    data,
    finished,
    legend_below,
    readable,
    series_colour,
    time_axis,
    told,
)
from trueload.report.html.curves import SecondPoint
from trueload.units import format_count, format_duration

Courses = Mapping[str, Sequence[SecondPoint]]


def latency_over_time(
    courses: Courses, palette: Palette | None = None, what: str = "Latency"
) -> TitledChart | None:
    """Return the p99 of each second, a line per entry; a single entry also has a dashed median.

    Where no second has enough answers for a p99, it is the p50.
    """
    alone = len(courses) == 1
    points = [(name, point) for name, found in courses.items() for point in found]
    main = "p99" if any(point.p99_ns for _, point in points) else "p50"
    which = ["p99", "p50"] if alone else [main]
    rows: list[dict[str, Any]] = [
        {"name": name, "t": point.t_s, "which": each, "ns": point.at(each)}
        for name, point in points
        for each in which
    ]
    known = [row for row in rows if row["ns"]]
    if not known:
        return None
    names = list(courses)
    colour = colours(names[:1], palette)[0]
    dash = alt.StrokeDash(
        "which:N",
        scale=alt.Scale(domain=which, range=[[1, 0], [5, 4]][: len(which)]),
        legend=legend_below(which, symbolType="stroke", symbolStrokeColor=colour)
        if alone
        else None,
    )
    x = _seconds()
    y = time_axis([row["ns"] for row in rows], what.lower() if alone else f"{main} of each second")
    lines = alt.Chart(data(rows)).mark_line(strokeWidth=1.75)
    lines = lines.encode(x=x, y=y, color=series_colour(names, palette), strokeDash=dash)
    time = readable(known, x, y, lambda row: _text(row, row["which"], format_duration(row["ns"])))
    shown = {name: [point.at(main) for point in found] for name, found in courses.items()}
    return TitledChart(
        f"{what} over time".lower().replace(" ", "-"),
        f"{what} over time",
        f"{what}: the {main} of each second of the window. {_ranges(shown, format_duration)}",
        finished(alt.layer(lines, time)),
        "A gap: in that second the percentile lay among requests that failed, or nothing ended.",
    )


def throughput_over_time(
    courses: Courses, unit: str, palette: Palette | None = None, what: str = "Throughput"
) -> TitledChart | None:
    """Return the good answers of each second, with the offered rate as a dashed line."""
    offered = [
        {"t": point.t_s, "value": point.offered_per_s}
        for points in list(courses.values())[:1]
        for point in points
        if point.offered_per_s is not None
    ]
    rates = {name: [point.ok_per_s for point in points] for name, points in courses.items()}
    return _rates(what, courses, rates, unit, palette, offered)


def failures_over_time(
    courses: Courses, unit: str, palette: Palette | None = None
) -> TitledChart | None:
    """Return the failures of each second; None without any."""
    rates = {name: [point.failed_per_s for point in points] for name, points in courses.items()}
    failing = {name: found for name, found in rates.items() if any(found)}
    return _rates("Failures", courses, failing, f"failed {unit}", palette)


def _rates(
    what: str,
    courses: Courses,
    rates: Mapping[str, Sequence[float]],
    unit: str,
    palette: Palette | None,
    dashed: Sequence[dict[str, Any]] = (),
) -> TitledChart | None:
    """Return a rate over time, a line per entry; None without any."""
    rows = [
        {"name": name, "t": point.t_s, "value": value}
        for name, values in rates.items()
        for point, value in zip(courses[name], values, strict=True)
    ]
    if not rows:
        return None
    axis = alt.Axis(labelExpr=COUNT_EXPR, title=unit, tickCount=5)
    x, y = _seconds(), alt.Y("value:Q", axis=axis, scale=alt.Scale(zero=True, nice=True))
    lines = alt.Chart(data(rows)).mark_line(strokeWidth=1.75)
    layers = [lines.encode(x=x, y=y, color=series_colour(list(rates), palette))]
    if dashed:
        line = alt.Chart(data(dashed)).mark_line(color=QUIET[0], strokeDash=[5, 4], strokeWidth=1.5)
        layers.append(line.encode(x=x, y=y))
    layers.append(readable(rows, x, y, lambda row: _text(row, format_count(row["value"]), unit)))
    return TitledChart(
        f"{what.lower()}-over-time",
        f"{what} over time",
        f"{unit}, second by second. {_ranges(rates, format_count)}",
        finished(alt.layer(*layers)),
        "Dashed: the rate that was offered." if dashed else "",
    )


def _text(row: dict[str, Any], *words: str) -> str:
    return f"{row['name']}, {row['t']:g} s: {' '.join(words)}"


def _ranges(values: Mapping[str, Sequence[float | None]], shown: Callable[[float], str]) -> str:
    """Return the least and the greatest value of each entry."""
    known = {name: [each for each in found if each] for name, found in values.items()}
    return told({n: f"{shown(min(v))} to {shown(max(v))}" if v else "" for n, v in known.items()})


def _seconds() -> Any:
    axis = alt.Axis(title="seconds of the window", tickCount=6, tickMinStep=1, grid=False)
    return alt.X("t:Q", axis=axis, scale=alt.Scale(zero=True, nice=False))
