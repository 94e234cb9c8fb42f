"""Checks and parameters that several commands share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from trueload.commands.declarations import with_options
from trueload.commands.measure_options import ENDINGS, ENDINGS_TEXT
from trueload.errors import UserError
from trueload.extras import require
from trueload.files import outputs
from trueload.metrics.options import MetricsOptions
from trueload.protocol.option import refuse_beside
from trueload.units import format_cpu_list


def check_cpus(chosen: Sequence[int]) -> None:
    """Raise ``UserError`` for CPUs that this process may not use."""
    allowed = os.sched_getaffinity(0)
    missing = [cpu for cpu in chosen if cpu not in allowed]
    if missing:
        raise UserError(
            f"there is no CPU {missing[0]} to use", f"CPUs here are {format_cpu_list(allowed)}"
        )


def check_one_stdout(json_path: Path | None, format_: str) -> None:
    """Raise ``UserError`` if two results would go to the same stdout."""
    if str(json_path) == "-" and format_ != "text":
        raise UserError("--json - and --format both write to stdout", "name a file for --json")


def check_writable(path: Path | None, option: str = "--json") -> None:
    """Raise an error before the measurement if a result cannot be written."""
    if path is None or str(path) == "-":
        return
    try:
        outputs.check_writable(path)
    except OSError as error:
        raise UserError(
            f"{option} {path} cannot be written: {error.strerror}", "name another file"
        ) from error


def check_result_files(paths: Sequence[Path], *, saved: bool = True) -> None:
    """Raise ``UserError`` for a file of ``-o`` whose form is unknown, or that cannot be written."""
    for path in paths:
        ending = path.suffix.lower()
        if ending not in ENDINGS:
            raise UserError(
                f"-o {path} does not say what to write: its ending is not known",
                f"end it with {ENDINGS_TEXT}; --format prints the result",
            )
        check_writable(path, "-o")
        if ending == ".html":
            why = "a report is of a stored run"
            refuse_beside(f"-o {path}", {"--no-save": not saved}, "leave out --no-save", why)
            require("report", f"-o {path}", "altair", "jinja2", "vl_convert")
        if ending == ".parquet":
            require("parquet", f"-o {path}", "pyarrow")


@with_options(MetricsOptions)
def read_metrics(given: MetricsOptions) -> MetricsOptions:
    """Return the options of metrics. Raises ``UserError``."""
    if given.prometheus is None and given.prometheus_linger_ns is not None:
        raise UserError(
            "--prometheus-linger is given, but no --prometheus", "add --prometheus PORT"
        )
    return given


AsJsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
OutputOption = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="FILE", help=("Write to FILE instead of stdout.")),
]
