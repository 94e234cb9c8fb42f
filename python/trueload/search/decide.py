"""The load to try next: a pure function of what has been tried.

Strategy: from a sensible start the load is doubled, or grows by a step, while it keeps to the
limit, and is divided while it does not. This gives a bracket, which is halved at its geometric mean
until it is narrow enough. Then its lower end is measured again in a run of its own, because the
largest of several noisy tries owes something to luck. If that run fails, the load steps down and is
confirmed again, a bounded number of times.

A step that our own side spoiled says nothing about the server. It is tried once more, and then
bounds the search from above as the generator's limit. A step that lacked open files, local ports or
memory does so at once, as another try would lack them, too. A server that no longer answers anybody
ends the search: there is no load left that it could carry.

A step without one good answer may mean a load that is far too large, or a server that answers no
load at all. So the least demanding load follows: the largest that has kept to the limit or, if none
has, the lowest of all. If that has no good answer either, the server is the cause.

A server that was overloaded may be slow for a while, and the next step would be judged by that. So
the lowest load that was kept is probed until it is served as before, and the search goes on. If it
is not within a bounded number of probes, that is the result.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

GROWTH = 2.0
# The factor down from a start that is too high. A factor of 8 costs at most three halvings more,
# and goes from 1,000 requests/s to 1 in four steps.
DESCENT = 8.0
PRECISION = 0.03  # bracket width: within the spread of two equal runs there is nothing to find
# The shares of the found load that are confirmed in turn if it does not hold. The first steps are
# small because the found load is usually right, the last ones large because something has changed.
STEPS_DOWN = (1.0, 0.95, 0.85, 0.7, 0.5)
# Probes of a server that was overloaded: 10 s with the two seconds and the warm-up of each.
PROBES_MOST = 3

Outcome = Literal["kept", "exceeded", "limited", "short", "gone"]
"""The outcome of a step.

kept: within the limit. exceeded: the server did not keep to it. limited: our side spoiled the step.
short: open files, local ports or memory did not suffice for the load. gone: nobody answered.
"""
Purpose = Literal["bracket", "bisect", "confirm", "recover"]
LimitedBy = Literal["server", "generator", "ceiling", "shortage"]


@dataclass(frozen=True)
class Bounds:
    """The range of a search.

    ``whole``: loads are whole numbers (connections). ``step`` is what a load grows by until one
    does not keep to the limit; None doubles it.
    """

    start: float
    floor: float
    ceiling: float
    whole: bool = False
    precision: float = PRECISION
    step: float | None = None


@dataclass(frozen=True)
class Step:
    """One load that was tried, and its outcome.

    ``answered``: there was a good answer. ``away``: the server refused connections that it had
    served before, as one that restarts does.
    """

    load: float
    outcome: Outcome
    purpose: Purpose
    answered: bool = True
    away: bool = False


@dataclass(frozen=True)
class Try:
    """The step to measure next.

    ``largest``: the result would be claimed as the largest load that the server carries. That is
    impossible if our side, or a shortage, bounds it from above.
    """

    load: float
    purpose: Purpose
    largest: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class SafeLoad:
    """A confirmed load; the true one is below ``above`` (None if nothing larger failed).

    ``limited_by`` says what failed at ``above``: unless it is the server, ``load`` is a lower
    bound.
    """

    load: float
    above: float | None
    limited_by: LimitedBy


@dataclass(frozen=True)
class NoSafeLoad:
    """The reason why there is no such load.

    ``none``: not even ``lowest`` keeps to the limit. ``unconfirmed``: no confirming run did.
    ``generator``: our side was the limit at each load, or in each confirming run. ``lost``:
    deliveries were lost at ``lowest``. ``gone``: the server no longer answered, or gave no good
    answer. ``unrecovered``: after the overload at ``lowest`` it stayed slow at less.
    """

    why: Literal["none", "unconfirmed", "generator", "lost", "gone", "unrecovered"]
    lowest: float


Done = SafeLoad | NoSafeLoad


def decide(bounds: Bounds, steps: Sequence[Step]) -> Try | Done:
    """Return the next load, or the end. ``steps`` are in the order of measuring."""
    tried = [step for step in steps if step.purpose != "recover"]
    following = _following(bounds, tried)
    if bounds.step is not None or not tried or not isinstance(following, Try):
        # The clients of a broadcast stay from step to step: there can be no fewer for a while.
        return following
    probes = list(itertools.takewhile(lambda step: step.purpose == "recover", reversed(steps)))
    return _recovery(tried, probes) or following


def _recovery(tried: Sequence[Step], probes: Sequence[Step]) -> Try | NoSafeLoad | None:
    """Return the next probe of an overloaded server; None to go on with the search.

    ``probes`` are those since the last load that was tried, the latest first.
    """
    last = tried[-1]
    lowest = min((load for load in _kept(tried) if load < last.load), default=None)
    if lowest is None or last.outcome != "exceeded" or last.away or not last.answered:
        return None
    if probes and (probes[0].outcome == "gone" or _is_silent(probes[0])):
        return NoSafeLoad("gone", lowest)
    if probes and probes[0].outcome != "exceeded":
        return None
    if len(probes) == PROBES_MOST:
        return NoSafeLoad("unrecovered", last.load)
    return Try(lowest, "recover")


def _following(bounds: Bounds, steps: Sequence[Step]) -> Try | Done:
    """Return what follows the steps, but for the recovery of the server."""
    if not steps:
        return Try(_rounded(bounds, bounds.start), "bracket")
    if len(steps) > 1 and steps[-1].outcome == "gone":
        return NoSafeLoad("gone", steps[-1].load)
    searching = [step for step in steps if step.purpose != "confirm"]
    kept = max((step.load for step in searching if step.outcome == "kept"), default=None)
    failed = min(
        (step.load for step in _sound(searching) if step.load not in _kept(searching)), default=None
    )
    if _fell_silent(steps):
        return NoSafeLoad("gone", steps[-1].load)
    if _is_worth_another_try(steps):
        last = steps[-1]
        again = last.purpose == "confirm"
        return _confirm(steps, last.load) if again else Try(last.load, last.purpose)
    if len(searching) < len(steps):
        return _after_confirming(bounds, searching, steps[len(searching) :])
    if kept is None:
        assert failed is not None, "a step has an outcome"
        return _descend(bounds, searching, failed)
    if failed is None:
        if kept >= bounds.ceiling:
            return _confirm(steps, kept)
        grown = kept * GROWTH if bounds.step is None else kept + bounds.step
        return Try(_rounded(bounds, grown), "bracket")
    if _is_silent(steps[-1]):
        return Try(kept, "bisect")
    middle = _between(bounds, kept, failed)
    return _confirm(steps, kept) if middle is None else Try(middle, "bisect")


def _sound(steps: Sequence[Step]) -> list[Step]:
    """Return the steps without those that the overload of an earlier one may have spoiled.

    On the way down from a start that is too high, no load is known by which to tell that the server
    has recovered. Once one has kept to the limit, the loads above it are tried again.
    """
    first = next((at for at, step in enumerate(steps) if step.outcome == "kept"), 0)
    return [*(step for step in steps[:first] if step.load == steps[0].load), *steps[first:]]


def _confirm(steps: Sequence[Step], load: float) -> Try:
    above = _above(steps, load)
    return Try(load, "confirm", largest=_limited_by(steps, above) == "server")


def _above(steps: Sequence[Step], load: float) -> float | None:
    """Return the smallest larger load that was not kept.

    Confirming runs count first, and steps of the search only if no confirming run failed there.
    """
    beyond = [step for step in steps if step.load > load and step.outcome != "kept"]
    confirming = (step.load for step in beyond if step.purpose == "confirm")
    kept = _kept(steps)
    return min(
        confirming, default=min((s.load for s in beyond if s.load not in kept), default=None)
    )


def _kept(steps: Sequence[Step]) -> set[float]:
    return {step.load for step in steps if step.outcome == "kept"}


def _is_silent(step: Step) -> bool:
    return step.outcome == "exceeded" and not step.answered


def _fell_silent(steps: Sequence[Step]) -> bool:
    """Whether the last step had no good answer at a load that the server had carried before."""
    last = steps[-1]
    return _is_silent(last) and any(load >= last.load for load in _kept(steps))


def _is_worth_another_try(steps: Sequence[Step]) -> bool:
    """Whether to repeat the last step, which happens once.

    A step that our side spoiled may have met a momentary disturbance. If the server went away, the
    repetition shows whether this load brings it down again.
    """
    last = steps[-1]
    before = steps[-2] if len(steps) > 1 else None
    again = before is not None and (before.load, before.purpose) == (last.load, last.purpose)
    spoiled = last.outcome == "limited" or (last.outcome == "exceeded" and last.away)
    return spoiled and not again


def _descend(bounds: Bounds, steps: Sequence[Step], failed: float) -> Try | Done:
    if failed > bounds.floor:
        lower = failed / DESCENT if steps[-1].answered else bounds.floor
        return Try(_rounded(bounds, lower), "bracket")
    exceeded = any(step.outcome == "exceeded" for step in steps)
    return NoSafeLoad("none" if exceeded else "generator", failed)


def _between(bounds: Bounds, low: float, high: float) -> float | None:
    """Return a load between the two, or None if they are close enough."""
    if high <= low * (1 + bounds.precision):
        return None
    middle = _rounded(bounds, math.sqrt(low * high))
    return middle if low < middle < high else None


def _after_confirming(
    bounds: Bounds, searching: Sequence[Step], confirming: Sequence[Step]
) -> Try | Done:
    """Return what follows the last confirming run.

    The load of the first confirming run had been kept. In a stored search that is judged by a later
    version's rules, it may not be any more.
    """
    steps, first, last = (*searching, *confirming), confirming[0], confirming[-1]
    if last.outcome == "kept":
        above = _above(steps, last.load)
        return SafeLoad(last.load, above, _limited_by(steps, above))
    for share in STEPS_DOWN:
        load = max(_rounded(bounds, first.load * share), bounds.floor)
        if load < last.load:
            return _confirm(steps, load)
    exceeded = any(step.outcome == "exceeded" for step in confirming)
    return NoSafeLoad("unconfirmed" if exceeded else "generator", last.load)


def _limited_by(steps: Sequence[Step], above: float | None) -> LimitedBy:
    if above is None:
        return "ceiling"
    last = [step.outcome for step in steps if step.load == above][-1]
    if last == "short":
        return "shortage"
    return "generator" if last == "limited" else "server"


def _rounded(bounds: Bounds, load: float) -> float:
    """Return the load within the bounds, as a whole number or with three digits.

    Three digits are finer than the bracket.
    """
    if bounds.whole:
        rounded = float(round(load))
    else:
        digits = 2 - math.floor(math.log10(load))
        rounded = round(load, digits)
    return min(max(rounded, bounds.floor), bounds.ceiling)
