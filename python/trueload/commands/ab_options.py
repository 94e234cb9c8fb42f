"""The options of ``trueload compare``, as a job: those of ``http``, and of pairs of trials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from trueload.commands.declarations import reader_of, with_options
from trueload.commands.flags import with_flags_of, with_read
from trueload.commands.job_options import read_job_options
from trueload.commands.measure_options import RatioOptions
from trueload.protocol.load_options import RepeatOptions
from trueload.protocol.request_options import HttpOptions, RequestOptions

if TYPE_CHECKING:
    from trueload.commands.ab import AbJob

SideA = Annotated[
    str,
    typer.Argument(
        metavar="URL_A", help=("Server to compare with, the base: a URL, or the name of a subject.")
    ),
]
SideB = Annotated[
    str, typer.Argument(metavar="URL_B", help=("Server to judge: a URL, or the name of a subject."))
]


class PairOptions(RatioOptions, RepeatOptions):
    """How two servers are compared."""


NOT_FOR_PAIRS = ("limit", "search", "server_pid", "allow_lost")


@with_read(request=reader_of(RequestOptions))
@with_flags_of(read_job_options, without=NOT_FOR_PAIRS)
@with_options(PairOptions)
def read_ab(url_a: SideA, url_b: SideB, given: PairOptions, **flags: Any) -> AbJob:
    """Read the options and check them as a whole; nothing has been sent."""
    from trueload.commands.ab import make_ab_job  # imported late: a help has no job

    request = HttpOptions(**flags.pop("request").given)
    # Here the seed also decides the order of the trials, so it needs no --arrivals.
    seed = flags.pop("seed", None)
    if flags.get("arrivals") is not None:
        flags["seed"] = seed
    options = read_job_options(**flags)
    return make_ab_job((url_a, url_b), request, seed, options, given.repeat, given)
