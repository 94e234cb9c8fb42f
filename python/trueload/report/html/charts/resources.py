"""What both ends took: CPU of generator and server, memory, and memory per connection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from trueload.report.html.charts.theme import (
    ACCENT,
    BAR_PX,
    COUNT_EXPR,
    INK,
    SERIES,
    WARN,
    Drawn,
    data,
    finished,
    label_px,
    rule_at,
    series_colour,
)
from trueload.units import format_size

BARS_MAX = 30
# As the check `generator-limit` has it: from here on one end had no time left.
FULL_SHARE = 0.95
BYTES_EXPR = (
    "datum.value >= 1073741824 ? format(datum.value / 1073741824, '~g') + ' GiB' :"
    " datum.value >= 1048576 ? format(datum.value / 1048576, '~g') + ' MiB' :"
    " datum.value >= 1024 ? format(datum.value / 1024, '~g') + ' KiB' :"
    " format(datum.value, '~g') + ' B'"
)


@dataclass(frozen=True)
class Taken:
    """What one entry's trial took: the busiest thread of each end as a share of the window, memory
    in bytes; None where it was not seen."""

    name: str
    generator: float | None
    server: float | None
    peak_bytes: int | None
    connection_bytes: float | None


@dataclass(frozen=True)
class Held:
    """Server memory with so many idle connections beside the others."""

    name: str
    idle: int
    rss_bytes: int


def both_ends(taken: Sequence[Taken], sender: str = "generator") -> Drawn | None:
    """How busy the busiest thread of each end was; ``sender`` is the one that asks."""
    shown = [t for t in taken if t.generator is not None or t.server is not None][:BARS_MAX]
    if not shown:
        return None
    rows = [
        {"name": each.name, "end": end, "value": value}
        for each in shown
        for end, value in (("server", each.server), (sender, each.generator))
        if value is not None
    ]
    height = max(BAR_PX, 2 * (BAR_PX - 8)) * len(shown)
    chart = (
        alt.Chart(data(rows))
        .mark_bar(cornerRadiusEnd=2)
        .encode(
            x=alt.X(
                "value:Q",
                axis=alt.Axis(format="~%", title="busiest thread, of the window", tickCount=5),
                scale=alt.Scale(domain=[0, 1], clamp=True),
            ),
            y=_names(shown),
            yOffset=alt.YOffset("end:N", sort=["server", sender]),
            color=alt.Color(
                "end:N",
                sort=["server", sender],
                scale=alt.Scale(domain=["server", sender], range=[SERIES[0][0], SERIES[1][0]]),
                legend=alt.Legend(orient="bottom", title=None),
            ),
        )
    )
    return Drawn(
        "cpu",
        "CPU of both ends",
        f"How busy server and {sender} were, of {len(shown)} entries.",
        finished(alt.layer(chart, rule_at(FULL_SHARE, "x", WARN[0])), height=height),
        "Dashed: from here on that end had no time left.",
    )


def memory(taken: Sequence[Taken]) -> Drawn | None:
    """The most that each program had resident at once; None of one alone."""
    shown = [t for t in taken if t.peak_bytes]
    if len(shown) < 2:
        return None  # one figure is no chart
    return _bytes_chart(
        "memory",
        "Peak memory",
        "resident at once, the whole process tree",
        [(each, float(each.peak_bytes or 0)) for each in shown],
    )


def connection_memory(taken: Sequence[Taken]) -> Drawn | None:
    """What each connection cost the server; None of one alone."""
    shown = [t for t in taken if t.connection_bytes and t.connection_bytes > 0]
    if len(shown) < 2:
        return None
    return _bytes_chart(
        "memory-per-connection",
        "Memory per connection",
        "what the server grew by, for each connection",
        [(each, each.connection_bytes or 0.0) for each in shown],
    )


def _bytes_chart(
    slug: str, title: str, axis: str, found: Sequence[tuple[Taken, float]]
) -> Drawn | None:
    found = found[:BARS_MAX]
    if not found:
        return None
    rows = [{"name": e.name, "value": v, "said": format_size(v)} for e, v in found]
    y = _names([each for each, _ in found])
    most = max(value for _, value in found)
    x = alt.X(
        "value:Q",
        axis=alt.Axis(title=axis, values=byte_ticks(most), labelExpr=BYTES_EXPR),
        scale=alt.Scale(domain=[0, most * 1.25], nice=False),
    )
    base = alt.Chart(data(rows))
    bars = base.mark_bar(height=BAR_PX - 8, cornerRadiusEnd=2, color=ACCENT[0], opacity=0.9)
    text = base.mark_text(align="left", dx=6, color=INK[0], fontSize=11)
    chart = alt.layer(bars.encode(x=x, y=y), text.encode(x=x, y=y, text="said:N"))
    return Drawn(
        slug,
        title,
        f"{title} of {len(found)} entries.",
        finished(chart, height=BAR_PX * len(found)),
    )


def byte_ticks(most: float) -> list[float]:
    """Some four round ticks in powers of two, from nothing to ``most``."""
    step = 1.0
    while most / step > 4:
        step *= 2
    return [step * number for number in range(int(most * 1.25 // step) + 1)]


def idle_memory(held: Sequence[Held]) -> Drawn | None:
    """Server memory against idle connections: its slope is what each of them costs."""
    names = list(dict.fromkeys(each.name for each in held))[: len(SERIES)]
    rows = [
        {"name": each.name, "idle": each.idle, "value": each.rss_bytes}
        for each in held
        if each.name in names
    ]
    if len({row["idle"] for row in rows}) < 2:
        return None
    most = max(float(each.rss_bytes) for each in held)
    axis = alt.Axis(title="memory of the server", values=byte_ticks(most), labelExpr=BYTES_EXPR)
    idle = alt.Axis(labelExpr=COUNT_EXPR, title="idle connections", tickCount=5)
    chart = (
        alt.Chart(data(rows))
        .mark_line(strokeWidth=2, point={"size": 36, "filled": True})
        .encode(
            x=alt.X("idle:Q", axis=idle),
            y=alt.Y("value:Q", axis=axis, scale=alt.Scale(domain=[0, most * 1.25], nice=False)),
            color=series_colour(names),
        )
    )
    return Drawn(
        "idle-memory",
        "Memory with idle connections",
        f"Memory of {len(names)} servers against idle connections.",
        finished(chart),
        "The slope is what each connection costs.",
    )


def _names(shown: Sequence[Taken]) -> Any:
    """Nobody has to be told which one of one."""
    names = [each.name for each in shown]
    axis = alt.Axis(
        title=None, labelLimit=label_px(names), labels=len(shown) > 1, domain=False, ticks=False
    )
    return alt.Y("name:N", sort=names, axis=axis)
