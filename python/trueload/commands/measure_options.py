"""The options of how often is measured, and of what happens with the result, each declared once."""

import re
from pathlib import Path
from typing import Literal, get_args

from trueload.protocol.load_options import RepeatOptions
from trueload.protocol.option import (
    FLAG,
    JSON_FILE,
    OUT_FILE,
    Settings,
    Unit,
    counts_to,
    one_of,
    option,
)

HOSTS_MAX = 10_000
PORT_MAX = 65_535

OutputFormat = Literal["text", "json", "csv", "markdown"]
WsFormat = Literal["text", "json", "csv", "markdown", "shootout"]
CompareFormat = Literal["text", "markdown", "junit", "json"]
ShowFormat = Literal["text", "markdown"]
SearchAxis = Literal["rate", "connections"]

SEARCH, OUTPUT = "Search, thresholds and repetitions", "Output"
CONDITION = Unit("CONDITION")
ENDINGS_TEXT = (
    ".html (the report), .xml (JUnit), .md (a summary of at most 15 lines), .csv, .json or .parquet"
)
ENDINGS = tuple(re.findall(r"\.[a-z]+", ENDINGS_TEXT))
"""What the name of a file of ``-o`` may end with."""


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text[:6]) > PORT_MAX:
        raise ValueError(f"'{text}' is not a port from 1 to {PORT_MAX}, or 0 for any free one")
    return int(text)


PORT = Unit("[PORT]", _port, keyword="Number")


class ShowOptions(Settings, group=OUTPUT):
    """How a stored run is shown."""

    format: ShowFormat = option(
        one_of(*get_args(ShowFormat)),
        "Output format; markdown has the tables of a suite, or the trials of another run.",
        default="text",
    )


class SearchOptions(Settings, group=SEARCH):
    """A search for the largest load that keeps to a limit."""

    limit: str | None = option(
        CONDITION,
        "Search for the largest rate that keeps to the limit, such as 'p99<10ms' or 'p99<10ms and"
        " errors<0.1%', starting at --rate. Each step lasts --duration; by default, as long as its"
        " percentile needs.",
        "Find the largest rate with, say, 'p99<10ms'",
    )
    search: SearchAxis | None = option(
        one_of(*get_args(SearchAxis)),
        "What --limit searches for: the largest rate, or the largest number of connections.",
        unset="rate",
    )


class JudgingOptions(Settings, group=SEARCH):
    """What the exit code says of a result."""

    fail_on: tuple[str, ...] = option(
        CONDITION,
        "Exit with code 1 if the condition holds: 'p99>20ms', 'throughput<50k/s', 'errors>0.1%';"
        " repeatable. With several trials, the median decides. 'mean' and 'max' cover answers only,"
        " and also count as crossed once a request failed, never ended or was never sent.",
        "Exit with 1 if, say, 'p99>20ms'",
        several=True,
    )
    strict: bool = option(FLAG, "Exit with code 4 also when the verdict is suspect.")


class RatioOptions(Settings, group=SEARCH):
    """A comparison, and what the exit code says of it."""

    fail_on: tuple[str, ...] = option(
        CONDITION,
        "Exit with code 1 if the condition holds for a row's ratio, new to base: 'throughput<0.95',"
        " 'p99>1.2'; repeatable. Needs several trials on each side; an unclear row never crosses"
        " it.",
        "Exit with 1 if a ratio is, say, 'p99>1.2'",
        several=True,
    )
    format: CompareFormat = option(
        one_of(*get_args(CompareFormat)),
        "Output format of the comparison.",
        "text, markdown, junit or json",
        default="text",
        group=OUTPUT,
    )


class JsonOptions(Settings, group=OUTPUT):
    """The result for a program."""

    json_path: Path | None = option(
        JSON_FILE,
        "Write the result as one JSON object to FILE, or to stdout with -.",
        "Write the result as JSON; - for stdout",
    )


class FilesOptions(Settings, group=OUTPUT):
    """The result in files."""

    output: tuple[Path, ...] = option(
        OUT_FILE,
        f"Write the result to FILE, as its ending says: {ENDINGS_TEXT}; repeatable.",
        "Write the result in the form of FILE's ending",
        short="-o",
        several=True,
    )


class LiveOptions(Settings, group=OUTPUT):
    """What is shown meanwhile."""

    no_live: bool = option(FLAG, "Show no live view on a terminal, and ignore the key q.")
    web: int | None = option(
        PORT,
        "Show the run in a browser, and at the end its report, at a secret URL of 127.0.0.1, which"
        " is printed; without PORT, on any free port.",
        "Show the run in a browser",
    )


class ResultOptions(LiveOptions, JsonOptions, FilesOptions, JudgingOptions, group=OUTPUT):
    """What happens with the result of any measurement."""

    quiet: bool = option(
        FLAG,
        "Print only errors, and what --format or --json asks for.",
        "Print only errors and what is asked for",
    )
    no_save: bool = option(FLAG, "Do not save the run in the store.")
    dry_run: bool = option(
        FLAG,
        "Print the Job of Pods that would be made (--place k8s:NAMESPACE), and make nothing.",
        group=SEARCH,
    )


class MeasureOptions(ResultOptions, RepeatOptions, SearchOptions, group=OUTPUT):
    """All of them."""

    format: OutputFormat = option(
        one_of(*get_args(OutputFormat)),
        "Output format of the result; csv and markdown have a row for each trial or step.",
        "text, json, csv or markdown",
        default="text",
    )
    allow_lost: int | None = option(
        counts_to(HOSTS_MAX),
        "Number of hosts that may be lost while the others go on with their own parts of the load.",
        unset="0",
        group="Where it runs",
    )


class WsLimitOptions(Settings, group=SEARCH):
    """What echoes and broadcasts have in another form."""

    limit: str | None = option(
        CONDITION,
        "Limit to keep to, such as 'p95<500ms'. Echo: search for the largest rate that does,"
        " starting at --rate. Broadcast: let clients join until the limit is crossed; p95 is of"
        " deliveries, receipt_p95 of receipts.",
        "Find the largest load with, say, 'p95<500ms'",
        unset="for a broadcast, p95<500ms; with --format shootout, receipt_p95<500ms",
    )
    format: WsFormat = option(
        one_of(*get_args(WsFormat)),
        "Output format of the result; csv and markdown have a row for each trial or step."
        " Broadcast: shootout prints steps as they were published.",
        "text, json, csv, markdown or shootout",
        default="text",
        group=OUTPUT,
    )


class BroadcastOptions(ResultOptions, WsLimitOptions):
    """All that a broadcast has."""
