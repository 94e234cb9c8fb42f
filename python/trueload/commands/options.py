"""Options that more than one command takes, each defined once: name, meaning, unit, parser.

``units`` parses a value while the command line is read, so that commands get typed values instead
of text. Errors come back as typer's usage errors. Defaults are None here, as a command must know
whether an option was given. Must not know: what any command does.
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
    """Return a parser for typer; an error of ``parse`` becomes a usage error with its text."""

    def parse_option(text: str) -> Value:
        try:
            return parse(text)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error

    # click shows this name if it has no better word for the type.
    parse_option.__name__ = parse.__name__.removeprefix("parse_").upper()
    return parse_option


def _message_size(text: str) -> int:
    size_bytes = parse_size(text)
    if not 1 <= size_bytes <= MESSAGE_BYTES_MAX:
        raise ValueError(f"'{text}' is not from 1 B to {MESSAGE_BYTES_MAX // 2**20} MiB")
    return size_bytes


class DialectChoice(StrEnum):
    """The message format of a WebSocket server."""

    JSON = "json"
    BINARY = "binary"
    ACTIONCABLE = "actioncable"
    PHOENIX = "phoenix"


class HttpVersion(StrEnum):
    """A version of HTTP."""

    ONE = "1.1"
    TWO = "2"


class HttpChoice(StrEnum):
    """The version of HTTP to speak."""

    ONE = "1.1"
    TWO = "2"
    AUTO = "auto"


class OutputFormat(StrEnum):
    """The format of the printed result."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"


class DataOrderChoice(StrEnum):
    """Which row of data a request takes."""

    SEQUENTIAL = "sequential"
    SHUFFLED = "shuffled"
    UNIQUE = "unique"


class SearchAxis(StrEnum):
    """The load that ``--limit`` searches the maximum of."""

    RATE = "rate"
    CONNECTIONS = "connections"


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
    if str(json_path) == "-" and format_ != OutputFormat.TEXT:
        raise UserError("--json - and --format both want stdout", "name a file for --json")


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


HostPortArgument = Annotated[
    str,
    typer.Argument(
        metavar="HOST:PORT",
        help=("Server to load; tcp also takes unix:PATH, a socket file."),
        show_default=False,
    ),
]
UrlArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="URL",
        help=("URL to load: http://HOST[:PORT]/PATH, or the same with https://."),
        show_default=False,
    ),
]
CloseOption = Annotated[
    bool, typer.Option("--close", help=("Open a new connection for each request or message."))
]
SizeOption = Annotated[
    int | None,
    typer.Option(
        "--size",
        metavar="SIZE",
        parser=option_parser(_message_size),
        help="Size of each message, such as 64, 16KiB or 1MiB.  [default: 64]",
    ),
]
DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="FILE",
        help=(
            "For http, the file with a row for each request or session (.csv, .tsv, .jsonl):"
            " {name} in path, header values and body becomes its column. Elsewhere the file is the"
            " message; - for stdin."
        ),
    ),
]
DataOrderOption = Annotated[
    DataOrderChoice | None,
    typer.Option(
        "--data-order",
        help=(
            "Which row a request or session takes: the next and then the first again, one in"
            " random order, or each row once, which ends the run.  [default: sequential]"
        ),
    ),
]
HalfCloseOption = Annotated[
    bool,
    typer.Option(
        "--half-close",
        help=(
            "Close the sending side after each message; all of it must still come back."
            " Needs --close."
        ),
    ),
]
DialectOption = Annotated[
    DialectChoice | None,
    typer.Option(
        "--dialect",
        help="Format that messages are wrapped in.  [default: json; plain echoes are not wrapped]",
    ),
]
RepeatOption = Annotated[
    int | None,
    typer.Option(
        "--repeat",
        metavar="COUNT",
        parser=option_parser(positive_count(REPEAT_MAX)),
        help="Number of times to measure; the median counts.",
    ),
]
JsonOption = Annotated[
    Path | None,
    typer.Option(
        "--json",
        metavar="FILE",
        help="Write the result as one JSON object to FILE, or to stdout with -.",
    ),
]
FormatOption = Annotated[
    OutputFormat,
    typer.Option(
        "--format",
        help="Output format of the result; csv and markdown have a row for each trial or step.",
    ),
]
QuietOption = Annotated[
    bool, typer.Option("--quiet", help="Print only errors, and what --format or --json asks for.")
]
AsJsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
OutputOption = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="FILE", help=("Write to FILE instead of stdout.")),
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Exit with code 4 also when the verdict is suspect.")
]
NoSaveOption = Annotated[bool, typer.Option("--no-save", help="Do not save the run in the store.")]
NoLiveOption = Annotated[
    bool,
    typer.Option("--no-live", help="Show no live view on a terminal, and ignore the key q."),
]
MethodOption = Annotated[
    str | None,
    typer.Option(
        "-X",
        "--method",
        metavar="METHOD",
        help=("HTTP method of each request.  [default: GET; POST with a body]"),
    ),
]
HeaderOption = Annotated[
    list[str] | None,
    typer.Option(
        "-H",
        "--header",
        metavar="HEADER",
        help=("Header to send, written 'Name: value'; repeatable."),
    ),
]
UserOption = Annotated[
    str | None,
    typer.Option(
        "--user",
        metavar="NAME:PASSWORD",
        help=("Name and password to send as HTTP basic authentication."),
    ),
]
BodyOption = Annotated[
    str | None,
    typer.Option("--body", metavar="TEXT", help=("Text to send as the body of each request.")),
]
BodyFileOption = Annotated[
    Path | None,
    typer.Option(
        "--body-file",
        metavar="FILE",
        help=("File to send as the body of each request; - for stdin."),
    ),
]
KeepBodyOption = Annotated[
    bool,
    typer.Option(
        "--keep-body",
        help="Store bodies given on the command line as they are, instead of their SHA-256.",
    ),
]
ExpectStatusOption = Annotated[
    list[str] | None,
    typer.Option(
        "--expect-status",
        metavar="CODES",
        help=(
            "Status codes of a good answer, such as 200, 200,404 or 3xx; repeatable. "
            " [default: 2xx]"
        ),
    ),
]
ExpectBodyOption = Annotated[
    str | None,
    typer.Option("--expect-body", metavar="TEXT", help="Exact body that a good answer must have."),
]
ExpectSameOption = Annotated[
    bool,
    typer.Option(
        "--expect-same",
        help=("Make the verdict invalid if the answers to a request are not all alike."),
    ),
]
CacertOption = Annotated[
    Path | None,
    typer.Option(
        "--cacert",
        metavar="FILE",
        help="Trust the issuers in this PEM file instead of the system's (TLS).",
    ),
]
InsecureOption = Annotated[
    bool,
    typer.Option(
        "--insecure", help="Accept any certificate; the record and the report say so (TLS)."
    ),
]
CertOption = Annotated[
    Path | None,
    typer.Option("--cert", metavar="FILE", help="Certificate to present, with its chain (PEM)."),
]
KeyOption = Annotated[
    Path | None,
    typer.Option(
        "--key",
        metavar="FILE",
        help=(
            "Private key of the certificate (PEM); by default it is read from the file of --cert."
        ),
    ),
]
NoTlsResumptionOption = Annotated[
    bool,
    typer.Option(
        "--no-tls-resumption",
        help=("Make a full TLS handshake for every connection, and resume no session."),
    ),
]
LocalAddressOption = Annotated[
    list[str] | None,
    typer.Option(
        "--local-address",
        metavar="IP",
        help=("Local address to connect from; repeatable, and then used in turn."),
    ),
]
TargetsOption = Annotated[
    Path | None,
    typer.Option(
        "--targets",
        metavar="FILE",
        help=(
            "File of requests to one server or several, one JSON object per line, sent in"
            " turns by weight; - for stdin."
        ),
    ),
]
ScenarioOption = Annotated[
    Path | None,
    typer.Option(
        "--scenario",
        metavar="FILE",
        help=(
            "TOML file of the steps that each connection goes through in order, as a virtual"
            " user with cookies, pauses, and values from earlier answers (docs/scenarios.md)."
        ),
    ),
]
CurlOption = Annotated[
    str | None,
    typer.Option(
        "--curl",
        metavar="COMMAND",
        help="Send the request of a copied curl command, such as --curl 'curl http://… -H …'.",
    ),
]
HttpOption = Annotated[
    HttpChoice | None,
    typer.Option(
        "--http",
        help=(
            "HTTP version to speak. Over https://, 2 is negotiated by ALPN, and auto takes"
            " what the server chooses for each connection. Over http://, the server must"
            " expect 2 (prior knowledge).  [default: 1.1]"
        ),
    ),
]
StreamsOption = Annotated[
    int | None,
    typer.Option(
        "--streams",
        metavar="COUNT",
        parser=option_parser(positive_count(PIPELINE_MAX)),
        help="Requests in flight on each HTTP/2 connection.  [default: 1]",
    ),
]
WindowOption = Annotated[
    int | None,
    typer.Option(
        "--window",
        metavar="SIZE",
        parser=option_parser(window_of_stream),
        help=(
            "Bytes that the server may send on an HTTP/2 stream before it waits for us. A"
            " size, rfc (65,535), browser (6 MiB, as in Chrome) or unlimited.  [default:"
            " browser]"
        ),
    ),
]
ConnectionWindowOption = Annotated[
    int | None,
    typer.Option(
        "--connection-window",
        metavar="SIZE",
        parser=option_parser(window_of_connection),
        help=(
            "The same for a whole HTTP/2 connection, where browser is 15 MiB.  [default: browser]"
        ),
    ),
]
HeaderTableSizeOption = Annotated[
    int | None,
    typer.Option(
        "--header-table-size",
        metavar="SIZE",
        parser=option_parser(header_table_size),
        help=(
            "Size of the HPACK table that the server may use on each HTTP/2 connection; 0"
            " for none.  [default: 4KiB]"
        ),
    ),
]
UnixOption = Annotated[
    str | None,
    typer.Option(
        "--unix",
        metavar="PATH",
        help=("Connect to this Unix socket file; the URL gives the Host header and the path."),
    ),
]
ResolveOption = Annotated[
    list[str] | None,
    typer.Option(
        "--resolve",
        metavar="HOST:PORT:ADDRESS",
        help="Connect to ADDRESS for this host and port, as with curl; repeatable.",
    ),
]
ProxyOption = Annotated[
    str | None,
    typer.Option(
        "--proxy",
        metavar="URL",
        help=(
            "Send requests through this proxy, http://[USER:PASSWORD@]HOST:PORT; for https:// URLs"
            " each connection is a tunnel (CONNECT)."
        ),
    ),
]
FailOnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-on",
        metavar="CONDITION",
        help=(
            "Exit with code 1 if the condition holds: 'p99>20ms', 'throughput<50k/s',"
            " 'errors>0.1%'; repeatable. With several trials, the median decides. 'mean' and"
            " 'max' cover answers only, and also count as crossed once a request failed,"
            " never ended or was never sent."
        ),
    ),
]
LimitOption = Annotated[
    str | None,
    typer.Option(
        "--limit",
        metavar="CONDITION",
        help=(
            "Search for the largest rate that keeps to the limit, such as 'p99<10ms' or"
            " 'p99<10ms and errors<0.1%', starting at --rate. Each step lasts --duration; by"
            " default, as long as its percentile needs."
        ),
    ),
]
SearchOption = Annotated[
    SearchAxis | None,
    typer.Option(
        "--search",
        help=(
            "What --limit searches for: the largest rate, or the largest number of connections. "
            " [default: rate]"
        ),
    ),
]
