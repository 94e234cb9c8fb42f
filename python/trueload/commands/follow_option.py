"""The flag of `trueload http` for redirects.

Must not know: how one is followed.
"""

from __future__ import annotations

from typing import Annotated

import typer

from trueload.commands.options import option_parser
from trueload.protocol.option import positive_count
from trueload.request.follow import FOLLOW_MAX

FollowOption = Annotated[
    int | None,
    typer.Option(
        "--follow",
        metavar="COUNT",
        parser=option_parser(positive_count(FOLLOW_MAX)),
        help=(
            "Follow up to so many redirects of a request, on its server. The final answer is"
            " judged, latency runs to its end, and each redirect is counted and timed."
            "  [default: none is followed]"
        ),
    ),
]
