"""Makes a report from runs in the store: gathers, draws, and returns the page and the charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trueload.published.tables import BROADCASTS, broadcast_curves
from trueload.record.schema import Record
from trueload.report.html.comparisons import of_pairs, of_runs
from trueload.report.html.gather import gather
from trueload.report.html.page import Plot, Plots, render
from trueload.report.html.view import View, make_view
from trueload.store.rows import Row, Run
from trueload.store.runs import Store


@dataclass(frozen=True)
class HtmlReport:
    """A report that is ready to write; each chart is drawn once, when it is asked for."""

    view: View
    plots: Plots


def make(
    store: Store, runs: Sequence[Run], *, anonymous: bool = False, published: bool = False
) -> HtmlReport:
    """Return the report of these runs; the first is the base of comparisons.

    With ``anonymous`` it does not name machines; with ``published`` any page of broadcasts has the
    curves of others.
    """
    reports = [gather(run, store.rows(run)) for run in runs]
    by_id = {run.id: run for run in runs}

    def fetch(run_id: str, seq: int) -> Record | None:
        row = store.row(by_id[run_id], seq)
        return row.record if isinstance(row, Row) else None

    pairs = [of_pairs(run, store.rows(run)) for run in runs if run.kind == "ab"]
    compared = of_runs(store, runs) if len(runs) > 1 else None
    found = [each for each in pairs if each is not None]
    published = published or any(run.title == BROADCASTS for run in runs)
    curves = broadcast_curves() if published else ()
    view = make_view(reports, fetch, found, compared, curves, anonymous=anonymous)
    return HtmlReport(view, Plots())


def page(made: HtmlReport) -> str:
    return render(made.view, made.plots)


def plots(made: HtmlReport) -> list[Plot]:
    """Return the charts, each with a name for its file."""
    return made.plots.files(made.view)
