"""Options of ``trueload ws``, each defined once: name, meaning, unit, parser.

Must not know what the command does with them.
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
    """What is measured of a WebSocket server."""

    ECHO = "echo"
    BROADCAST = "broadcast"


class WsFormat(StrEnum):
    """How a result is printed; the last one is for the steps of a broadcast."""

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
    typer.Argument(metavar="URL", help="ws://HOST[:PORT]/PATH, or wss://", show_default=False),
]
ModeOption = Annotated[
    WsMode,
    typer.Option("--mode", help="Echo: messages come back. Broadcast: each goes to all clients."),
]
TextOption = Annotated[
    bool | None,
    typer.Option("--text/--binary", help="The kind of an echo's messages.  [default: text]"),
]
OriginOption = Annotated[
    str | None, typer.Option("--origin", metavar="ORIGIN", help="The header Origin.")
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
        help="Broadcast: end after so many steps, even if the limit is not crossed.",
    ),
]
ConcurrentOption = Annotated[
    int | None,
    typer.Option(
        "--concurrent",
        metavar="COUNT",
        parser=option_parser(positive_count(PIPELINE_MAX)),
        help="Broadcast: messages in flight over all clients.  [default: 4]",
    ),
]
SamplesOption = Annotated[
    int | None,
    typer.Option(
        "--samples",
        metavar="COUNT",
        parser=option_parser(positive_count(10**9)),
        help="Broadcast: messages of each step.  [default: 100]",
    ),
]
PaddingOption = Annotated[
    int | None,
    typer.Option(
        "--padding",
        metavar="SIZE",
        parser=option_parser(_padding),
        help="Broadcast: bytes of a message beside its sender and number.  [default: 200]",
    ),
]
StopOnLossOption = Annotated[
    bool,
    typer.Option("--stop-on-loss", help="Broadcast: end when a delivery is lost or doubled."),
]
WsFormatOption = Annotated[
    WsFormat,
    typer.Option(
        "--format",
        help="How the result is printed; csv and markdown have a row for each trial, or step."
        " Broadcast: shootout is as published.",
    ),
]
WsLimitOption = Annotated[
    str | None,
    typer.Option(
        "--limit",
        metavar="CONDITION",
        help="What to keep to, like 'p95<500ms'. Echo: search the largest rate that does, from"
        " --rate on. Broadcast: let clients join until it is crossed; p95 is of deliveries,"
        " receipt_p95 of receipts.  [default of a broadcast: p95<500ms]",
    ),
]
