"""From samples to ratios, tables and marks. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from cells import OURS, Cell, Target
from marks import Mark, mark

MIB = 1024 * 1024


@dataclass(frozen=True)
class Sample:
    """The measurement of one cell in one round."""

    round: int
    cell: Cell
    requests: int
    wall_s: float
    cpu_s: float
    server_cpu_s: float
    peak_rss_bytes: int | None
    driver: str = ""
    """Of our generator."""

    def value(self, kind: str) -> float:
        """Return the figure of this kind.

        CPU in µs per request (`generator`, `server`), requests per second (`throughput`), or bytes
        (`memory`).
        """
        if kind == "memory":
            return float(self.peak_rss_bytes or 0)
        if kind == "throughput":
            return self.requests / self.wall_s
        return {"generator": self.cpu_s, "server": self.server_cpu_s}[kind] / self.requests * 1e6


@dataclass(frozen=True)
class Spread:
    """A median with the least and the most value, and the number of values."""

    middle: float
    least: float
    most: float
    count: int


def values(samples: Sequence[Sample], cell: Cell, kind: str) -> dict[int, float]:
    """Return the cell's values by round."""
    return {sample.round: sample.value(kind) for sample in samples if sample.cell == cell}


def spread(found: Sequence[float]) -> Spread | None:
    """Return the spread of the values; None without any."""
    return Spread(median(found), min(found), max(found), len(found)) if found else None


def ratio(samples: Sequence[Sample], one: Cell, two: Cell, kind: str) -> Spread | None:
    """The spread of ratios within a round, whose cells are measured close together."""
    ones, twos = values(samples, one, kind), values(samples, two, kind)
    return spread([ones[number] / twos[number] for number in ones if twos.get(number)])


def marks(
    samples: Sequence[Sample], listed: Sequence[Target], absent: Mapping[str, str]
) -> list[Mark]:
    """Judge each target; `absent` says why a server or generator is missing."""
    marked = []
    for target in listed:
        found = ratio(samples, target.cell, target.against, target.kind)
        whys = [absent.get(name) for name in _names(target)]
        why = next((why for why in whys if why), "each turn failed")
        shown = why if found is None else f"{shown_ratio(found)}, {counted(found.count)}"
        middle = None if found is None else found.middle
        marked.append(mark(target.what, target.limit, middle, shown))
    return marked


def _names(target: Target) -> tuple[str, ...]:
    cells = (target.cell, target.against)
    return tuple(cell.server for cell in cells) + tuple(cell.tool for cell in cells)


def table(samples: Sequence[Sample], listed: Sequence[Sequence[Cell]]) -> list[str]:
    """A Markdown table, a row per cell: CPU per request, throughput, and ours relative to it."""
    head = "server|connections|depth|generator|CPU µs/request|server CPU µs/request|req/s"
    head += "|our CPU / its|our req/s / its"
    lines = [f"| {' | '.join(head.split('|'))} |", "|---|--:|--:|---|--:|--:|--:|--:|--:|"]
    for group in listed:
        lines += [_row(samples, cell) for cell in group if not cell.memory]
    return lines


def _row(samples: Sequence[Sample], cell: Cell) -> str:
    start = f"| {cell.server} | {cell.connections} | {cell.depth} | {cell.tool} |"
    kinds = ("generator", "server", "throughput")
    cost, server, speed = (spread(list(values(samples, cell, kind).values())) for kind in kinds)
    if cost is None or server is None or speed is None:
        return f"{start} not measured | | | | |"
    ratios = ["", ""]
    if cell.tool != OURS:
        own = cell.by(OURS)
        found = (ratio(samples, own, cell, kind) for kind in ("generator", "throughput"))
        ratios = ["" if each is None else shown_ratio(each) for each in found]
    return (
        f"{start} {cost.middle:.2f} ({cost.least:.2f} to {cost.most:.2f}) | {server.middle:.2f}"
        f" | {speed.middle:,.0f} | {ratios[0]} | {ratios[1]} |"
    )


def memory_table(samples: Sequence[Sample], cells: Sequence[Cell]) -> list[str]:
    """A Markdown table of peak memory, a row per generator."""
    lines = ["| connections | generator | peak memory | per connection |", "|--:|---|--:|--:|"]
    for cell in cells:
        peak = spread(list(values(samples, cell, "memory").values()))
        shown = "not measured |"
        if peak is not None:
            each = peak.middle / cell.connections
            shown = f"{peak.middle / MIB:.1f} MiB | {each:.0f} B"
        lines.append(f"| {cell.connections:,} | {cell.tool} | {shown} |")
    return lines


def counted(pairs: int) -> str:
    """Write the number of pairs in words."""
    return f"{pairs} pair{'' if pairs == 1 else 's'}"


def shown_ratio(found: Spread) -> str:
    """Format the median, the least and the most."""
    return f"{found.middle:.3f} ({found.least:.3f} to {found.most:.3f})"
