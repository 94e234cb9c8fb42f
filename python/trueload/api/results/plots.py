"""Charts of results: those of the report, one at a time, for a notebook or a file.

How: the functions that draw a report's charts get the records in memory. The renderer is the
report's, too, so a chart needs neither a browser nor the network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trueload.errors import UserError
from trueload.files.outputs import output
from trueload.record.schema import Record
from trueload.report.ab import PairedTrials
from trueload.report.html import draw
from trueload.report.html.charts.over_time import Courses, latency_over_time, throughput_over_time
from trueload.report.html.charts.percentiles import percentiles
from trueload.report.html.charts.ranking import ranking
from trueload.report.html.charts.ratios import ratios
from trueload.report.html.charts.theme import TitledChart
from trueload.report.html.curves import SECONDS_MIN, percentile_points, second_points
from trueload.report.html.gather import gather
from trueload.store.rows import DamagedRow, Row, Run

Records = dict[str, Record]


_SECONDS = f"it needs {SECONDS_MIN} s or more"


def _seconds(records: Records) -> Courses:
    return {name: second_points(record) for name, record in records.items()}


CHARTS: dict[str, tuple[Callable[[Records], TitledChart | None], str]] = {
    "percentiles": (
        lambda records: percentiles(
            {name: percentile_points(record) for name, record in records.items()}
        ),
        "it needs good answers",
    ),
    "latency": (lambda records: latency_over_time(_seconds(records)), _SECONDS),
    "throughput": (
        lambda records: throughput_over_time(_seconds(records), "requests/s"),
        _SECONDS,
    ),
}
"""What draws each chart, and what it needs."""


@dataclass(frozen=True, repr=False)
class Plot:
    """A chart. Notebooks show it, ``save`` writes it, and ``chart`` is Altair's, for changes."""

    drawn: TitledChart

    @property
    def chart(self) -> Any:
        """The ``altair.Chart``."""
        return self.drawn.chart

    @property
    def svg(self) -> str:
        """The SVG of the chart; it holds only shapes and text."""
        return draw.alone(draw.to_svg(self.drawn.chart))

    def save(self, path: str | Path) -> None:
        """Write it as ``.svg`` or ``.png``. Raises ``UserError``."""
        where = Path(path)
        if where.suffix not in (".svg", ".png"):
            raise UserError(f"{where} is neither .svg nor .png", "name a file that is")
        whole = self.svg
        made = whole.encode() if where.suffix == ".svg" else draw.to_png(whole)
        with output(where) as file:
            file.write(made)

    def __repr__(self) -> str:
        return f"<{self.drawn.title}: {self.drawn.description}>"

    def _repr_svg_(self) -> str:
        return self.svg


def plot_records(records: Iterable[Record], what: str) -> Plot:
    """Return a chart of trials, with a line for each. Raises ``UserError``."""
    return _plot({f"trial {number}": record for number, record in enumerate(records, 1)}, what)


def _plot(records: Records, what: str, *others: str) -> Plot:
    """One of ``CHARTS``; ``others`` would have been plots, too."""
    if what not in CHARTS:
        known = ", ".join((*others, *CHARTS))
        raise UserError(f"there is no plot '{what}'", f"it is one of {known}")
    chart_of, needs = CHARTS[what]
    return _made(chart_of(records), needs)


def plot_pairs(paired: PairedTrials, what: str) -> Plot:
    """Return the ratios of B to A, or a chart of a trial in the middle of each side. Raises
    ``UserError``."""
    if what == "ratios":
        drawn = ratios("", paired.ratios, "B / A")
        return _made(drawn, "no ratio is known")
    sides = {"A": _middle(paired.of_side("a")), "B": _middle(paired.of_side("b"))}
    return _plot(sides, what, "ratios")


def _middle(records: Sequence[Record]) -> Record:
    """The record with the median throughput; the lower one of the two in the middle."""
    in_order = sorted(records, key=lambda record: record.throughput.ok_per_s or 0.0)
    return in_order[(len(in_order) - 1) // 2]


def plot_ranking(run: Run, rows: Iterable[Row | DamagedRow], number: int) -> Plot:
    """Return the ranking of one load of a suite. Raises ``UserError``."""
    sections = gather(run, rows).sections
    if not 0 <= number < len(sections):
        raise UserError(
            f"there is no load {number}", f"the run has {len(sections)}, counted from 0"
        )
    return _made(ranking(sections[number]), "fewer than two subjects were measured")


def _made(drawn: TitledChart | None, why: str) -> Plot:
    if drawn is None:
        raise UserError(f"there is nothing to plot: {why}", "measure more")
    return Plot(drawn)
