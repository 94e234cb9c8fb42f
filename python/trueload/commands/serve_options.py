"""The options of reference servers, each declared once, and what those of HTTP mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from trueload.commands.measure_options import JsonOptions
from trueload.commands.place_options import ServerPlaceOptions
from trueload.errors import UserError
from trueload.protocol.engine_options import ThreadOptions
from trueload.protocol.load_options import parse_seed
from trueload.protocol.option import (
    FLAG,
    SPAN,
    Unit,
    counts_to,
    flag_of,
    one_of,
    option,
    positive_span,
    within,
)
from trueload.protocol.request_options import DialectOptions, IdentityOptions
from trueload.units import parse_count, parse_share

if TYPE_CHECKING:
    from trueload.protocol.exchange import ServeHttp2
    from trueload.protocol.faults import Faults

COUNT_MAX = 2**32 - 1
SLOW_NS = 1_000_000_000
WORK_NS_MAX = 1_000_000_000
STREAMS = 1000
"""The streams permitted at once on each connection, unless --max-streams is given."""
ServerVersion = Literal["1.1", "2"]


# While a request is worked on, nothing else is done.
_work = within(positive_span, 0, WORK_NS_MAX, "more than 1s")
_streams = within(parse_count, 0, COUNT_MAX, f"more than {COUNT_MAX:,}")
_SHARE = Unit("SHARE", parse_share, keyword="ShareOf")


class ServeOptions(ServerPlaceOptions, ThreadOptions, JsonOptions, group="Where it listens"):
    """What every reference server has."""

    listen: str = option(
        Unit("IP:PORT"),
        "Address to listen on; port 0 picks a free one, and unix:PATH is a socket file. Other"
        " machines need an address that they reach.",
        "Address; port 0 is a free one",
        default="127.0.0.1:8080",
    )


class ServeStreamOptions(ServeOptions, group="Connections"):
    """A server that has connections."""

    idle_timeout_ns: int | None = option(
        SPAN,
        "Close a connection on which nothing has come or gone for this long, unless an answer waits"
        " for its time.",
        unset="none",
    )
    max_connections: int | None = option(
        counts_to(COUNT_MAX),
        "Most connections that may be open at once; further ones are closed at once.",
        unset="any number",
    )


class ServeTlsOptions(ServeStreamOptions, IdentityOptions, group="TLS"):
    """A server that may speak TLS."""

    tls: bool = option(
        FLAG,
        "Speak TLS, with the certificate of --cert, or one made at the start (its path is"
        " printed).",
        "Speak TLS",
    )


class ServeWsOptions(ServeTlsOptions, DialectOptions):
    """All of `serve ws`."""


class ServeHttpOptions(ServeTlsOptions, group="Faults on purpose"):
    """All of `serve http`: its record of clients, and the errors it makes on purpose."""

    record: bool = option(
        FLAG,
        "Record what clients do: connections and requests over time, reuse, gaps, and how late"
        " delays were. The record is printed at the end, and in full with --json.",
        "Record what clients do",
        group="Output",
    )
    http: ServerVersion | None = option(
        one_of(*get_args(ServerVersion)),
        "Newest HTTP version to speak. With 2, the same port also speaks HTTP/1.1: over TLS, ALPN"
        " chooses; in plain text, the first bytes do.",
        "Newest HTTP version: 1.1 or 2",
        unset="1.1",
        group="HTTP/2",
    )
    max_streams: int | None = option(
        Unit("COUNT", _streams, keyword="Number"),
        "HTTP/2: most streams that a connection may have open at once; further ones are refused.",
        unset=f"{STREAMS:,}",
        group="HTTP/2",
    )
    error_share: float | None = option(
        _SHARE, "Answer this share of the requests, like 1%, with status 500."
    )
    reset_share: float | None = option(
        _SHARE,
        "Reset the connection (with HTTP/2, the stream) for this share of the requests, without an"
        " answer.",
    )
    stall_share: float | None = option(
        _SHARE,
        "Answer this share of the requests late, or never (see --stall-for). A stream stalls half"
        " way.",
    )
    stall_for_ns: int | None = option(SPAN, "Delay of a stalled answer.", unset="it never comes")
    slow_share: float | None = option(
        _SHARE, "Send the body in pieces, over --slow-for, for this share of the requests."
    )
    slow_for_ns: int | None = option(
        SPAN, "Time from the head of a slow answer to its last byte.", unset="1s"
    )
    cut_share: float | None = option(
        _SHARE,
        "End this share of the answers half way, with their connection (with HTTP/2, a reset of"
        " their stream).",
    )
    close_after: int | None = option(
        counts_to(COUNT_MAX),
        "Close each connection after this many requests; the last answer announces it.",
    )
    close_silently: bool = option(FLAG, "Do not announce the close (with --close-after).")
    refuse_share: float | None = option(
        _SHARE, "HTTP/2: refuse the stream for this share of the requests (REFUSED_STREAM)."
    )
    goaway_after: int | None = option(
        counts_to(COUNT_MAX),
        "HTTP/2: send GOAWAY after this many requests of a connection, answer these, and close.",
    )
    stall_window: bool = option(
        FLAG,
        "HTTP/2: never enlarge the window of a stream, so that a request body stops after 65,535"
        " bytes.",
    )
    settings_delay_ns: int | None = option(
        SPAN, "HTTP/2: wait this long before sending SETTINGS and everything that follows."
    )
    work_ns: int | None = option(
        Unit("TIME", _work, keyword="Duration"),
        "CPU time that each request takes beside its answer, for a slower server.",
    )
    fault_seed: int | None = option(
        Unit("N", parse_seed, keyword="Number"),
        "Seed that decides which requests meet a fault.",
        unset="0",
    )


_SHARES = ("error_share", "reset_share", "stall_share", "slow_share", "cut_share", "refuse_share")
_OF_HTTP2 = ("max_streams", "refuse_share", "goaway_after", "stall_window", "settings_delay_ns")
_OTHERS = ("close_after", "goaway_after", "stall_window", "settings_delay_ns")


def make_faults(given: ServeHttpOptions) -> Faults | None:
    """Return the faults that were asked for; None without any. Raises ``UserError``."""
    asked = any(given.gave(field) for field in (*_SHARES, *_OTHERS))
    _needs(given, "stall_for_ns", "--stall-share", there=given.gave("stall_share"))
    _needs(given, "slow_for_ns", "--slow-share", there=given.gave("slow_share"))
    _needs(given, "close_silently", "--close-after", there=given.gave("close_after"))
    _needs(given, "fault_seed", "--error-share or another fault", there=asked)
    if sum(given.given.get(field, 0.0) for field in _SHARES) > 1:
        raise UserError(
            "the shares of all faults together exceed 100%",
            "a request meets one fault at most: --error-share, --reset-share, --stall-share,"
            " --slow-share, --cut-share and --refuse-share add up to 100% at most",
        )
    if not (asked or given.work_ns):
        return None
    from trueload.protocol.faults import Faults  # imported late: a help has no model

    same = {name: value for name, value in given.given.items() if name in Faults.model_fields}
    return Faults(
        **same,
        seed=given.fault_seed or 0,
        stall_ns=given.stall_for_ns,
        slow_ns=(given.slow_for_ns or SLOW_NS) if given.slow_share else 0,
    )


def _needs(given: ServeHttpOptions, field: str, other: str, *, there: bool) -> None:
    if given.gave(field) and not there:
        flag = flag_of(field)
        raise UserError(f"{flag} does nothing without {other}", f"add {other}, or leave {flag} out")


def make_http2_server(given: ServeHttpOptions) -> ServeHttp2 | None:
    """Return the server's HTTP/2 settings; None if it is not spoken. Raises ``UserError``."""
    if given.http == "2":
        from trueload.protocol.exchange import ServeHttp2

        return ServeHttp2(max_streams=STREAMS if given.max_streams is None else given.max_streams)
    for flag in (flag_of(field) for field in _OF_HTTP2 if given.gave(field)):
        raise UserError(f"{flag} needs HTTP/2, which this server does not speak", "add --http 2")
    return None
