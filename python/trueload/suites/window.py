"""How long the trials of a suite take, and the stages that each goes through. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trueload.errors import UserError
from trueload.protocol.load_options import Arrivals, LoadOptions, StagesOf, staged
from trueload.protocol.model import Model
from trueload.protocol.option import flag_of, refuse_beside
from trueload.protocol.plan import Duration, Requests
from trueload.suites.definition import Suite
from trueload.trial.spec import Load, most_connections, staged_load, stop_of
from trueload.units import NS_PER_S, Ramp, format_stages

# Each says when a trial ends, so that only one is given.
STOPS = ("duration_ns", "requests", "stages")


class PlannedStages(Model):
    """The stages of a load, as the option is written, and what their values are."""

    text: str
    of: StagesOf

    @property
    def ramps(self) -> tuple[Ramp, ...]:
        """The stages as values."""
        return staged(self.text, self.of)

    @property
    def title(self) -> str:
        """A text to show: ``stages 10s@8..64 of connections``."""
        return f"stages {self.text}{' of connections' if self.of == 'connections' else ''}"

    @property
    def connections(self) -> int | None:
        """How many connections they need; None if the load has its own number."""
        return most_connections(self.ramps) if self.of == "connections" else None

    def over(self, load: Load, arrivals: Arrivals, seed: int) -> Load:
        """Return a load that goes through these stages."""
        return staged_load(load, self.ramps, self.of, arrivals, seed)


@dataclass(frozen=True)
class Window:
    """When each trial of a suite ends, what comes before, and its stages, if it has any."""

    stop: Duration | Requests
    warmup: Duration | Requests | None
    stages: PlannedStages | None


def plan_window(suite: Suite, given: LoadOptions, axes: Mapping[str, object]) -> Window:
    """Return the window of each trial.

    ``given`` and ``axes`` are what the command line says instead of the suite; ``axes`` are its
    lists of values, by their flags. Raises ``UserError`` for options that cannot be used together.
    """
    stops = [flag_of(field) for field in STOPS if given.gave(field)]
    if len(stops) > 1:
        raise UserError(f"{stops[0]} and {stops[1]} cannot be used together", "give one of them")
    if given.gave("stages_of") and not given.gave("stages"):
        raise UserError("--stages-of is given, but no --stages", "add --stages, or leave it out")
    window = given if stops else suite.window
    if suite.broadcast is not None and window.requests is None:
        raise UserError(f"{stops[0]} is not for a suite of broadcasts", "use --requests")
    if window.stages is not None:
        return _staged(suite, given, window.stages, window.stages_of, axes)
    stop = stop_of(window)
    return Window(stop, _warmup(suite, given, stop), None)


def _staged(
    suite: Suite, given: LoadOptions, text: str, of: StagesOf, axes: Mapping[str, object]
) -> Window:
    try:
        ramps = staged(text, of)
    except ValueError as error:
        raise UserError(f"--stages {error}", "write for example '10s@1k,30s@1k..20k'") from None
    excluded = "--connections" if of == "connections" else "--rate"
    hint = "give one of them; --duration replaces the stages of a suite"
    refuse_beside(excluded, {"stages of it": axes[excluded] is not None}, hint)
    stop = Duration(ns=sum(ramp.ns for ramp in ramps))
    # A ramp that begins at 0 has nothing to warm up with.
    warmup = _warmup(suite, given, stop, prime=False) if ramps[0].first else None
    return Window(stop, warmup, PlannedStages(text=format_stages(ramps), of=of))


def _warmup(
    suite: Suite, given: LoadOptions, stop: Duration | Requests, *, prime: bool = True
) -> Duration | Requests | None:
    """By default 1 s for runs by duration, none for runs by count (design §4)."""
    ns = given.warmup_ns
    if ns is None and suite.prime and prime:
        return stop
    if ns is None and (isinstance(stop, Duration) or suite.window.requests is not None):
        ns = suite.window.warmup_ns
        if ns is None and isinstance(stop, Duration):
            ns = NS_PER_S
    return Duration(ns=ns) if ns else None
