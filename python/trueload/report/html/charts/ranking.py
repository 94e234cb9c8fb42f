"""The ranking: a bar per entry, with the interval of its median."""

from __future__ import annotations

from typing import Any

import altair as alt

from trueload.record.bound import at_least
from trueload.report.html.charts.theme import (
    BAR_DY,
    BAR_PX,
    COUNT_EXPR,
    GREY,
    INK,
    ROW_PX,
    Palette,
    TitledChart,
    colours,
    data,
    finished,
    named_rows,
)
from trueload.suites.load_tables import LoadTable
from trueload.suites.summary import Summary
from trueload.units import counted

BARS_MAX = 30
FADED = 0.35


def ranking(section: LoadTable, palette: Palette | None = None) -> TitledChart | None:
    """Return ranked entries as bars, with invalid ones grey below; None with fewer than two."""
    shown = [e for e in section.measured if e.score is not None][:BARS_MAX]
    if len(shown) < 2:
        return None
    names = [entry.name for entry in shown]
    found = zip(shown, colours(names, palette), strict=True)
    rows = [_row(entry, colour) for entry, colour in found]
    most = max(max(row["high"], row["value"]) for row in rows)
    scale = alt.Scale(domain=[0, most or 1], nice=False)
    axis = alt.Axis(labelExpr=COUNT_EXPR, title=section.unit, tickCount=4)
    base = alt.Chart(data(rows))
    y, above = named_rows(base, names, "said")
    bars = base.mark_bar(height=BAR_PX, yOffset=BAR_DY, cornerRadiusEnd=2).encode(
        x=alt.X("value:Q", axis=axis, scale=scale),
        y=y,
        color=alt.Color("colour:N", scale=None),
        fillOpacity=alt.Opacity("opacity:Q", scale=None),
    )
    spread = alt.Chart(data([row for row in rows if row["known"]]))
    error = spread.mark_rule(color=INK[0], strokeWidth=1.5, yOffset=BAR_DY, y2Offset=BAR_DY).encode(
        x=alt.X("low:Q", scale=scale), x2="high:Q", y=y
    )
    ticks = [
        spread.mark_tick(color=INK[0], thickness=1.5, size=8, yOffset=BAR_DY).encode(
            x=f"{end}:Q", y=y
        )
        for end in ("low", "high")
    ]
    chart = alt.layer(bars, error, *ticks, *above)
    more = len(section.measured) - len(shown)
    faded = section.invalid or section.traps
    note = "Grey: not ranked, because invalid or a trap. " if faded else ""
    spans = [e.interval for e in section.ranked if e.interval is not None]
    kinds = {each.kind for each in spans if each.high > each.low}
    if kinds:
        what = "the 95 % interval of the median" if "95 % interval" in kinds else "the range"
        also = ", or the range of few repetitions" if len(kinds) > 1 else ""
        note += f"Whiskers: {what}{also}."
    if more > 0:
        note += f" {more} more are in the table only."
    best = shown[0]
    return TitledChart(
        "ranking",
        f"Ranking by {section.unit}",
        f"Bars of {counted(len(shown), 'entry', 'entries')}; the longest is {best.name}.",
        finished(chart, height=ROW_PX * len(shown)),
        note.strip(),
    )


def _row(entry: Summary, colour: str) -> dict[str, Any]:
    score = entry.score or 0.0
    interval = entry.interval
    low, high = (interval.low, interval.high) if interval is not None else (score, score)
    able = entry.can_rank
    apart = "" if able else " trap" if entry.trap else " invalid"
    return {
        "name": entry.name,
        "value": score,
        "low": low,
        "high": high,
        "known": interval is not None and high > low,
        "colour": colour if able else GREY[0],
        "opacity": 0.9 if able else FADED,
        "said": at_least(short_number(score), entry.lower_bound) + apart,
    }


def short_number(value: float) -> str:
    """Return three significant digits: ``45.1k``, ``2.30M``, ``812``."""
    for size, mark in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{mark}" if abs(value) < 999.5 * size else f"{value:.3g}"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"
