"""Clients of a broadcast against the p95 of its receipts, with the published curves behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from trueload.published.tables import PublishedCurve
from trueload.report.html.charts.theme import (
    BAD,
    COUNT_EXPR,
    QUIET,
    SERIES_MAX,
    Palette,
    TitledChart,
    data,
    finished,
    rule_at,
    series_colour,
)
from trueload.suites.steps import Search, Step
from trueload.units import NS_PER_MS, counted

AROUND = 1.15  # the published curves are shown up to this multiple of our range


def crowd(
    searches: Sequence[Search],
    published: Sequence[PublishedCurve],
    palette: Palette | None = None,
) -> TitledChart | None:
    """Return a chart with a line per subject, and a grey one per published curve.

    None without two points.
    """
    points = [
        (search.name, step.load, p95_ns / NS_PER_MS)
        for search in searches[:SERIES_MAX]
        for step in _by_clients(search.steps)
        if (p95_ns := step.latency.known("p95")) is not None
    ]
    if len(points) < 2:
        return None
    limits = {search.limit_ns / NS_PER_MS for search in searches if search.limit_ns is not None}
    most = AROUND * max(clients for _, clients, _ in points)
    most_ms = AROUND * max([*limits, *(ms for _, _, ms in points), 1.0])
    grey = [
        {"curve": curve.name, "clients": clients, "ms": ms}
        for curve in published
        for clients, ms in curve.p95_ms
        if clients <= most and ms <= most_ms
    ]
    x = alt.X(
        "clients:Q",
        axis=alt.Axis(labelExpr=COUNT_EXPR, title="clients", tickCount=6),
        scale=alt.Scale(domain=[0, most], nice=False),
    )
    y = alt.Y(
        "ms:Q",
        axis=alt.Axis(title="p95 of the receipt, ms", tickCount=6),
        scale=alt.Scale(domain=[0, most_ms], nice=False),
    )
    layers: list[Any] = []
    if grey:
        behind = alt.Chart(data(grey)).mark_line(color=QUIET[0], strokeWidth=1, opacity=0.45)
        layers.append(behind.encode(x=x, y=y, detail="curve:N"))
    names = list(dict.fromkeys(name for name, _, _ in points))
    rows = [{"name": name, "clients": clients, "ms": ms} for name, clients, ms in points]
    front = alt.Chart(data(rows)).mark_line(strokeWidth=2.25, point={"size": 26, "filled": True})
    layers.append(front.encode(x=x, y=y, color=series_colour(names, palette, legend=True)))
    layers += [rule_at(limit, "y", BAD[0]) for limit in limits]
    left = len(searches) - len(names)
    kept = [row for row in map(_largest, searches[:SERIES_MAX]) if row is not None]
    if kept:
        best = alt.Chart(data(kept)).mark_point(filled=True, size=130, shape="diamond", opacity=1)
        layers.append(best.encode(x=x, y=y, color=series_colour(names, palette, legend=False)))
    note = "Dashed: the limit."
    if kept:
        note += " Diamond: the most clients that were confirmed to keep it."
    if _has_line(grey):
        note += " Grey: the published curves, each server on a machine of its own (2016)."
    if left > 0:
        note += f" {left} more are in the table only."
    return TitledChart(
        "clients",
        "Clients against the p95 of the receipt",
        f"{counted(len(names), 'subject')}, and"
        f" {counted(len(published), 'published curve')} behind them.",
        finished(alt.layer(*layers).resolve_scale(color="independent")),
        note,
    )


def _largest(search: Search) -> dict[str, Any] | None:
    """Return the point of the largest confirmed number of clients; None without one."""
    at = [step.latency.known("p95") for step in search.steps if step.load == search.largest]
    known = [ns for ns in at if ns is not None]
    if not known:
        return None
    return {"name": search.name, "clients": search.largest, "ms": known[-1] / NS_PER_MS}


def _has_line(grey: Sequence[dict[str, Any]]) -> bool:
    """Whether any published curve has two points to draw a line between."""
    curves = [row["curve"] for row in grey]
    return len(curves) > len(set(curves))


def _by_clients(steps: Sequence[Step]) -> list[Step]:
    """Return the last step for each number of clients."""
    return [step for _, step in sorted({step.load: step for step in steps}.items())]
