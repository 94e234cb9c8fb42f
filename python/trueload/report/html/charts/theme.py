"""What all charts share: size, colours, axes of times and counts.

Colours come from one table, so that the page's style sheet can replace each by its counterpart on a
dark screen. A chart is as wide as a phone shows it, with text of the right size there; a wider page
puts several side by side. A reader's font may be a fifth wider than the renderer's, so names stand
above their bars, and axes leave room. Altair takes half a second to import, so only chart modules
import it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from trueload.report.compare import finite

WIDTH_PX = 340
HEIGHT_PX = 220
# A row of bars, and the offsets of its name and its bar from the row's middle.
ROW_PX, NAME_DY, BAR_DY, BAR_PX = 38, -9, 9, 11
# The widths of names above bars, and of names in a legend with two columns or one.
NAME_PX, LEGEND_PX, LEGEND_PX_MAX, LEGEND_LETTERS = 174, 110, 195, 13
AXIS_PX = 54
# These fonts have the same widths, and the renderer has one of them built in.
FONT = "Arial, 'Liberation Sans', Helvetica, sans-serif"
FONT_PX = 13
# The offset of a second bar below the first, and its opacity.
SECOND_DY, PALE = 4, 0.45
# How many entries the text instead of a chart tells.
TOLD_MAX = 8

# The light colour, and the one that the style sheet uses on a dark screen.
INK = ("#333a45", "#d5dae3")
QUIET = ("#6b7482", "#97a1b1")
GRID = ("#e4e7ec", "#323945")
PAPER = ("#ffffff", "#161a21")
# For programs beyond the number of colours, and for unclear ratios.
GREY = ("#7c8593", "#8b95a5")
GOOD = ("#2a8a57", "#5cc48d")
WARN = ("#b7791f", "#e5b454")
BAD = ("#c0392b", "#ff8577")
# Distinct also with colour blindness, on white and on black.
SERIES = (
    ("#3867d6", "#7ea2ff"),
    ("#e07b1f", "#ffac5c"),
    ("#1f9e89", "#4fd1b8"),
    ("#c2418d", "#f08cc6"),
    ("#7d5bd0", "#b59cff"),
    ("#8a6d3b", "#cdb07c"),
    ("#3aa5d8", "#7fd0f7"),
    ("#6c8f2f", "#acd063"),
)
SERIES_MAX = len(SERIES)

# Every colour of a chart, with the one for a dark screen.
COLOURS = (INK, QUIET, GRID, PAPER, GREY, GOOD, WARN, BAD, *SERIES)

# SI prefixes: 200, 1k.
COUNT_EXPR = "format(datum.value, '~s')"
NS_EXPR = (
    "datum.value >= 1e9 ? format(datum.value / 1e9, '~g') + ' s' :"
    " datum.value >= 1e6 ? format(datum.value / 1e6, '~g') + ' ms' :"
    " datum.value >= 1e3 ? format(datum.value / 1e3, '~g') + ' us' :"
    " format(datum.value, '~g') + ' ns'"
)


@dataclass(frozen=True)
class TitledChart:
    """A chart with its texts: ``slug`` names its file, ``description`` is for readers."""

    slug: str
    title: str
    description: str
    chart: Any
    note: str = ""


Palette = Mapping[str, int]
"""The number of each subject's colour, the same in all charts of a page."""


def colours(names: Sequence[str], palette: Palette | None) -> list[str]:
    """Return the colour of each name, grey if the page has none for it.

    A chart by itself has no palette, and uses the colours in order.
    """
    of = {name: at for at, name in enumerate(names)} if palette is None else palette
    return [GREY[0] if of.get(n, SERIES_MAX) >= SERIES_MAX else SERIES[of[n]][0] for n in names]


def named_rows(rows: Any, names: Sequence[str], text_field: str) -> tuple[Any, list[Any]]:
    """Return the vertical axis of bars, and the texts above each: its name and a field."""
    y = alt.Y("name:N", sort=list(names), axis=None, scale=alt.Scale(padding=0))
    text: dict[str, Any] = {"baseline": "middle", "dy": NAME_DY, "fontSize": FONT_PX}
    text["color"] = INK[0]
    left = rows.mark_text(align="left", limit=NAME_PX, **text).encode(
        x=alt.value(0), y=y, text="name:N"
    )
    right = rows.mark_text(align="right", **text).encode(
        x=alt.value("width"), y=y, text=f"{text_field}:N"
    )
    return y, [left, right]


def data(rows: Iterable[dict[str, Any]]) -> Any:
    """Return plain rows for a chart; infinite and undefined numbers become missing values."""
    return alt.InlineData([{key: finite(each) for key, each in row.items()} for row in rows])


def finished(chart: Any, *, height: float = HEIGHT_PX) -> Any:
    """Return the chart with the common size and looks."""
    return (
        chart.properties(
            width=WIDTH_PX,
            height=height,
            background=PAPER[0],
            padding={"left": 6, "right": 8, "top": 8, "bottom": 4},
            autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
        )
        .configure(font=FONT, aria=False)
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=INK[0],
            titleColor=QUIET[0],
            gridColor=GRID[0],
            domainColor=QUIET[0],
            tickColor=QUIET[0],
            labelFontSize=FONT_PX,
            titleFontSize=FONT_PX,
            titleFontWeight="normal",
            tickSize=4,
        )
        # Above the axis and upright: beside it, a font wider than the renderer's would run into it.
        .configure_axisLeft(
            minExtent=AXIS_PX,
            titleAngle=0,
            titleAnchor="end",
            titleAlign="left",
            titleBaseline="bottom",
            titleX=-AXIS_PX,
            titleY=-9,
        )
        .configure_legend(
            labelColor=INK[0],
            titleColor=QUIET[0],
            labelFontSize=FONT_PX,
            symbolStrokeWidth=3,
            columnPadding=26,
        )
    )


def readable(
    rows: Iterable[dict[str, Any]], x: Any, y: Any, text: Callable[[dict[str, Any]], str]
) -> Any:
    """Return points that are not seen, but show the text of their row under the pointer."""
    found = data({**row, "text": text(row)} for row in rows)
    points = alt.Chart(found).mark_point(aria=True, stroke="transparent", size=150)
    return points.encode(x, y, description="text:N")


def told(texts: Mapping[str, str]) -> str:
    """Return a text on each of the first few entries, for those who cannot see a chart."""
    found = [f"{name}: {text}" for name, text in texts.items() if text]
    more = [f"{len(found) - TOLD_MAX} more"] if len(found) > TOLD_MAX else []
    return "; ".join([*found[:TOLD_MAX], *more]) + "."


def two_bars(
    rows: Sequence[dict[str, Any]], fields: tuple[str, str], **x: Any
) -> tuple[Any, Any, list[Any]]:
    """Return for each row a bar per field, the second one pale, with the row's name and text above.

    Rows have ``name``, ``said`` and ``colour``, and ``x`` is of the axis; the first two results are
    for more layers.
    """
    base = alt.Chart(data(rows))
    y, above = named_rows(base, [row["name"] for row in rows], "said")
    bars = [
        base.mark_bar(height=BAR_PX // 2, yOffset=BAR_DY + dy, opacity=opacity).encode(
            x=alt.X(f"{field}:Q", **x), y=y, color=alt.Color("colour:N", scale=None)
        )
        for field, dy, opacity in zip(fields, (-SECOND_DY, SECOND_DY), (1.0, PALE), strict=True)
    ]
    return base, y, [*bars, *above]


def series_colour(
    names: Sequence[str],
    palette: Palette | None,
    *,
    legend: bool | None = None,
) -> Any:
    """Return a colour per name, with a legend below unless there is only one name."""
    shown = len(names) > 1 if legend is None else legend
    return alt.Color(
        "name:N",
        scale=alt.Scale(domain=list(names), range=colours(names, palette)),
        legend=legend_below(names, symbolType="stroke") if shown else None,
    )


def legend_below(names: Sequence[str], **looks: Any) -> Any:
    """Return a legend of these names, in two columns if they are short."""
    short = all(len(name) <= LEGEND_LETTERS for name in names)
    return alt.Legend(
        orient="bottom",
        title=None,
        columns=2 if short else 1,
        labelLimit=LEGEND_PX if short else LEGEND_PX_MAX,
        symbolOpacity=1,
        **looks,
    )


def time_axis(values: Sequence[float | None], title: str) -> Any:
    """Return an axis of times in ns, logarithmic if the values are far apart."""
    known = [value for value in values if value is not None and value > 0]
    if not known or max(known) <= 8 * min(known):
        axis = alt.Axis(labelExpr=NS_EXPR, title=title, tickCount=6)
        return alt.Y("ns:Q", axis=axis, scale=alt.Scale(zero=True, nice=True))
    low, high = min(known), max(known)
    axis = alt.Axis(labelExpr=NS_EXPR, title=title, values=log_ticks(low, high))
    scale = alt.Scale(type="log", domain=[low * 0.9, high * 1.1])
    return alt.Y("ns:Q", axis=axis, scale=scale)


def log_ticks(low: float, high: float) -> list[float]:
    """Return ticks between two values.

    They are powers of ten if there are three or more, else 1, 2 and 5 times such powers.
    """
    decades = [10.0**power for power in range(14)]
    rough = [tick for tick in decades if low <= tick <= high]
    fine = [tick * factor for tick in decades for factor in (1, 2, 5)]
    return rough if len(rough) > 2 else [tick for tick in fine if low <= tick <= high]


def rule_at(value: float, channel: str, colour: str, *, dash: bool = True) -> Any:
    """Return a line across the chart at a value of the ``x`` or ``y`` axis."""
    mark = alt.Chart(data([{"at": value}])).mark_rule(
        color=colour, strokeDash=[5, 4] if dash else [1, 0], strokeWidth=1.5
    )
    at = alt.X("at:Q") if channel == "x" else alt.Y("at:Q")
    return mark.encode(at)
