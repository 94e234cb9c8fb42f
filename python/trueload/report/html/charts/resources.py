"""What both ends used: CPU of generator and server, memory, and memory per connection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from trueload.report.html.charts.theme import (
    BAR_DY,
    BAR_PX,
    COUNT_EXPR,
    INK,
    ROW_PX,
    SERIES_MAX,
    Palette,
    TitledChart,
    colours,
    data,
    finished,
    named_rows,
    series_colour,
)
from trueload.units import counted, format_share, format_size

BARS_MAX = 30
# The offset of the generator's bar below the server's, and its opacity.
SECOND_DY, PALE = 4, 0.45
# The limit of the check `generator-limit`: from here on an end had no time left.
FULL_SHARE = 0.95
BYTES_EXPR = (
    "datum.value >= 1073741824 ? format(datum.value / 1073741824, '~g') + ' GiB' :"
    " datum.value >= 1048576 ? format(datum.value / 1048576, '~g') + ' MiB' :"
    " datum.value >= 1024 ? format(datum.value / 1024, '~g') + ' KiB' :"
    " format(datum.value, '~g') + ' B'"
)


@dataclass(frozen=True)
class ResourceUse:
    """What one entry's trial used.

    ``generator`` and ``server`` are the busiest thread of each end as a share of the window. Memory
    is in bytes. None for what was not seen.
    """

    name: str
    generator: float | None
    server: float | None
    peak_bytes: int | None
    connection_bytes: float | None


@dataclass(frozen=True)
class IdleMemory:
    """The server's memory with a number of idle connections beside the others."""

    name: str
    idle: int
    rss_bytes: int


def both_ends(
    taken: Sequence[ResourceUse], sender: str = "generator", palette: Palette | None = None
) -> TitledChart | None:
    """Return how busy the busiest thread of each end was; ``sender`` names the end that asks."""
    shown = [t for t in taken if t.generator is not None or t.server is not None][:BARS_MAX]
    if not shown:
        return None
    names = [each.name for each in shown]
    rows = [
        {
            "name": each.name,
            "server": each.server,
            "sender": each.generator,
            "said": " / ".join(_share(end) for end in (each.server, each.generator)),
            "colour": colour,
        }
        for each, colour in zip(shown, colours(names, palette), strict=True)
    ]
    base = alt.Chart(data(rows))
    y, above = named_rows(base, names, "said")
    axis = alt.Axis(format="~%", title="busiest thread, of the window", tickCount=5)
    scale = alt.Scale(domain=[0, 1], clamp=True)
    half = BAR_PX // 2
    bars = [
        base.mark_bar(height=half, yOffset=BAR_DY + dy, opacity=opacity).encode(
            x=alt.X(f"{end}:Q", axis=axis, scale=scale),
            y=y,
            color=alt.Color("colour:N", scale=None),
        )
        for end, dy, opacity in (("server", -SECOND_DY, 1.0), ("sender", SECOND_DY, PALE))
    ]
    full = base.mark_tick(color=INK[0], thickness=1.5, size=2 * BAR_PX, yOffset=BAR_DY)
    full = full.encode(x=alt.datum(FULL_SHARE), y=y)
    return TitledChart(
        "cpu",
        "CPU of both ends",
        f"How busy server and {sender} were, of {counted(len(shown), 'entry', 'entries')}.",
        finished(alt.layer(*bars, full, *above), height=ROW_PX * len(shown)),
        f"Server / {sender}: the {sender}'s bar is the pale one. Upright: from here on that end had"
        " no time left.",
    )


def _share(share: float | None) -> str:
    return "?" if share is None else format_share(share)


def memory(taken: Sequence[ResourceUse], palette: Palette | None = None) -> TitledChart | None:
    """Return the peak resident memory of each program; None for a single one."""
    return _bytes_chart(
        "memory",
        "Peak memory",
        "resident at once, the whole process tree",
        [(t, float(t.peak_bytes)) for t in taken if t.peak_bytes],
        palette,
    )


def connection_memory(
    taken: Sequence[ResourceUse], palette: Palette | None = None
) -> TitledChart | None:
    """Return the memory per connection of each server; None for a single one."""
    return _bytes_chart(
        "memory-per-connection",
        "Memory per connection",
        "what the server grew by, for each connection",
        [(t, t.connection_bytes) for t in taken if t.connection_bytes and t.connection_bytes > 0],
        palette,
    )


def _bytes_chart(
    slug: str,
    title: str,
    axis: str,
    found: Sequence[tuple[ResourceUse, float]],
    palette: Palette | None,
) -> TitledChart | None:
    if len(found) < 2:
        return None  # a single figure needs no chart
    found = found[:BARS_MAX]
    names = [each.name for each, _ in found]
    shown = zip(found, colours(names, palette), strict=True)
    rows = [
        {"name": each.name, "value": value, "said": format_size(value), "colour": colour}
        for (each, value), colour in shown
    ]
    most = max(value for _, value in found)
    x = alt.X(
        "value:Q",
        axis=alt.Axis(title=axis, values=byte_ticks(most), labelExpr=BYTES_EXPR),
        scale=alt.Scale(domain=[0, most], nice=False),
    )
    base = alt.Chart(data(rows))
    y, above = named_rows(base, names, "said")
    bars = base.mark_bar(height=BAR_PX, yOffset=BAR_DY, cornerRadiusEnd=2)
    bars = bars.encode(x=x, y=y, color=alt.Color("colour:N", scale=None))
    return TitledChart(
        slug,
        title,
        f"{title} of {counted(len(found), 'entry', 'entries')}.",
        finished(alt.layer(bars, *above), height=ROW_PX * len(found)),
    )


def byte_ticks(most: float) -> list[float]:
    """Return about four round ticks in powers of two, from 0 to ``most``."""
    step = 1.0
    while most / step > 4:
        step *= 2
    return [step * number for number in range(int(most // step) + 1)]


def idle_memory(held: Sequence[IdleMemory], palette: Palette | None = None) -> TitledChart | None:
    """Return server memory against idle connections: its slope is the memory of each."""
    names = list(dict.fromkeys(each.name for each in held))[:SERIES_MAX]
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
            color=series_colour(names, palette),
        )
    )
    return TitledChart(
        "idle-memory",
        "Memory with idle connections",
        f"Memory of {counted(len(names), 'server')} against idle connections.",
        finished(chart),
        "The slope is what each connection costs.",
    )
