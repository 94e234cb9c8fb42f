"""From samples to ratios, tables and marks. Pure: everything here is a function of the samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from cells import CONNECTIONS, DEPTHS, OURS, SERVERS, TOOLS, Cell, Target

MIB = 1024 * 1024


@dataclass(frozen=True)
class Sample:
    """One cell in one round."""

    round: int
    cell: Cell
    requests: int
    wall_s: float
    cpu_s: float
    server_cpu_s: float
    peak_rss_bytes: int | None

    def value(self, kind: str) -> float:
        """CPU seconds per million requests (`generator`, `server`), requests per second
        (`throughput`), or bytes (`memory`)."""
        if kind == "memory":
            return float(self.peak_rss_bytes or 0)
        if kind == "throughput":
            return self.requests / self.wall_s
        return {"generator": self.cpu_s, "server": self.server_cpu_s}[kind] / self.requests * 1e6


@dataclass(frozen=True)
class Spread:
    """A median with the least and the most."""

    middle: float
    least: float
    most: float


@dataclass(frozen=True)
class Mark:
    """A target and what was reached; None when it was not measured."""

    target: Target
    ratio: Spread | None

    @property
    def word(self) -> str:
        """`pass`, `FAIL` or `not measured`."""
        if self.ratio is None:
            return "not measured"
        return "pass" if self.ratio.middle <= self.target.most else "FAIL"


def values(samples: Sequence[Sample], cell: Cell, kind: str) -> dict[int, float]:
    """The cell's values by round."""
    return {sample.round: sample.value(kind) for sample in samples if sample.cell == cell}


def spread(found: Sequence[float]) -> Spread | None:
    """None without values."""
    return Spread(median(found), min(found), max(found)) if found else None


def ratio(samples: Sequence[Sample], one: Cell, two: Cell, kind: str) -> Spread | None:
    """The ratio of the medians; its spread is that of the ratios within one round."""
    ones, twos = values(samples, one, kind), values(samples, two, kind)
    paired = [ones[number] / twos[number] for number in ones if twos.get(number)]
    if not paired:
        return None
    middle = median(ones.values()) / median(twos.values())
    return Spread(middle, min(paired), max(paired))


def marks(samples: Sequence[Sample], listed: Sequence[Target]) -> list[Mark]:
    """Each target with what was reached."""
    return [
        Mark(target, ratio(samples, target.cell, target.against, target.kind)) for target in listed
    ]


def table(samples: Sequence[Sample]) -> list[str]:
    """A line per cell: CPU seconds per million requests, throughput, and ours against it."""
    lines = [
        f"{'server':<10} {'conns':>5} {'depth':>5} {'generator':<9} {'CPU s/M':>8} {'spread':>13}"
        f" {'server CPU s/M':>14} {'req/s':>9}  {'our CPU / its':>19}  {'our req/s / its':>19}"
    ]
    for server in SERVERS:
        for depth in DEPTHS:
            for connections in CONNECTIONS:
                cells = [Cell(server, connections, depth, tool) for tool in TOOLS[depth]]
                lines += [_row(samples, cell) for cell in cells]
    return lines


def _row(samples: Sequence[Sample], cell: Cell) -> str:
    start = f"{cell.server:<10} {cell.connections:>5} {cell.depth:>5} {cell.tool:<9}"
    cost = spread(list(values(samples, cell, "generator").values()))
    server = spread(list(values(samples, cell, "server").values()))
    speed = spread(list(values(samples, cell, "throughput").values()))
    if cost is None or server is None or speed is None:
        return f"{start} not measured"
    ratios = ["-", "-"]
    if cell.tool != OURS:
        own = Cell(cell.server, cell.connections, cell.depth, OURS)
        ratios = [_shown(ratio(samples, own, cell, kind)) for kind in ("generator", "throughput")]
    return (
        f"{start} {cost.middle:>8.3f} {f'{cost.least:.3f}..{cost.most:.3f}':>13}"
        f" {server.middle:>14.3f} {speed.middle:>9.0f}  {ratios[0]:>19}  {ratios[1]:>19}"
    )


def memory_table(samples: Sequence[Sample], cells: Sequence[Cell]) -> list[str]:
    """A line per generator: peak memory."""
    lines = []
    for cell in cells:
        peak = spread(list(values(samples, cell, "memory").values()))
        shown = "not measured" if peak is None else f"{peak.middle / MIB:.1f} MiB"
        lines.append(f"{cell.connections} connections  {cell.tool:<9} {shown:>12} peak memory")
    return lines


def marks_table(marked: Sequence[Mark]) -> list[str]:
    """A line per target."""
    lines = []
    for mark in marked:
        reached = f"{mark.word:<12} {_shown(mark.ratio):>19}"
        lines.append(f"{reached}  at most {mark.target.most:.2f}  {mark.target.what}")
    return lines


def _shown(found: Spread | None) -> str:
    if found is None:
        return "-"
    return f"{found.middle:.2f} ({found.least:.2f}..{found.most:.2f})"
