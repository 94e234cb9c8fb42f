"""The options of ``trueload suite run``, as a job."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from trueload.commands.declarations import reader_of
from trueload.commands.flags import with_read
from trueload.commands.options import check_result_files, read_metrics
from trueload.commands.place_options import check_all_at_start, read_placement
from trueload.commands.suite_options import SuiteOptions
from trueload.commands.web import check_web
from trueload.metrics.options import NO_METRICS, MetricsOptions
from trueload.places.names import HERE, Placement
from trueload.protocol.engine_options import EngineOptions
from trueload.protocol.load_options import WINDOW_KEYS, LoadOptions
from trueload.suites.changes import Changes

STDOUT = Path("-")


@dataclass(frozen=True)
class SuiteJob:
    """A command line that has been understood. ``words`` are as those of ``job.Job``. ``where`` is
    not of the plan: a run may be resumed elsewhere, and each record says where it was made."""

    name: str | None
    changes: Changes
    given: SuiteOptions
    metrics: MetricsOptions = NO_METRICS
    words: tuple[str, ...] | None = None
    placement: Placement = HERE

    @property
    def live(self) -> bool:
        return not self.given.no_live

    @property
    def json_path(self) -> Path | None:
        """The file for the result as JSON."""
        by_format = STDOUT if self.given.format == "json" else None
        return self.given.json_path or by_format


@with_read(
    without=("server_pid",),
    given=reader_of(SuiteOptions),
    # The other settings of an engine are keys of the suite's file alone.
    engine=reader_of(EngineOptions, only=("threads", "timeout"), by_default=False),
    window=reader_of(LoadOptions, only=WINDOW_KEYS, by_default=False),
    placement=read_placement,
    metrics=read_metrics,
)
def read_suite(
    given: SuiteOptions,
    engine: EngineOptions,
    window: LoadOptions,
    placement: Placement,
    metrics: MetricsOptions,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME|FILE", help=("Suite to run: a name from the catalogue, or a .toml file.")
        ),
    ] = None,
) -> SuiteJob:
    """Run a suite: build, start, verify and measure each subject, and rank them.

    Exit codes: 0 something is ranked; 3 nothing could be measured; 4 every measured row is invalid.

    Example: trueload suite run http-servers --subjects nginx,go -c 64 -d 3s

    The plan alone: trueload suite run http-servers --dry-run

    An interrupted run: trueload suite run --resume last
    """
    changes = Changes(**given.only(Changes).given, window=window, engine=engine)
    check_result_files(given.output)
    check_all_at_start(placement, "a suite")
    check_web(given)
    return SuiteJob(name, changes, given, metrics, placement=placement)
