"""The options that every command which measures has, as values.

How: they are read before anything is known of a job. What they mean is in ``measure``, with all
models of plans and records, which a help or a mistyped option does without.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trueload.commands.declarations import reader_of
from trueload.commands.flags import with_read
from trueload.commands.measure_options import MeasureOptions
from trueload.commands.options import check_one_stdout, check_result_files, read_metrics
from trueload.commands.place_options import read_placement
from trueload.metrics.options import MetricsOptions
from trueload.places.names import Placement
from trueload.protocol.engine_options import EngineOptions
from trueload.protocol.load_options import LoadOptions


@dataclass(frozen=True)
class JobOptions:
    """How often is measured, under which load, by which engines, and what becomes of it."""

    given: MeasureOptions
    load: LoadOptions
    engine: EngineOptions
    placement: Placement
    metrics: MetricsOptions


@with_read(
    given=reader_of(MeasureOptions),
    load=reader_of(LoadOptions),
    engine=reader_of(EngineOptions),
    placement=read_placement,
    metrics=read_metrics,
)
def read_job_options(given: MeasureOptions, **others: Any) -> JobOptions:
    """Return the options. Raises ``UserError``."""
    check_one_stdout(given.json_path, given.format)
    check_result_files(given.output, saved=not given.no_save)
    return JobOptions(given=given, **others)
