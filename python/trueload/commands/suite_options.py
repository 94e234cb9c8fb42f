"""The options of ``trueload suite run`` that are its own, each declared once."""

from __future__ import annotations

from typing import Literal, get_args

from trueload.commands.measure_options import (
    OUTPUT,
    SEARCH,
    JsonOptions,
    LiveOptions,
    RepeatOptions,
)
from trueload.protocol.load_options import parse_seed
from trueload.protocol.option import FLAG, Unit, counts_to, one_of, option
from trueload.units import parse_duration

Format = Literal["text", "csv", "markdown", "json"]
Pair = Literal["reference", "none"]
PORT_MAX = 65_535
SUBJECTS = "Subjects"
_NUMBERS = Unit("LIST", keyword="Numbers")


class SuiteOptions(LiveOptions, JsonOptions, RepeatOptions):
    """What a suite measures, and how it is shown. A list replaces that axis of the suite."""

    group = "Load"

    subjects: tuple[str, ...] = option(
        Unit("SELECT,…"),
        "Subjects to measure, by NAME, LANGUAGE or LANGUAGE/NAME, with :VARIANT for one variant; !"
        " excludes.",
        "Subjects to measure; ! excludes",
        several=True,
        group=SUBJECTS,
    )
    cores: str | None = option(
        Unit("single|multi", keyword=""),
        "CPUs of the subject: one (single), or all that the load generator leaves (multi).",
        "CPUs of the subject: single or multi",
        group=SUBJECTS,
    )
    port: int | None = option(
        Unit("N", counts_to(PORT_MAX).parse, keyword="Number"),
        "Port for the subjects to listen on, instead of a free one.",
        group=SUBJECTS,
    )
    share_cpus: bool = option(
        FLAG, "Measure even if subject and load generator must share CPUs.", group=SUBJECTS
    )
    connections: str | None = option(
        _NUMBERS,
        "Numbers of connections to measure with, such as 8,64.",
        "Numbers of connections, such as 8,64",
        short="-c",
    )
    rate: str | None = option(
        Unit("LIST", keyword="Rates"),
        "Rates to measure at (open loops), such as 1k/s,20k/s.",
        "Rates to measure at, such as 1k/s,20k/s",
    )
    pipeline: str | None = option(
        _NUMBERS,
        "Numbers of requests in flight on each connection, such as 1,16.",
        "In flight on each connection, such as 1,16",
    )
    streams: str | None = option(
        _NUMBERS, "Numbers of requests in flight on each connection, for suites over HTTP/2."
    )
    close: bool | None = option(
        FLAG,
        "Open a new connection for each request, or keep connections open.",
        off="--no-close",
    )
    pools: str | None = option(_NUMBERS, "Numbers of connection pools, for suites of clients.")
    pool_size: str | None = option(
        _NUMBERS, "Numbers of connections in each pool, for suites of clients."
    )
    concurrency: str | None = option(
        _NUMBERS, "Numbers of requests under way at once, for suites of clients."
    )
    full: bool = option(FLAG, "Measure the larger, published grid of loads, if the suite has one.")
    seed: int | None = option(
        Unit("N", parse_seed, keyword="Number"),
        "Seed for the order of the trials, and for poisson arrivals.",
    )
    pair: Pair | None = option(
        one_of(*get_args(Pair)),
        "Pair each trial with the suite's reference, and rank by the ratio to it; none turns this"
        " off.",
        unset="reference on a virtual machine, from six repetitions on",
        group=SEARCH,
    )
    patience_ns: int | None = option(
        Unit("TIME", parse_duration, keyword="Duration"),
        "Longest time to spend on repeating trials that the machine disturbed; 0s for none.",
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
        "Add the best repetition of each subject, as published tables give it.",
        group=OUTPUT,
    )
