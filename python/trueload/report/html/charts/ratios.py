"""One run, or one side, against another: the ratio of each metric, with where it lies."""

from __future__ import annotations

import math
from collections.abc import Sequence

import altair as alt

from trueload.compare.difference import Ratio
from trueload.record.figures import label
from trueload.report.html.charts.theme import (
    BAD,
    BAR_PX,
    GOOD,
    INK,
    QUIET,
    Drawn,
    data,
    finished,
    rule_at,
)

WORDS = {
    "better": GOOD[0],
    "same": QUIET[0],
    "as throughput": QUIET[0],
    "unclear": QUIET[0],
    "worse": BAD[0],
}


def ratios(name: str, found: Sequence[Ratio], what: str) -> Drawn | None:
    """A point a metric around 1; None where no ratio is known."""
    shown = [(each, each.ratio) for each in found if _is_known(each.ratio)]
    spans = [_span(each, ratio or 1.0) for each, ratio in shown]
    if not shown:
        return None
    rows = [
        {"metric": label(each.metric), "ratio": ratio, "low": low, "high": high, "word": each.word}
        for (each, ratio), (low, high) in zip(shown, spans, strict=True)
    ]
    order = [label(each.metric) for each, _ in shown]
    y = alt.Y("metric:N", sort=order, axis=alt.Axis(title=None, domain=False, ticks=False))
    low, high = min(0.9, *(low for low, _ in spans)), max(1.1, *(high for _, high in spans))
    scale = alt.Scale(type="log", domain=[low * 0.97, high * 1.03], nice=False)
    axis = alt.Axis(title=what, format="~g", tickCount=6)
    colour = alt.Color(
        "word:N",
        scale=alt.Scale(domain=list(WORDS), range=list(WORDS.values())),
        legend=alt.Legend(orient="bottom", title=None),
    )
    base = alt.Chart(data(rows))
    spread = base.mark_rule(strokeWidth=2.5, opacity=0.7).encode(
        x=alt.X("low:Q", scale=scale, axis=axis), x2="high:Q", y=y, color=colour
    )
    dots = base.mark_point(filled=True, size=70, opacity=1).encode(
        x=alt.X("ratio:Q", scale=scale, axis=axis), y=y, color=colour
    )
    one = rule_at(1.0, "x", INK[0])
    return Drawn(
        "ratios",
        f"Ratios: {name}" if name else "Ratios",
        f"The ratio of {len(rows)} metrics, with where it lies.",
        finished(alt.layer(one, spread, dots), height=BAR_PX * len(rows)),
        "Left of 1: less. For throughput more is better, for times less.",
    )


def _is_known(ratio: float | None) -> bool:
    return ratio is not None and math.isfinite(ratio) and ratio > 0


def _span(found: Ratio, ratio: float) -> tuple[float, float]:
    """Where it lies; the ratio itself where an end is not known."""
    within = found.within
    if within is None or within.low <= 0 or not math.isfinite(within.high):
        return ratio, ratio
    return within.low, within.high
