"""What the options of recorded traffic mean, and what cannot be beside them."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from trueload.commands.job import Workload
from trueload.errors import UserError
from trueload.protocol.load_options import LoadOptions
from trueload.protocol.option import flag_of, refuse_beside
from trueload.protocol.plan import Open, Requests
from trueload.protocol.request_options import OF_ONE_REQUEST, HttpOptions
from trueload.request.environment import fill_header
from trueload.request.make import make_request
from trueload.request.url import Url
from trueload.trial.spec import Load, make_stage
from trueload.units import format_duration, format_span

if TYPE_CHECKING:
    from trueload.request.replay import Replay

RECORDING_HAS = "the recording says what is sent"
"""Why the flags of a single request are refused beside a recording."""
TIMES_HAS = "the recording has its own times: --speed changes them"
FOLLOWED = "leave --follow out: what followed a redirect is in the recording"
NO_URL = "write `trueload http URL --replay FILE`: a recording is never sent to where it comes from"

_OWN = (
    *(*OF_ONE_REQUEST, "targets", "scenario", "data", "stream"),
    *("expect_body", "expect_same"),
)


def replay_of(given: HttpOptions, base: Url | None) -> Replay | None:
    """Return the recorded traffic that is to be sent to ``base``, if any. Raises ``UserError``."""
    if not given.replay:
        for name in ("speed", "replay_host", "log_format"):
            if given.gave(name):
                raise UserError(f"{flag_of(name)} is given, but no --replay", "add --replay FILE")
        return None
    given.refuse_beside("--replay", *_OWN, hint=RECORDING_HAS)
    given.refuse_beside("--replay", "connect_open_per_s", hint=TIMES_HAS)
    given.refuse_beside("--replay", "follow", hint=FOLLOWED)
    if base is None:
        raise UserError("--replay needs the URL of the server", NO_URL)
    has_paths = "name only the server: the recording has the paths"
    refuse_beside("--replay", {"a path in the URL": base.path != "/"}, has_paths)
    from trueload.request.gather import RecordingFlags  # imported late: few runs are replays
    from trueload.request.recording import read_recording

    # A request of its own only checks the headers, and makes those of a user.
    headers = [fill_header(line, os.environ) for line in given.header]
    made = make_request(base, method=None, headers=headers, user=given.user, body=None)
    beside = RecordingFlags(
        host=base.authority,
        headers=made.headers,
        chosen=given.replay_host,
        speed=given.speed or 1.0,
        own_statuses=bool(given.expect_status),
        pattern=given.log_format,
    )
    return read_recording(given.replay, beside)


def replayed_load(load: Load, given: LoadOptions, replay: Replay) -> Load:
    """Return the load that sends recorded traffic. The warm-up, if one was asked for, is its first
    part. Raises ``UserError`` for options that contradict it."""
    timed = ("duration_ns", "requests", "rate_per_s", "stages", "arrivals", "seed")
    given.refuse_beside("--replay", *timed, hint=TIMES_HAS)
    given.refuse_beside("--replay", "idle")

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


def check_replay(workload: Workload, *, searches: bool) -> None:
    """Refuse a search with recorded traffic. Raises ``UserError``."""
    if workload.traffic.replay is not None:
        refuse_beside("--replay", {"--limit": searches}, "a recording has one load: try --speed 2x")
