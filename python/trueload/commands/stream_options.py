"""The flags of `trueload http` for answers that are streams.

Must not know: what a stream is made of.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from trueload.commands.options import option_parser
from trueload.protocol.option import positive_span


class StreamChoice(StrEnum):
    """What a part of a streamed answer is."""

    SSE = "sse"
    CHUNKS = "chunks"
    JSONL = "jsonl"


StreamOption = Annotated[
    StreamChoice | None,
    typer.Option(
        "--stream",
        help=(
            "Answers are streams: time each part. A part is a server-sent event (sse), an"
            " HTTP chunk or DATA frame (chunks), or a line (jsonl). With a language model,"
            " this gives the time to first token and the time between tokens."
        ),
        show_default=False,
    ),
]
StreamEndOption = Annotated[
    str | None,
    typer.Option(
        "--stream-end",
        metavar="END",
        help=(
            "What must come behind the last part: the content of a final part, such as"
            " '[DONE]', an event (event:done), or only the end of the body (body). Without"
            " it an answer is truncated.  [default: body]"
        ),
    ),
]
StallOption = Annotated[
    int | None,
    typer.Option(
        "--stall",
        metavar="TIME",
        parser=option_parser(positive_span),
        help=(
            "A stream without a part for this long, such as 5s, fails as timeout.stall. The"
            " first part only has to come within --timeout."
        ),
    ),
]
