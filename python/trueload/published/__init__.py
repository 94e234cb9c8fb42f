"""Published figures as data, each file named after the suite that reproduces it.

``ws-broadcast.csv``: hashrocket/websocket-shootout, round 2 (October 2016), what websocket-bench
printed of each server: clients, and of the senders' receipts p95, min, median and max in ms. The
server had an i7-4790K of its own, with 16 GB, the clients other machines over gigabit Ethernet; of
several runs the best was published. Must not know what is shown of it.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True)
class PublishedCurve:
    """One server: the p95 of the receipts, in ms, by number of clients."""

    name: str
    p95_ms: tuple[tuple[int, float], ...]


def broadcast_curves() -> tuple[PublishedCurve, ...]:
    """Every server of the published comparison of broadcasts, in its order."""
    text = files(__name__).joinpath("ws-broadcast.csv").read_text(encoding="utf-8")
    by_server: dict[str, list[tuple[int, float]]] = {}
    for row in csv.DictReader(text.splitlines()):
        point = (int(row["clients"]), float(row["p95_ms"]))
        by_server.setdefault(row["server"], []).append(point)
    return tuple(PublishedCurve(name, tuple(points)) for name, points in by_server.items())
