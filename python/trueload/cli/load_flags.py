"""The flags that say when to send, taken together: rate, stages, connections, duration, warm-up.

How: what excludes each other is refused in one place, with one line and one hint; what is left is
one load, one stop rule and one warm-up. Must not know what is done with them.
"""

from __future__ import annotations

from dataclasses import dataclass

from trueload.cli.options import CONNECTIONS_MAX, RATE_MAX, Arrivals, StagesOf
from trueload.errors import UserError
from trueload.protocol.plan import Closed, Duration, LoadPlan, Open, Requests
from trueload.trial.spec import CLOSED, make_stage, open_load
from trueload.units import NS_PER_S, Ramp, parse_count, parse_rate, parse_stages

CONNECTIONS = 64
DURATION_NS = 10 * NS_PER_S
WARMUP_NS = 1 * NS_PER_S
SEED = 1
STAGES_HINT = "write TIME@VALUE or TIME@FIRST..LAST: '10s@1k,30s@1k..20k,10s@20k'"


@dataclass(frozen=True, kw_only=True)
class LoadFlags:
    """What was given; None for what was not."""

    connections: int | None = None
    duration_ns: int | None = None
    requests: int | None = None
    warmup_ns: int | None = None
    rate_per_s: float | None = None
    arrivals: Arrivals | None = None
    seed: int | None = None
    stages: str | None = None
    stages_of: StagesOf | None = None
    random: bool = False
    """Whether requests have random numbers in them."""

    @property
    def the_seed(self) -> int:
        """The seed that was given, or the one by default."""
        return SEED if self.seed is None else self.seed


@dataclass(frozen=True)
class ChosenLoad:
    """What the flags come to."""

    load: LoadPlan
    stop: Duration | Requests
    warmup: Duration | None
    connections: int


def choose_load(flags: LoadFlags) -> ChosenLoad:
    """The load that the flags ask for. Raises ``UserError`` for flags that contradict."""
    _check(flags)
    if flags.stages is not None:
        return _staged(flags, flags.stages)
    stop = _stop(flags)
    load: LoadPlan = CLOSED
    if flags.rate_per_s is not None:
        load = open_load(flags.rate_per_s, stop, _arrivals(flags).value, flags.the_seed)
    by_default_ns = 0 if isinstance(stop, Requests) else WARMUP_NS
    return ChosenLoad(load, stop, _warmup(flags, by_default_ns), flags.connections or CONNECTIONS)


def _check(flags: LoadFlags) -> None:
    of_connections = flags.stages_of is StagesOf.CONNECTIONS
    pairs = (
        ("--duration", flags.duration_ns, "--requests", flags.requests),
        ("--rate", flags.rate_per_s, "--stages", flags.stages),
        ("--duration", flags.duration_ns, "--stages", flags.stages),
        ("--requests", flags.requests, "--stages", flags.stages),
        (
            "--connections",
            flags.connections,
            "--stages-of connections",
            flags.stages if of_connections else None,
        ),
    )
    for one, is_one, other, is_other in pairs:
        if is_one is not None and is_other is not None:
            raise UserError(f"{one} and {other} exclude each other", "keep one of them")
    if flags.stages_of is not None and flags.stages is None:
        raise UserError("--stages-of is given, but no --stages", STAGES_HINT)
    opened = flags.rate_per_s is not None or (flags.stages is not None and not of_connections)
    if opened:
        return
    if flags.arrivals is not None:
        raise UserError("--arrivals is of an open loop, and no rate is given", "add --rate 1k/s")
    if flags.seed is not None and not flags.random:
        raise UserError(
            "--seed is of an open loop's arrivals or of a {random} in a request, and there is"
            " neither",
            "leave it out: nothing is left to chance; or add --rate 1k/s --arrivals poisson",
        )


def _staged(flags: LoadFlags, text: str) -> ChosenLoad:
    of_connections = flags.stages_of is StagesOf.CONNECTIONS
    ramps = read_stages(text, of_connections=of_connections)
    stop = Duration(ns=sum(ramp.ns for ramp in ramps))
    stages = tuple(make_stage(ramp.ns, ramp.first, ramp.last) for ramp in ramps)
    # A ramp from nothing has nothing to warm up with.
    warmup = _warmup(flags, WARMUP_NS) if ramps[0].first else None
    if of_connections:
        most = round(max(max(ramp.first, ramp.last) for ramp in ramps))
        return ChosenLoad(Closed(active=stages), stop, warmup, most)
    load = Open(stages=stages, arrivals=_arrivals(flags).value, seed=flags.the_seed)
    return ChosenLoad(load, stop, warmup, flags.connections or CONNECTIONS)


def read_stages(text: str, *, of_connections: bool) -> tuple[Ramp, ...]:
    """``--stages``. Raises ``UserError`` that points at the character."""
    try:
        return parse_stages(text, _connections if of_connections else _rate)
    except ValueError as error:
        hint = "write for example '10s@64,30s@64..512'" if of_connections else STAGES_HINT
        raise UserError(f"--stages {error}", hint) from None


def _rate(text: str) -> float:
    rate = parse_rate(text)
    if rate > RATE_MAX:
        raise ValueError(f"'{text}' is more than {RATE_MAX:,}/s")
    return rate


def _connections(text: str) -> float:
    count = parse_count(text)
    if count > CONNECTIONS_MAX:
        raise ValueError(f"'{text}' is more than {CONNECTIONS_MAX:,} connections")
    return float(count)


def _stop(flags: LoadFlags) -> Duration | Requests:
    if flags.requests is not None:
        return Requests(count=flags.requests)
    return Duration(ns=flags.duration_ns or DURATION_NS)


def _warmup(flags: LoadFlags, by_default_ns: int) -> Duration | None:
    ns = by_default_ns if flags.warmup_ns is None else flags.warmup_ns
    return Duration(ns=ns) if ns else None


def _arrivals(flags: LoadFlags) -> Arrivals:
    return flags.arrivals or Arrivals.CONSTANT
