"""The options of ``trueload http``: those of a request and those of when it is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from trueload.commands.declarations import with_options
from trueload.commands.measuring import measuring
from trueload.protocol.request_options import HttpOptions

if TYPE_CHECKING:
    from trueload.commands.job import Workload

UrlArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="URL",
        help=("URL to load: http://HOST[:PORT]/PATH, or the same with https://."),
        show_default=False,
    ),
]


@with_options(HttpOptions)
def read_http(given: HttpOptions, url: UrlArgument = None) -> Workload:
    """Return what is to be sent, and where to. Raises ``UserError``."""
    from trueload.commands.request_flags import read_workload  # imported late, as a job

    return read_workload(url, given)


read_job = measuring(read_http)
