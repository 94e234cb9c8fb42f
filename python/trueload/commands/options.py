"""Options that more than one command takes, each defined once: name, meaning, unit, parser.

A value is parsed by ``units`` while the command line is read, so that commands get meaning, not
text; what is wrong with it comes back as typer's usage error. Defaults are None here: a command
must know whether an option was given. Must not know what any command does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from trueload.errors import UserError
from trueload.files import outputs
from trueload.protocol.engine_options import PIPELINE_MAX
from trueload.protocol.option import positive_count
from trueload.request.http2 import header_table_size, window_of_connection, window_of_stream
from trueload.request.message import MESSAGE_BYTES_MAX
from trueload.units import (
    format_cpu_list,
    parse_size,
)

Value = TypeVar("Value")

REPEAT_MAX = 10_000


def option_parser(parse: Callable[[str], Value]) -> Callable[[str], Value]:
    """A parser for typer: what ``parse`` finds wrong becomes a usage error with its sentence."""

    def parse_option(text: str) -> Value:
        try:
            return parse(text)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error

    # click shows the name where it has no better word for the type.
    parse_option.__name__ = parse.__name__.removeprefix("parse_").upper()
    return parse_option


def _message_size(text: str) -> int:
    size_bytes = parse_size(text)
    if not 1 <= size_bytes <= MESSAGE_BYTES_MAX:
        raise ValueError(f"'{text}' is not from 1 B to {MESSAGE_BYTES_MAX // 2**20} MiB")
    return size_bytes


class DialectChoice(StrEnum):
    """How a WebSocket server wants its messages wrapped."""

    JSON = "json"
    BINARY = "binary"
    ACTIONCABLE = "actioncable"
    PHOENIX = "phoenix"


class HttpVersion(StrEnum):
    """A version of HTTP."""

    ONE = "1.1"
    TWO = "2"


class HttpChoice(StrEnum):
    """Which version of HTTP is spoken."""

    ONE = "1.1"
    TWO = "2"
    AUTO = "auto"


class OutputFormat(StrEnum):
    """How a result is printed."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"


class SearchAxis(StrEnum):
    """What ``--limit`` searches the largest of."""

    RATE = "rate"
    CONNECTIONS = "connections"


def check_cpus(chosen: Sequence[int]) -> None:
    """Raises ``UserError`` for CPUs that this process may not use."""
    allowed = os.sched_getaffinity(0)
    missing = [cpu for cpu in chosen if cpu not in allowed]
    if missing:
        raise UserError(
            f"there is no CPU {missing[0]} to use", f"CPUs here are {format_cpu_list(allowed)}"
        )


def check_one_stdout(json_path: Path | None, format_: str) -> None:
    """Raises ``UserError`` where two results would be printed into each other."""
    if str(json_path) == "-" and format_ != OutputFormat.TEXT:
        raise UserError("--json - and --format both want stdout", "name a file for --json")


def check_writable(path: Path | None, option: str = "--json") -> None:
    """Find out that a result cannot be written before anything is measured."""
    if path is None or str(path) == "-":
        return
    try:
        outputs.check_writable(path)
    except OSError as error:
        raise UserError(
            f"{option} {path} cannot be written: {error.strerror}", "name another file"
        ) from error


HostPortArgument = Annotated[
    str,
    typer.Argument(metavar="HOST:PORT", help="Or unix:PATH, a socket file.", show_default=False),
]
UrlArgument = Annotated[
    str | None,
    typer.Argument(metavar="URL", help="http://HOST[:PORT]/PATH, or https://", show_default=False),
]
CloseOption = Annotated[bool, typer.Option("--close", help="A connection per request, or message.")]
SizeOption = Annotated[
    int | None,
    typer.Option(
        "--size",
        metavar="SIZE",
        parser=option_parser(_message_size),
        help="Bytes of a message, like 64, 16KiB, 1MiB.  [default: 64]",
    ),
]
DataOption = Annotated[
    Path | None,
    typer.Option("--data", metavar="FILE", help="Send this file as the message; - for stdin."),
]
HalfCloseOption = Annotated[
    bool,
    typer.Option(
        "--half-close",
        help="End the sending side behind each message; all of it must still come back.",
    ),
]
DialectOption = Annotated[
    DialectChoice | None,
    typer.Option(
        "--dialect",
        help="How messages are wrapped.  [default: json; what is only echoed stays as it is]",
    ),
]
RepeatOption = Annotated[
    int | None,
    typer.Option(
        "--repeat",
        metavar="COUNT",
        parser=option_parser(positive_count(REPEAT_MAX)),
        help="Measure so many times; the median counts.",
    ),
]
JsonOption = Annotated[
    Path | None,
    typer.Option(
        "--json",
        metavar="FILE",
        help="Write the result as one JSON object, - for stdout.",
    ),
]
FormatOption = Annotated[
    OutputFormat,
    typer.Option(
        "--format",
        help="How the result is printed; csv and markdown have a row for each trial, or step.",
    ),
]
QuietOption = Annotated[
    bool, typer.Option("--quiet", help="Print errors, and what --format or --json asks for, alone.")
]
AsJsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
OutputOption = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write there, not to stdout.")
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="End with 4 also when the verdict is suspect.")
]
NoSaveOption = Annotated[bool, typer.Option("--no-save", help="Leave nothing in the store.")]
NoLiveOption = Annotated[
    bool,
    typer.Option("--no-live", help="No live view, and no key to stop by, on a terminal either."),
]
MethodOption = Annotated[
    str | None,
    typer.Option("-X", "--method", metavar="METHOD", help="[default: GET; POST with a body]"),
]
HeaderOption = Annotated[
    list[str] | None,
    typer.Option("-H", "--header", metavar="HEADER", help="'Name: value'; repeatable."),
]
UserOption = Annotated[
    str | None, typer.Option("--user", metavar="NAME:PASSWORD", help="Basic authorization.")
]
BodyOption = Annotated[
    str | None, typer.Option("--body", metavar="TEXT", help="The body of each request.")
]
BodyFileOption = Annotated[
    Path | None,
    typer.Option("--body-file", metavar="FILE", help="A file with the body, - for stdin."),
]
KeepBodyOption = Annotated[
    bool,
    typer.Option(
        "--keep-body",
        help="Store the bodies of the command line as they are, not by their SHA-256.",
    ),
]
ExpectStatusOption = Annotated[
    list[str] | None,
    typer.Option(
        "--expect-status",
        metavar="CODES",
        help="Good answers, like 200, 200,404 or 3xx.  [default: 2xx]",
    ),
]
ExpectBodyOption = Annotated[
    str | None,
    typer.Option("--expect-body", metavar="TEXT", help="The exact body of a good answer."),
]
ExpectSameOption = Annotated[
    bool,
    typer.Option("--expect-same", help="Fail if the answers to a request are not all alike."),
]
CacertOption = Annotated[
    Path | None,
    typer.Option(
        "--cacert",
        metavar="FILE",
        help="Trust the issuers in this PEM file, instead of the system's (TLS).",
    ),
]
InsecureOption = Annotated[
    bool,
    typer.Option(
        "--insecure", help="Trust anybody's certificate; the record and the report say so (TLS)."
    ),
]
CertOption = Annotated[
    Path | None,
    typer.Option("--cert", metavar="FILE", help="The certificate to show, with its chain (PEM)."),
]
KeyOption = Annotated[
    Path | None,
    typer.Option(
        "--key", metavar="FILE", help="Its private key (PEM); without it, in the file of --cert."
    ),
]
NoTlsResumptionOption = Annotated[
    bool,
    typer.Option(
        "--no-tls-resumption", help="A full handshake for every connection, no session resumed."
    ),
]
LocalAddressOption = Annotated[
    list[str] | None,
    typer.Option("--local-address", metavar="IP", help="Connect from it; repeatable, in turn."),
]
TargetsOption = Annotated[
    Path | None,
    typer.Option(
        "--targets",
        metavar="FILE",
        help="Several requests in turns by weight, to one server or several, a JSON object each"
        " line; - for stdin.",
    ),
]
CurlOption = Annotated[
    str | None,
    typer.Option(
        "--curl",
        metavar="COMMAND",
        help="Ask what a copied curl command asks: --curl 'curl http://… -H …'",
    ),
]
HttpOption = Annotated[
    HttpChoice | None,
    typer.Option(
        "--http",
        help="HTTP version to speak. Over https:// 2 is negotiated by ALPN, and auto takes what the"
        " server chooses for each connection; over http:// the server must expect 2 (prior"
        " knowledge).  [default: 1.1]",
    ),
]
StreamsOption = Annotated[
    int | None,
    typer.Option(
        "--streams",
        metavar="COUNT",
        parser=option_parser(positive_count(PIPELINE_MAX)),
        help="Requests in flight on each connection of HTTP/2.  [default: 1]",
    ),
]
WindowOption = Annotated[
    int | None,
    typer.Option(
        "--window",
        metavar="SIZE",
        parser=option_parser(window_of_stream),
        help="What the server may send on a stream before it waits for us: a size, rfc (64 KiB),"
        " browser (Chrome: 6 MiB) or unlimited.  [default: browser]",
    ),
]
ConnectionWindowOption = Annotated[
    int | None,
    typer.Option(
        "--connection-window",
        metavar="SIZE",
        parser=option_parser(window_of_connection),
        help="The same for a whole connection (browser: 15 MiB).  [default: browser]",
    ),
]
HeaderTableSizeOption = Annotated[
    int | None,
    typer.Option(
        "--header-table-size",
        metavar="SIZE",
        parser=option_parser(header_table_size),
        help="What the server may remember of headers on each connection (HPACK); 0 for nothing."
        "  [default: 4KiB]",
    ),
]
H2cUpgradeOption = Annotated[
    bool,
    typer.Option(
        "--h2c-upgrade",
        help="Begin each connection with a request of HTTP/1.1 that asks for HTTP/2 (RFC 7540"
        " §3.2), over http:// alone.",
    ),
]
UnixOption = Annotated[
    str | None,
    typer.Option(
        "--unix", metavar="PATH", help="Connect to this socket file; the URL names Host and path."
    ),
]
ResolveOption = Annotated[
    list[str] | None,
    typer.Option(
        "--resolve",
        metavar="HOST:PORT:ADDRESS",
        help="Connect to the address for this host and port, as curl has it; repeatable.",
    ),
]
FailOnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-on",
        metavar="CONDITION",
        help="End with 1 if it holds: 'p99>20ms', 'throughput<50k/s', 'errors>0.1%';"
        " repeatable. Of several trials the median counts. 'mean' and 'max' are of answers, and"
        " crossed, too, as soon as one request failed, never ended or was never sent.",
    ),
]
LimitOption = Annotated[
    str | None,
    typer.Option(
        "--limit",
        metavar="CONDITION",
        help="Search the largest rate that keeps to it, like 'p99<10ms' or"
        " 'p99<10ms and errors<0.1%', from --rate on; --duration is that of each step."
        "  [default: as long as the percentile needs]",
    ),
]
SearchOption = Annotated[
    SearchAxis | None,
    typer.Option("--search", help="What --limit searches the largest of.  [default: rate]"),
]
