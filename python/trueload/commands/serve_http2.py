"""Flags of ``serve http`` about HTTP/2: the protocol, its stream limit, and its own faults.

Must not know: how a server is run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from trueload.commands.options import HttpVersion, option_parser
from trueload.errors import UserError
from trueload.protocol.exchange import ServeHttp2
from trueload.protocol.option import positive_count, positive_span
from trueload.units import parse_share

COUNT_MAX = 2**32 - 1
STREAMS = 1000
"""The streams permitted at once on each connection, unless --max-streams is given."""


HttpOption = Annotated[
    HttpVersion | None,
    typer.Option(
        "--http",
        help=(
            "Newest HTTP version to speak. With 2, the same port also speaks HTTP/1.1: over"
            " TLS, ALPN chooses; in plain text, the first bytes do.  [default: 1.1]"
        ),
    ),
]
MaxStreamsOption = Annotated[
    int | None,
    typer.Option(
        "--max-streams",
        metavar="COUNT",
        min=0,
        max=COUNT_MAX,
        help=(
            "HTTP/2: most streams that a connection may have open at once; further ones are"
            f" refused.  [default: {STREAMS:,}]"
        ),
    ),
]
RefuseShareOption = Annotated[
    float | None,
    typer.Option(
        "--refuse-share",
        metavar="SHARE",
        parser=option_parser(parse_share),
        help="HTTP/2: refuse the stream for this share of the requests (REFUSED_STREAM).",
    ),
]
GoawayAfterOption = Annotated[
    int | None,
    typer.Option(
        "--goaway-after",
        metavar="COUNT",
        parser=option_parser(positive_count(COUNT_MAX)),
        help=(
            "HTTP/2: send GOAWAY after this many requests of a connection, answer these, and close."
        ),
    ),
]
StallWindowOption = Annotated[
    bool,
    typer.Option(
        "--stall-window",
        help=(
            "HTTP/2: never enlarge the window of a stream, so that a request body stops"
            " after 65,535 bytes."
        ),
    ),
]
SettingsDelayOption = Annotated[
    int | None,
    typer.Option(
        "--settings-delay",
        metavar="TIME",
        parser=option_parser(positive_span),
        help="HTTP/2: wait this long before sending SETTINGS and everything that follows.",
    ),
]


@dataclass(frozen=True)
class StreamFaults:
    """The faults that only HTTP/2 has, by their flags; None or False if not given."""

    refuse_share: float | None = None
    goaway_after: int | None = None
    stall_window: bool = False
    settings_delay: int | None = None

    @property
    def asked(self) -> bool:
        """Whether any fault was asked for."""
        return self != StreamFaults()


def read_http2(
    http: HttpVersion | None, max_streams: int | None, faults: StreamFaults
) -> ServeHttp2 | None:
    """Return the server's HTTP/2 settings; None if it is not spoken. Raises ``UserError``."""
    if http is HttpVersion.TWO:
        return ServeHttp2(max_streams=STREAMS if max_streams is None else max_streams)
    given = {
        "--max-streams": max_streams is not None,
        "--refuse-share": faults.refuse_share is not None,
        "--goaway-after": faults.goaway_after is not None,
        "--stall-window": faults.stall_window,
        "--settings-delay": faults.settings_delay is not None,
    }
    for flag in (flag for flag, is_given in given.items() if is_given):
        raise UserError(f"{flag} needs HTTP/2, which this server does not speak", "add --http 2")
    return None
