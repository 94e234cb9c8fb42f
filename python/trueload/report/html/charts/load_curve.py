"""Latency against load, from the steps of a search or from the seconds of a run by stages.

The largest load that held is marked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from trueload.report.html.charts.theme import (
    BAD,
    COUNT_EXPR,
    FONT_PX,
    GOOD,
    INK,
    PAPER,
    WARN,
    Palette,
    TitledChart,
    colours,
    data,
    finished,
    legend_below,
    readable,
    rule_at,
    time_axis,
)
from trueload.report.html.curves import RateLatency, largest_kept
from trueload.suites.steps import Search
from trueload.units import format_count, format_duration

OUTCOMES = {"kept": GOOD[0], "exceeded": BAD[0], "limited": WARN[0]}
SHAPES = ["circle", "triangle-up", "square"]


def of_search(search: Search, palette: Palette | None = None) -> TitledChart | None:
    """Return a line through the steps by load, with a point for each step by its outcome."""
    steps = sorted(search.steps, key=lambda step: step.load)
    points = [
        {"load": s.load, "ns": s.decisive_ns, "said": s.decisive_text, "outcome": s.outcome}
        for s in steps
        # How a server recovers is no matter of the load.
        if s.decisive_ns is not None and s.decisive_ns > 0 and s.stage != "recover"
    ]
    if len(points) < 2:
        return None
    values = [*(p["ns"] for p in points), search.limit_ns]
    y = time_axis(values, search.metric)  # type: ignore[arg-type]
    x = load_axis([p["load"] for p in points], search.unit)  # type: ignore[misc]
    own = colours([search.name], palette)[0]
    line = alt.Chart(data(_means(points))).mark_line(color=own, strokeWidth=1.5)
    dots = alt.Chart(data(points)).mark_point(filled=True, size=60, opacity=0.9)
    colour = alt.Color(
        "outcome:N",
        scale=alt.Scale(domain=list(OUTCOMES), range=list(OUTCOMES.values())),
        legend=legend_below(list(OUTCOMES)),
    )
    # Shapes tell them apart also where an invalid result takes the colours away.
    scale = alt.Scale(domain=list(OUTCOMES), range=SHAPES)
    shape = alt.Shape("outcome:N", scale=scale, legend=legend_below(list(OUTCOMES)))
    layers = [line.encode(x=x, y=y), dots.encode(x=x, y=y, color=colour, shape=shape)]
    layers.append(readable(points, x, y, _step_text))
    if search.limit_ns is not None:
        layers.append(rule_at(search.limit_ns, "y", BAD[0]))
    note = f"Dashed: the limit, {search.limit}."
    if search.largest is not None:
        layers += marked(search.largest, search.bound)
        note += " Upright: the largest load that was confirmed to keep it."
    if len(points) < len(steps):
        note += " Steps in which it was endless have no point."
    return TitledChart(
        "latency-against-load",
        f"Latency against load: {search.name}",
        search.sentence,
        finished(alt.layer(*layers)),
        note,
    )


def of_stages(
    name: str, points: Sequence[RateLatency], palette: Palette | None = None
) -> TitledChart | None:
    """Return each second of a run by stages, by the rate that was offered in it."""
    rows: list[dict[str, Any]] = []
    for point in points:
        for label, ns in (("p99", point.p99_ns), ("p50", point.p50_ns)):
            if ns:
                rows.append({"name": label, "load": point.rate_per_s, "ns": ns})
    if len({row["load"] for row in rows}) < 2:
        return None
    x = load_axis([row["load"] for row in rows], "offered requests/s")
    y = time_axis([row["ns"] for row in rows], "latency of each second")
    own, which = colours([name], palette)[0], ["p99", "p50"]
    fill = alt.Fill(
        "name:N",
        scale=alt.Scale(domain=which, range=[own, PAPER[0]]),
        legend=legend_below(which, symbolType="circle", symbolStrokeColor=own),
    )
    dots = alt.Chart(data(rows)).mark_point(stroke=own, strokeWidth=1.5, size=28)
    text = readable(rows, x, y, lambda row: f"{row['name']} {_text(row)}")
    layers = [dots.encode(x=x, y=y, fill=fill), text]
    note = "A point: one second of the window."
    if (largest := largest_kept(points)) is not None:
        layers += marked(largest, bound=largest == points[-1].rate_per_s)
        note += " Upright: up to this rate, all but 5 % of each second's requests were answered."
    return TitledChart(
        "latency-against-load",
        f"Latency against load: {name}",
        "Latency of each second against the rate that was offered in it. Kept up to"
        f" {'no rate' if largest is None else format_count(largest) + '/s'}.",
        finished(alt.layer(*layers)),
        note,
    )


def _step_text(row: dict[str, Any]) -> str:
    return f"{row['said']} at {format_count(row['load'])}, {row['outcome']}"


def _text(row: dict[str, Any]) -> str:
    return f"{format_duration(row['ns'])} at {format_count(row['load'])}"


def load_axis(loads: Sequence[float], title: str) -> Any:
    """Return an axis of loads, in powers of ten if they are far apart."""
    low, high = min(loads), max(loads)
    wide = low > 0 and high > 50 * low
    return alt.X(
        "load:Q",
        axis=alt.Axis(labelExpr=COUNT_EXPR, title=title, tickCount=6),
        scale=alt.Scale(type="log", nice=True) if wide else alt.Scale(zero=True, nice=True),
    )


def marked(load: float, bound: bool) -> list[Any]:
    """Return a vertical line at the largest safe load."""
    text = alt.Chart(data([{"at": load, "said": f"{'≥ ' if bound else ''}{load:,.6g}"}]))
    looks: dict[str, Any] = {"color": INK[0], "fontSize": FONT_PX, "fontWeight": "bold"}
    label = text.mark_text(align="right", dx=-5, y=10, **looks)
    return [
        rule_at(load, "x", INK[0], dash=False),
        label.encode(x="at:Q", text="said:N"),
    ]


def _means(points: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one point per load, as several steps of one load would make the line zigzag."""
    by_load: dict[float, list[float]] = {}
    for point in points:
        by_load.setdefault(point["load"], []).append(point["ns"])
    return [{"load": load, "ns": sum(some) / len(some)} for load, some in sorted(by_load.items())]
