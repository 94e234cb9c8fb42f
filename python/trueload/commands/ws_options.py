"""Options of ``trueload ws``, each defined once: name, meaning, unit, parser.

Must not know: what the command does with them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from trueload.commands.options import option_parser
from trueload.protocol.engine_options import PIPELINE_MAX
from trueload.protocol.load_options import CONNECTIONS_MAX
from trueload.protocol.option import positive_count
from trueload.request.message import MESSAGE_BYTES_MAX
from trueload.units import parse_size


class WsMode(StrEnum):
    """The measurement of a WebSocket server."""

    ECHO = "echo"
    BROADCAST = "broadcast"


class WsFormat(StrEnum):
    """The format of the printed result; the last one is for the steps of a broadcast."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"
    SHOOTOUT = "shootout"


def _padding(text: str) -> int:
    size_bytes = parse_size(text)
    if size_bytes > MESSAGE_BYTES_MAX:
        raise ValueError(f"'{text}' is more than {MESSAGE_BYTES_MAX // 2**20} MiB")
    return size_bytes


WsUrlArgument = Annotated[
    str,
    typer.Argument(
        metavar="URL",
        help=("URL to load: ws://HOST[:PORT]/PATH, or the same with wss://."),
        show_default=False,
    ),
]
ModeOption = Annotated[
    WsMode,
    typer.Option(
        "--mode",
        help=(
            "What to measure: echo (each message comes back), or broadcast (each goes to all"
            " clients)."
        ),
    ),
]
TextOption = Annotated[
    bool | None,
    typer.Option(
        "--text/--binary", help=("Send text or binary messages. Echo only.  [default: text]")
    ),
]
OriginOption = Annotated[
    str | None, typer.Option("--origin", metavar="ORIGIN", help="Value of the Origin header.")
]
SubprotocolOption = Annotated[
    list[str] | None,
    typer.Option("--subprotocol", metavar="NAME", help="Offer this subprotocol; repeatable."),
]
StepOption = Annotated[
    int | None,
    typer.Option(
        "--step",
        metavar="COUNT",
        parser=option_parser(positive_count(CONNECTIONS_MAX)),
        help="Broadcast: clients that join with each step.  [default: 1000]",
    ),
]
InitialClientsOption = Annotated[
    int | None,
    typer.Option(
        "--initial-clients",
        metavar="COUNT",
        parser=option_parser(positive_count(CONNECTIONS_MAX)),
        help="Broadcast: clients of the first step.  [default: --step]",
    ),
]
StepsOption = Annotated[
    int | None,
    typer.Option(
        "--steps",
        metavar="COUNT",
        parser=option_parser(positive_count(CONNECTIONS_MAX)),
        help="Broadcast: stop after this many steps, even if the limit is not crossed.",
    ),
]
ConcurrentOption = Annotated[
    int | None,
    typer.Option(
        "--concurrent",
        metavar="COUNT",
        parser=option_parser(positive_count(PIPELINE_MAX)),
        help="Broadcast: messages in flight at once, over all clients.  [default: 4]",
    ),
]
SamplesOption = Annotated[
    int | None,
    typer.Option(
        "--samples",
        metavar="COUNT",
        parser=option_parser(positive_count(10**9)),
        help=(
            "Broadcast: messages sent in each step; the confirming step has more.  [default: 100]"
        ),
    ),
]
PaddingOption = Annotated[
    int | None,
    typer.Option(
        "--padding",
        metavar="SIZE",
        parser=option_parser(_padding),
        help=(
            "Broadcast: size of a message's padding, beside its sender and number.  [default: 200]"
        ),
    ),
]
StopOnLossOption = Annotated[
    bool,
    typer.Option("--stop-on-loss", help="Broadcast: stop when a delivery is lost or comes twice."),
]
WsFormatOption = Annotated[
    WsFormat,
    typer.Option(
        "--format",
        help=(
            "Output format of the result; csv and markdown have a row for each trial or"
            " step. Broadcast: shootout prints steps as they were published."
        ),
    ),
]
WsLimitOption = Annotated[
    str | None,
    typer.Option(
        "--limit",
        metavar="CONDITION",
        help=(
            "Limit to keep to, such as 'p95<500ms'. Echo: search for the largest rate that"
            " does, starting at --rate. Broadcast: let clients join until the limit is"
            " crossed; p95 is of deliveries, receipt_p95 of receipts.  [default of a"
            " broadcast: p95<500ms; with --format shootout: receipt_p95<500ms]"
        ),
    ),
]
