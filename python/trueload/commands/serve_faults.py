"""Flags of ``serve http`` for its record of clients, and for the errors it makes on purpose.

Must not know: how a server is run.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from trueload.commands.options import option_parser
from trueload.commands.serve_http2 import StreamFaults
from trueload.errors import UserError
from trueload.protocol.option import positive_count, positive_span
from trueload.protocol.plan import Faults
from trueload.units import SEED_MAX, parse_share

COUNT_MAX = 2**32 - 1
SLOW_NS = 1_000_000_000
WORK_NS_MAX = 1_000_000_000


def _work(text: str) -> int:
    """The time of ``--work``: while a request is worked on, nothing else is done."""
    work_ns = positive_span(text)
    if work_ns > WORK_NS_MAX:
        raise ValueError(f"{text!r} is more than 1s")
    return work_ns


def _share(flag: str, what: str) -> Any:
    return typer.Option(flag, metavar="SHARE", parser=option_parser(parse_share), help=what)


RecordOption = Annotated[
    bool,
    typer.Option(
        "--record",
        help=(
            "Record what clients do: connections and requests over time, reuse, gaps, and"
            " how late delays were. The record is printed at the end, and in full with"
            " --json."
        ),
    ),
]
ErrorShareOption = Annotated[
    float | None,
    _share("--error-share", "Answer this share of the requests, like 1%, with status 500."),
]
ResetShareOption = Annotated[
    float | None,
    _share(
        "--reset-share",
        (
            "Reset the connection (with HTTP/2, the stream) for this share of the requests,"
            " without an answer."
        ),
    ),
]
StallShareOption = Annotated[
    float | None,
    _share(
        "--stall-share",
        (
            "Answer this share of the requests late, or never (see --stall-for). A stream"
            " stalls half way."
        ),
    ),
]
StallForOption = Annotated[
    int | None,
    typer.Option(
        "--stall-for",
        metavar="TIME",
        parser=option_parser(positive_span),
        help="Delay of a stalled answer.  [default: it never comes]",
    ),
]
SlowShareOption = Annotated[
    float | None,
    _share(
        "--slow-share",
        ("Send the body in pieces, over --slow-for, for this share of the requests."),
    ),
]
SlowForOption = Annotated[
    int | None,
    typer.Option(
        "--slow-for",
        metavar="TIME",
        parser=option_parser(positive_span),
        help="Time from the head of a slow answer to its last byte.  [default: 1s]",
    ),
]
CutShareOption = Annotated[
    float | None,
    _share(
        "--cut-share",
        (
            "End this share of the answers half way, with their connection (with HTTP/2, a"
            " reset of their stream)."
        ),
    ),
]
CloseAfterOption = Annotated[
    int | None,
    typer.Option(
        "--close-after",
        metavar="COUNT",
        parser=option_parser(positive_count(COUNT_MAX)),
        help="Close each connection after this many requests; the last answer announces it.",
    ),
]
CloseSilentlyOption = Annotated[
    bool, typer.Option("--close-silently", help="Do not announce the close (with --close-after).")
]
WorkOption = Annotated[
    int | None,
    typer.Option(
        "--work",
        metavar="TIME",
        parser=option_parser(_work),
        help="CPU time that each request takes beside its answer, for a slower server.",
    ),
]
FaultSeedOption = Annotated[
    int | None,
    typer.Option(
        "--fault-seed",
        metavar="N",
        min=0,
        max=SEED_MAX,
        help="Seed that decides which requests meet a fault.  [default: 0]",
    ),
]


def read_faults(
    error_share: float | None,
    reset_share: float | None,
    stall_share: float | None,
    stall_for: int | None,
    slow_share: float | None,
    slow_for: int | None,
    cut_share: float | None,
    close_after: int | None,
    close_silently: bool,
    work: int | None,
    fault_seed: int | None,
    streams: StreamFaults,
) -> Faults | None:
    """Return the faults that the flags ask for; None without any. Raises ``UserError``."""
    shares = (
        *(error_share, reset_share, stall_share, slow_share, cut_share),
        streams.refuse_share,
    )
    _needs("--stall-for", stall_for is not None, "--stall-share", stall_share is not None)
    _needs("--slow-for", slow_for is not None, "--slow-share", slow_share is not None)
    _needs("--close-silently", close_silently, "--close-after", close_after is not None)
    asked = any(share is not None for share in shares) or close_after is not None
    asked = asked or streams.asked
    _needs("--fault-seed", fault_seed is not None, "--error-share or another fault", asked)
    if sum(share or 0.0 for share in shares) > 1:
        raise UserError(
            "the shares of all faults together exceed 100%",
            "a request meets one fault at most: --error-share, --reset-share, --stall-share,"
            " --slow-share, --cut-share and --refuse-share add up to 100% at most",
        )
    if not (asked or work):
        return None
    return Faults(
        seed=fault_seed or 0,
        error_share=error_share or 0.0,
        reset_share=reset_share or 0.0,
        stall_share=stall_share or 0.0,
        stall_ns=stall_for,
        slow_share=slow_share or 0.0,
        slow_ns=(slow_for or SLOW_NS) if slow_share else 0,
        cut_share=cut_share or 0.0,
        close_after=close_after,
        close_silently=close_silently,
        work_ns=work or 0,
        refuse_share=streams.refuse_share or 0.0,
        goaway_after=streams.goaway_after,
        stall_window=streams.stall_window,
        settings_delay_ns=streams.settings_delay or 0,
    )


def _needs(flag: str, given: bool, other: str, there: bool) -> None:
    if given and not there:
        raise UserError(f"{flag} is of no use without {other}", f"add {other}, or leave {flag} out")
