"""The options of ``trueload suite run`` that say which subjects, and what is shown."""

from typing import Literal, get_args

from trueload.commands.measure_options import (
    OUTPUT,
    SEARCH,
    FilesOptions,
    JsonOptions,
    LiveOptions,
)
from trueload.protocol.option import FLAG, Unit, one_of, option
from trueload.suites.changes import Changes

Format = Literal["text", "csv", "markdown", "json"]
Pair = Literal["reference", "none"]


class SuiteOptions(LiveOptions, JsonOptions, FilesOptions, Changes, group=OUTPUT):
    """What a suite measures, and how it is shown."""

    subjects: tuple[str, ...] = option(
        Unit("SELECT,…"),
        "Subjects to measure, by NAME, LANGUAGE or LANGUAGE/NAME, with :VARIANT for one variant; !"
        " excludes.",
        "Subjects to measure; ! excludes",
        several=True,
        group="Subjects",
    )
    pair: Pair | None = option(
        one_of(*get_args(Pair)),
        "Pair each trial with the suite's reference, and rank by the ratio to it; none turns this"
        " off.",
        unset="reference on a virtual machine, from six repetitions on",
        group=SEARCH,
    )
    dry_run: bool = option(
        FLAG,
        "Print the plan, and measure nothing.",
        "Print the plan, and measure nothing",
        group=SEARCH,
    )
    resume: str | None = option(
        Unit("RUN"),
        "Continue this interrupted run, with its own plan.",
        "Continue this interrupted run",
        group=SEARCH,
    )
    format: Format = option(
        one_of(*get_args(Format)),
        "Output format of the table.",
        "text, csv, markdown or json",
        default="text",
        group=OUTPUT,
    )
    published: bool = option(
        FLAG,
        "Show the columns of published tables, and the best repetition of each subject.",
        group=OUTPUT,
    )
