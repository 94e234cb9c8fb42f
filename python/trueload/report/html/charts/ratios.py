"""One run, or one side, against another: the ratio of each metric, with its interval.

How: the scale is logarithmic, with 1 in the middle, and as wide as most of the ratios need. An
arrow at its edge stands for what lies farther out. A filled mark is a claim (better, worse, the
same), a hollow one is none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Any

import altair as alt

from trueload.compare.difference import Ratio, Word
from trueload.record.figures import label
from trueload.report.html.charts.theme import (
    BAD,
    FONT_PX,
    GOOD,
    GREY,
    INK,
    PAPER,
    TitledChart,
    data,
    finished,
    legend_below,
    rule_at,
    told,
)

STEP_PX, LABEL_PX = 26, 126
# The colour of a word, and the fill of its mark.
WORDS: dict[Word, tuple[str, str]] = {
    "better": (GOOD[0], GOOD[0]),
    "worse": (BAD[0], BAD[0]),
    "same": (INK[0], INK[0]),
    "as throughput": (INK[0], PAPER[0]),
    "unclear": (GREY[0], PAPER[0]),
}
# All are logarithms but FAR: the smallest reach of the scale, and the largest that an uncertain end
# may cause. A ratio that is FAR times as far from 1 as the median one may lie outside.
REACH_MIN, REACH_OF_ENDS, FAR = math.log(1.1), math.log(4), 4
# The ticks of the scale, each set up to some reach.
TICKS = (
    (math.log(1.2), (0.9, 0.95, 1, 1.05, 1.1)),
    (math.log(1.6), (0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.4)),
    (math.log(2.5), (0.5, 0.7, 1, 1.4, 2)),
    (math.log(8), (0.25, 0.5, 1, 2, 4)),
    (math.inf, tuple(10.0**power for power in range(-9, 10))),
)
ARROWS = {"low": "triangle-left", "high": "triangle-right"}


def ratios(name: str, found: Sequence[Ratio], what: str) -> TitledChart | None:
    """Return a point per metric around 1; None if no ratio is known."""
    shown = [(each, each.ratio) for each in found if each.ratio is not None]
    if not shown:
        return None
    reach = _reach([each for each, _ in shown])
    low, high = math.exp(-reach), math.exp(reach)
    rows = [_row(each, ratio, low, high) for each, ratio in shown]
    words = [word for word in WORDS if any(row["word"] == word for row in rows)]
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    ticks = next(ticks for most, ticks in TICKS if reach <= most)
    axis = alt.Axis(title=what, format="~g", values=[t for t in ticks if low <= t <= high])
    metrics = [row["metric"] for row in rows]
    names = alt.Axis(title=None, domain=False, ticks=False, minExtent=LABEL_PX, labelPadding=9)
    y = alt.Y("metric:N", sort=metrics, axis=names)

    def shade(channel: Any, at: int) -> Any:
        colours = alt.Scale(domain=words, range=[WORDS[word][at] for word in words])
        return channel("word:N", scale=colours, legend=legend_below(words, symbolType="circle"))

    def across(field: str) -> Any:
        return alt.X(f"{field}:Q", scale=scale, axis=axis)

    base = alt.Chart(data(rows))
    spread = base.mark_rule(strokeWidth=2.5, opacity=0.7).encode(
        x=across("low"), x2="high:Q", y=y, stroke=shade(alt.Stroke, 0)
    )
    dots = base.mark_point(size=70, strokeWidth=2, opacity=1).encode(
        x=across("at"),
        y=y,
        shape=alt.Shape("shape:N", scale=None),
        stroke=shade(alt.Stroke, 0),
        fill=shade(alt.Fill, 1),
    )
    chart = alt.layer(rule_at(1.0, "x", INK[0]), spread, *_arrows(rows, y, across), dots)
    return TitledChart(
        "ratios",
        f"Ratios: {name}" if name else "Ratios",
        f"{what}. {told({label(each.metric): f'{ratio:.3g}' for each, ratio in shown})}",
        finished(chart, height=STEP_PX * len(rows)),
        _note(rows),
    )


def _reach(found: Sequence[Ratio]) -> float:
    """Return how far the scale reaches to both sides, as a logarithm.

    All ratios lie on it except the few that are much farther out. So does the nearer half of the
    intervals' ends.
    """
    points = [_distance(each.ratio or 0.0) for each in found]
    points = [each for each in points if math.isfinite(each)] or [REACH_MIN]
    near = FAR * max(median(points), REACH_MIN / 2)
    ends = [
        max(_distance(each.within.low), _distance(each.within.high))
        for each in found
        if each.within is not None
    ]
    for_ends = min(REACH_OF_ENDS, 1.1 * median(ends)) if ends else 0.0
    return max(REACH_MIN, 1.25 * max(each for each in points if each <= near), for_ends)


def _distance(ratio: float) -> float:
    return abs(math.log(ratio)) if ratio > 0 and math.isfinite(ratio) else math.inf


def _row(found: Ratio, ratio: float, low: float, high: float) -> dict[str, Any]:
    """Return the values of a metric, cut to the scale; ``out`` names the ends that were cut."""

    def inside(value: float) -> float:
        return min(max(value, low), high)

    within = found.within
    ends = (ratio, ratio) if within is None else (within.low, within.high)
    out = [*(["low"] if ends[0] < low else []), *(["high"] if ends[1] > high else [])]
    shape = "triangle-left" if ratio < low else "triangle-right" if ratio > high else "circle"
    return {
        "metric": label(found.metric),
        "word": found.word,
        "at": inside(ratio),
        "low": inside(ends[0]),
        "high": inside(ends[1]),
        "shape": shape,
        "out": out,
        "said": "" if shape == "circle" else f"{ratio:.3g}" if math.isfinite(ratio) else "endless",
    }


def _arrows(rows: Sequence[dict[str, Any]], y: Any, across: Any) -> list[Any]:
    """Return arrows at the edges for ends that lie farther out, and texts for such ratios."""
    layers = []
    for end, shape in ARROWS.items():
        out = [row for row in rows if end in row["out"]]
        far = [row for row in rows if row["shape"] == shape]
        left = end == "low"
        inwards: dict[str, Any] = {"align": "left" if left else "right", "dx": 10 if left else -10}
        if out:
            arrow = alt.Chart(data(out)).mark_point(filled=True, size=55, shape=shape, opacity=1)
            layers.append(arrow.encode(x=across(end), y=y, color=alt.value(GREY[0])))
        if far:
            text = alt.Chart(data(far)).mark_text(fontSize=FONT_PX, color=INK[0], dy=-8, **inwards)
            layers.append(text.encode(x=across("at"), y=y, text="said:N"))
    return layers


def _note(rows: Sequence[dict[str, Any]]) -> str:
    sentences = ["Left of 1: less. For throughput more is better, for times less."]
    if any(row["word"] in ("unclear", "as throughput") for row in rows):
        sentences.append("Hollow: no claim of its own.")
    if any(row["out"] for row in rows):
        sentences.append(
            "An arrow at the edge: it goes on beyond the scale; the table has the figures."
        )
    return " ".join(sentences)
