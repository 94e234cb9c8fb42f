"""Ratios to a reference: each trial against the reference's trials right before and after it.

How: what the host of a virtual machine does to one trial, it mostly does to its neighbours, too, so
that it cancels in their ratio. The store's rows come in the order of measuring, and a trial lies
between two rows of the reference under the same load. The reference before it may be the one after
another trial; the first of a series says so. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from trueload.protocol.plan import Duration
from trueload.store.rows import Row
from trueload.suites.figures import Figures
from trueload.trial.spec import Load
from trueload.units import NS_PER_S

# Long enough for some thousand answers, short enough to be a neighbour.
WINDOW_LEAST_NS = NS_PER_S
WINDOW_SHARE = 10
WARMUP = Duration(ns=300_000_000)
STEP = "reference"


def reference_load(load: Load) -> Load:
    """The same load, for the time that the reference is measured: a tenth of a trial's."""
    trial_ns = load.stop.ns if isinstance(load.stop, Duration) else 0
    window_ns = max(WINDOW_LEAST_NS, trial_ns // WINDOW_SHARE)
    return replace(load, stop=Duration(ns=window_ns), warmup=WARMUP)


def reference_labels(load_key: str, *, opens: bool) -> dict[str, str]:
    """What the store says of a row of the reference. ``opens``: no trial lies right before it."""
    return {"step": STEP, "load": load_key, "opens": "yes" if opens else ""}


def is_reference(labels: Mapping[str, str]) -> bool:
    """Whether a row is of the reference, and no subject's own."""
    return labels.get("step") == STEP


@dataclass
class Pairing:
    """Finds the ratios while the rows stream by in their order. A trial whose second reference is
    missing has none."""

    _before: tuple[str, float] | None = None
    _open: tuple[list[Figures], str, float] | None = None

    def reference(self, row: Row) -> None:
        """A row of the reference."""
        load, rate = row.labels.get("load", ""), None
        if row.record is not None:
            rate = row.record.throughput.ok_per_s
        if self._open is not None and rate and not row.labels.get("opens"):
            trials, load_before, before = self._open
            if load_before == load and trials[-1].ok_per_s:
                ratio = trials[-1].ok_per_s / math.sqrt(before * rate)
                trials[-1] = replace(trials[-1], ratio=ratio)
        self._open = None
        self._before = (load, rate) if rate else None

    def trial(self, load: str, measured: list[Figures]) -> None:
        """A subject's own row, the last of those ``measured`` of its cell."""
        before, self._before = self._before, None
        self._open = None
        if before is not None and before[0] == load:
            self._open = (measured, load, before[1])
