"""The combined flags of when to send: rate, stages, connections, duration, warm-up.

How: combinations that cannot be used together are refused in one place, with one line and one
hint. The rest is one load, one stop rule and one warm-up.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trueload.commands.replay_flags import replayed_load
from trueload.errors import UserError
from trueload.protocol.load_options import LoadOptions, StagesOf, staged
from trueload.protocol.option import flag_of, refuse_beside
from trueload.protocol.plan import Duration, LoadPlan, Requests
from trueload.trial.spec import CLOSED, Load, open_load, staged_load, stop_of
from trueload.units import NS_PER_S, Ramp

if TYPE_CHECKING:
    from trueload.request.replay import Replay

WARMUP_NS = 1 * NS_PER_S
STAGES_HINT = "write TIME@VALUE or TIME@FIRST..LAST: '10s@1k,30s@1k..20k,10s@20k'"


def choose_load(
    given: LoadOptions,
    *,
    random: bool = False,
    close: bool = False,
    once: bool = False,
    replay: Replay | None = None,
) -> Load:
    """Return the load that was asked for.

    ``random``: requests have random numbers in them. ``close``: each has a connection of its own.
    ``once``: each row of data is sent once, so that none is left for a warm-up. ``replay``: its
    requests are sent at their recorded times. Raises ``UserError`` for options that contradict each
    other.
    """
    if replay is None:
        _check(given, random=random)
    if once:
        hint = "a warm-up would use up rows: leave it out"
        refuse_beside("--warmup", {"--data-order unique": given.warmup_ns}, hint)
        given = LoadOptions(warmup_ns=0).over(given)
    refuse_beside("--close", {"--pipeline": close and given.pipeline > 1})
    load = Load(
        connections=given.connections,
        idle=() if given.idle is None else (0, given.idle),
        pipeline=given.pipeline,
        close=close,
    )
    if replay is not None:
        return replace(replayed_load(load, given, replay), warmup=_warmup(given, 0))
    if given.stages is not None:
        return _staged(load, given, given.stages)
    stop = stop_of(given)
    pacing: LoadPlan = CLOSED
    if given.rate_per_s is not None:
        pacing = open_load(given.rate_per_s, stop, given.arrivals, given.seed)
    by_default_ns = 0 if isinstance(stop, Requests) else WARMUP_NS
    return replace(load, pacing=pacing, stop=stop, warmup=_warmup(given, by_default_ns))


def _check(given: LoadOptions, *, random: bool) -> None:
    staged = given.gave("stages")
    of_connections = given.stages_of == "connections"
    for field in filter(given.gave, ("duration_ns", "rate_per_s", "requests")):
        others = ("requests", "stages") if field == "duration_ns" else ("stages",)
        given.refuse_beside(flag_of(field), *others)
    if given.gave("connections") and staged:
        refuse_beside("--connections", {"--stages-of connections": of_connections})
    if given.gave("stages_of") and not staged:
        raise UserError("--stages-of is given, but no --stages", STAGES_HINT)
    if given.gave("rate_per_s") or (staged and not of_connections):
        return
    if given.gave("arrivals"):
        raise UserError("--arrivals needs an open loop, and no rate is given", "add --rate 1k/s")
    if given.gave("seed") and not random:
        raise UserError(
            (
                "--seed is for the arrivals of an open loop, for {random} in a request and for"
                " --data-order shuffled,"
                " and this command has none of them"
            ),
            "leave it out, as nothing here is random; or add --rate 1k/s --arrivals poisson",
        )


def _staged(load: Load, given: LoadOptions, text: str) -> Load:
    ramps = read_stages(text, given.stages_of)
    # A ramp that begins at 0 has nothing to warm up with.
    warmup = _warmup(given, WARMUP_NS) if ramps[0].first else None
    load = staged_load(load, ramps, given.stages_of, given.arrivals, given.seed)
    return replace(load, warmup=warmup)


def read_stages(text: str, of: StagesOf) -> tuple[Ramp, ...]:
    """Parse ``--stages``. Raises ``UserError`` that points at the wrong character."""
    try:
        return staged(text, of)
    except ValueError as error:
        hint = "write for example '10s@64,30s@64..512'" if of == "connections" else STAGES_HINT
        raise UserError(f"--stages {error}", hint) from None


def _warmup(given: LoadOptions, by_default_ns: int) -> Duration | None:
    ns = by_default_ns if given.warmup_ns is None else given.warmup_ns
    return Duration(ns=ns) if ns else None
