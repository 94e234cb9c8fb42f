"""Keeps what several engines told of a window, when the run ends because one of them was lost."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

from trueload.assemble.observation import Observation
from trueload.engines.engine import EngineError
from trueload.protocol.plan import Measurement
from trueload.stats import decode_histogram

if TYPE_CHECKING:
    from trueload.engines.fleet import Fleet
    from trueload.engines.member import HostReport

LAST_WORDS_S = 1.0  # an engine ends within 1 s of `stop`


def keep_heard(fleet: Fleet, seen: Observation) -> None:
    """Add the last ticks to the observation, and what each host did in the window."""
    for tick in fleet.gather(LAST_WORDS_S):
        if tick.id is not None:
            seen.phase(tick.id).add(tick)
    seen.hosts = tuple(map(_readable, fleet.reports(seen.window.id)))


def _readable(report: HostReport) -> HostReport:
    """Return the report without a measurement that cannot be read; its ticks remain."""
    if report.measurement is None:
        return report
    with contextlib.suppress(EngineError):
        check_readable(report.measurement)
        return report
    return replace(report, measurement=None)


def check_readable(measured: Measurement) -> None:
    """Raise ``EngineError`` for a histogram that cannot be decoded."""
    found = [encoded for _, encoded in measured.histograms]
    if measured.deliveries is not None:
        found += [encoded for _, encoded in measured.deliveries.histograms]
    try:
        for encoded in found:
            decode_histogram(encoded)
    except ValueError as error:
        raise EngineError("junk", f"what the engine measured cannot be read: {error}") from error
