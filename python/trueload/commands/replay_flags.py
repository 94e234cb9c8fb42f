"""The flags of recorded traffic: what is replayed, how fast, and what cannot be beside it.

Must not know: how a recording is read, or how it is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from trueload.commands.job import Asked
from trueload.commands.options import option_parser
from trueload.errors import UserError
from trueload.protocol.load_options import LoadOptions
from trueload.protocol.plan import Open, Requests
from trueload.request.make import make_request
from trueload.request.recording import Beside, parse_speed, read_recording
from trueload.request.replay import Replay
from trueload.request.target import Target
from trueload.trial.spec import Load, make_stage
from trueload.units import format_duration, format_span

RECORDING_HAS = "the recording says what is sent"
"""Why the flags of a single request are refused beside a recording."""
TIMES_HAS = "the recording has its own times: --speed changes them"
NO_URL = "write `trueload http URL --replay FILE`: a recording is never sent to where it comes from"

ReplayOption = Annotated[
    Path | None,
    typer.Option(
        "--replay",
        metavar="FILE",
        help=(
            "Send recorded requests at their recorded times, with no warm-up by default: an access"
            " log, a HAR file, or JSON lines with times; - for stdin (docs/replay.md)."
        ),
    ),
]
SpeedOption = Annotated[
    float | None,
    typer.Option(
        "--speed",
        metavar="SPEED",
        parser=option_parser(parse_speed),
        help="How many times faster than recorded to replay, such as 2x or 0.5x.  [default: 1x]",
    ),
]
ReplayHostOption = Annotated[
    str | None,
    typer.Option(
        "--replay-host",
        metavar="HOST",
        help="Of a recording of several hosts, replay only the requests to this one.",
    ),
]


def replay_of(flags: Mapping[str, Any], base: Target | None) -> Replay | None:
    """Return the recorded traffic that is to be sent to ``base``, if any. Raises ``UserError``."""
    if flags["replay"] is None:
        for name in ("speed", "replay_host"):
            if flags[name] is not None:
                flag = f"--{name.replace('_', '-')}"
                raise UserError(f"{flag} is given, but no --replay", "add --replay FILE")
        return None
    _refuse_beside(flags)
    if base is None:
        raise UserError("--replay needs the URL of the server", NO_URL)
    if base.path != "/":
        raise UserError(
            "--replay and a path in the URL exclude each other",
            "name only the server: the recording has the paths",
        )
    # A request of its own only checks the headers, and makes those of a user.
    lines = tuple(flags["header"] or ())
    made = make_request(base, method=None, headers=lines, user=flags["user"], body=None)
    beside = Beside(
        host=base.authority,
        headers=made.headers,
        chosen=flags["replay_host"],
        speed=flags["speed"] or 1.0,
        own_statuses=bool(flags["expect_status"]),
    )
    return read_recording(flags["replay"], beside)


def _refuse_beside(flags: Mapping[str, Any]) -> None:
    own = ("method", "body", "body_file", "targets", "scenario", "data", "stream")
    for name in (*own, "expect_body", "expect_same"):
        if flags[name] not in (None, False):
            flag = f"--{name.replace('_', '-')}"
            raise UserError(f"--replay and {flag} exclude each other", RECORDING_HAS)
    if flags["connect_open"] is not None:
        raise UserError("--replay and --connect-open exclude each other", TIMES_HAS)
    if flags["follow"] is not None:
        raise UserError(
            "--replay and --follow exclude each other",
            "leave --follow out: what followed a redirect is in the recording",
        )


def replayed_load(load: Load, given: LoadOptions, replay: Replay) -> Load:
    """Return the load that sends recorded traffic. The warm-up, if one was asked for, is its first
    part. Raises ``UserError`` for options that contradict it."""
    for flag, field in (
        ("--duration", "duration_ns"),
        ("--requests", "requests"),
        ("--rate", "rate_per_s"),
        ("--stages", "stages"),
        ("--arrivals", "arrivals"),
        ("--seed", "seed"),
    ):
        if given.gave(field):
            raise UserError(f"--replay and {flag} exclude each other", TIMES_HAS)
    if given.idle is not None:
        raise UserError("--replay and --idle exclude each other", "keep one of them")
    warmup_ns = given.warmup_ns or 0
    if warmup_ns > replay.span_ns:
        raise UserError(
            f"--warmup {format_span(warmup_ns)} leaves nothing to measure",
            f"the recording is sent in {format_duration(replay.span_ns)}: use a shorter warm-up",
        )
    stages = tuple(make_stage(ramp.ns, ramp.first, ramp.last) for ramp in replay.rates(warmup_ns))
    pacing = Open(stages=stages, arrivals="recorded", seed=given.seed, from_ns=warmup_ns)
    stop = Requests(count=replay.count - replay.before(warmup_ns))
    return replace(load, pacing=pacing, stop=stop)


def check_replay(asked: Asked, *, searches: bool) -> None:
    """Refuse a search with recorded traffic. Raises ``UserError``."""
    if asked.replay is not None and searches:
        raise UserError(
            "--replay and --limit exclude each other", "a recording has one load: try --speed 2x"
        )
