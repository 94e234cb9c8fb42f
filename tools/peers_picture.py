"""Draws the CPU time per request of trueload and other generators, as bars.

How: it reads the table that `make bench` writes into docs/performance.md, and draws it by the
charts of the HTML report. A page in dark colours gets the dark colours of the report.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt
from trueload.report.html.charts import theme
from trueload.report.html.draw import alone, to_svg

from tools.drawing import Picture

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "performance.md"
OURS = "trueload"
SERVER, CONNECTIONS, DEPTH = "reference", 64, 1
WIDTH_PX = 720
ROW = re.compile(rf"^\| {SERVER} \| {CONNECTIONS} \| {DEPTH} \| (\S+) \| ([\d.]+) ", re.MULTILINE)


@dataclass(frozen=True)
class Cost:
    """CPU time per request of a generator in µs: the median of its turns."""

    name: str
    median_us: float


def costs(page: str) -> list[Cost]:
    """Return the generators of the page, the cheapest first."""
    section = page.partition("<!-- peers:")[2].partition("<!-- end of peers -->")[0]
    found = [Cost(name, float(median)) for name, median in ROW.findall(section)]
    return sorted(found, key=lambda cost: cost.median_us)


def chart(found: list[Cost]) -> Any:
    """Return a bar for each generator."""
    rows = [
        {
            "name": cost.name,
            "value": cost.median_us,
            "said": f"{cost.median_us:.3g} µs",
            "colour": theme.SERIES[0][0] if cost.name == OURS else theme.GREY[0],
        }
        for cost in found
    ]
    names = [cost.name for cost in found]
    base = alt.Chart(theme.data(rows))
    y, above = theme.named_rows(base, names, "said")
    axis = alt.Axis(title="generator's CPU time per request, µs (less is better)", tickCount=6)
    scale = alt.Scale(domain=[0, max(cost.median_us for cost in found)], nice=True)
    bars = base.mark_bar(height=theme.BAR_PX, yOffset=theme.BAR_DY, cornerRadiusEnd=2).encode(
        x=alt.X("value:Q", axis=axis, scale=scale), y=y, color=alt.Color("colour:N", scale=None)
    )
    drawn = theme.finished(alt.layer(bars, *above), height=theme.ROW_PX * len(found))
    return drawn.properties(width=WIDTH_PX)


def themed(svg: str) -> str:
    """Return the drawing with a style sheet that turns it dark with the reader's screen."""
    rules = [
        f'[{part}="{light}"] {{ {part}: {dark} }}'
        for light, dark in theme.COLOURS
        for part in ("fill", "stroke")
    ]
    style = "\n".join(["<style>@media (prefers-color-scheme: dark) {", *rules, "}</style>"])
    begin = svg.index(">", svg.index("<svg")) + 1
    return f"{svg[:begin]}\n{style}{svg[begin:]}"


def words(found: list[Cost]) -> str:
    """Return the figures of the drawing for readers who cannot see it."""
    figures = ", ".join(f"{cost.name} {cost.median_us:.3g} µs" for cost in found)
    return f"CPU time per request: {figures}"


def picture() -> Picture:
    """Return the bars of docs/performance.md."""
    found = costs(PAGE.read_text())
    return Picture(themed(alone(to_svg(chart(found)))), words(found))
