"""``trueload report``: runs as one HTML page, and its charts as files.

How: everything heavy is imported only here, and a thread starts the renderer of charts while the
rows are read.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from trueload.commands.options import check_writable
from trueload.commands.stored_runs import run_argument
from trueload.errors import ExitCode, UserError
from trueload.files.outputs import output as opened
from trueload.files.outputs import write_text
from trueload.files.private import make_folder
from trueload.store.rows import Run
from trueload.store.run_files import is_file, restore
from trueload.store.runs import Store

if TYPE_CHECKING:
    from trueload.report.html.page import Plot

RUNS_MAX = 12

RunsArgument = Annotated[
    list[str],
    run_argument(
        "RUN",
        "Runs to show, each by id, start of its id, tag, or last, or a file of `trueload runs"
        " export --format json`; the first is the base.",
    ),
]
_NO_PAGES = (".pdf", ".png", ".svg", ".json", ".csv", ".md", ".xml", ".parquet")
PageOption = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", metavar="FILE", help=("Write the page to FILE, or to stdout with -.")
    ),
]
PlotsOption = Annotated[
    Path | None,
    typer.Option("--plots", metavar="DIR", help="Write each chart to DIR, as SVG and as PNG."),
]
AnonymousOption = Annotated[
    bool, typer.Option("--anonymous", help="Leave the names of the machines out of the page.")
]
PublishedOption = Annotated[
    bool,
    typer.Option(
        "--published", help="Draw the published curves of 2016 behind those of any broadcast."
    ),
]


def register(app: typer.Typer) -> None:
    app.command("report")(report)


def report(
    runs: RunsArgument,
    output: PageOption = None,
    plots: PlotsOption = None,
    anonymous: AnonymousOption = False,
    published: PublishedOption = False,
) -> int:
    """Write runs as one HTML page to look at, send and print.

    It has a summary in words, rankings, latency curves, checks with what to do, the environment,
    and the commands to repeat the runs. It needs no network and runs no script. Several runs are
    shown side by side.

    Example: trueload report last -o report.html
    """
    if output is None and plots is None:
        raise UserError(
            "there is nothing to write", "add -o report.html for the page, or --plots DIR"
        )
    if output is not None and (ending := output.suffix.lower()) in _NO_PAGES:
        raise UserError(
            f"-o {output}: a report is a page of HTML, not {ending}",
            "add -o report.html; --plots DIR writes charts, `trueload runs export RUN` data",
        )
    from trueload.report.html import draw

    with _opened(runs) as (store, found):
        _check_writable(output, plots)
        draw.warm_up()
        from trueload.report.html import make

        made = make.make(store, found, anonymous=anonymous, published=published)
    if output is not None:
        write_text(output, make.page(made))
        if str(output) != "-":
            sys.stderr.write(f"written      {output}\n")
    if plots is not None:
        _write_plots(plots, make.plots(made))
    return ExitCode.OK


@contextmanager
def _opened(selectors: list[str]) -> Iterator[tuple[Store, list[Run]]]:
    """Open the store with the runs, each once, in the order of naming.

    If one of them is a file, all are in a store that lasts as long as the command.
    """
    if len(selectors) > RUNS_MAX:
        raise UserError(
            f"{len(selectors)} runs are more than a page can show", f"name up to {RUNS_MAX}"
        )
    if not any(map(is_file, selectors)):
        with Store.open() as store:
            found = {run.id: run for run in map(store.find_run, selectors)}
            yield store, list(found.values())
        return
    with TemporaryDirectory() as folder, Store.open(Path(folder, "runs.sqlite3")) as scratch:
        found = {}
        for selector in selectors:
            run = (
                restore(Path(selector), scratch) if is_file(selector) else _copy(selector, scratch)
            )
            found.setdefault(run.id, run)
        yield scratch, list(found.values())


def _copy(selector: str, scratch: Store) -> Run:
    with Store.open() as store:
        run = store.find_run(selector)
        return scratch.restore_run(run, store.rows(run))


def _check_writable(output: Path | None, plots: Path | None) -> None:
    """Raise an error before anything is drawn if the output cannot be written."""
    check_writable(output, "-o")
    try:
        if plots is not None:
            make_folder(plots)
    except OSError as error:
        raise UserError(
            f"{error.filename} cannot be written: {error.strerror}", "name another place"
        ) from error


def _write_plots(folder: Path, plots: Iterable[Plot]) -> None:
    from trueload.report.html import draw

    for plot in plots:
        write_text(folder / f"{plot.name}.svg", draw.alone(plot.svg))
        with opened(folder / f"{plot.name}.png") as file:
            file.write(draw.to_png(plot.svg))
