"""One engine of several that divide a load: its share, its clock, its machine."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import gcd
from typing import Literal

from pydantic import Field

from trueload.protocol.model import Model, left_out


class LoadShare(Model):
    """Which parts of a load are one engine's own. Every number in its plan and phases is the total
    of all engines, and is dealt out in turn over all parts and their threads."""

    index: int = 0
    """The first part, from 0."""
    of: int = 1
    """How many parts there are."""
    more: tuple[int, ...] = left_out(())
    """Further parts of an engine with a larger weight, in rising order."""


WHOLE = LoadShare.model_construct()


def load_shares(weights: Sequence[int], connections: int) -> tuple[LoadShare, ...]:
    """Return the shares of engines with these weights, which are 1 or more, and at most as many as
    there are ``connections``.

    The engines take turns by Webster's method: turn k of weight w comes at (k + 1/2) / w. If so few
    connections would leave an engine without any, each has one, and the others are taken in turns.
    """
    common = gcd(*weights)
    shares = [weight // common for weight in weights]
    order = _turns(shares, sum(shares))
    if connections < len(order) and len(set(order[:connections])) < len(shares):
        order = [*range(len(shares)), *_turns(shares, connections, first=1)]
    own: list[list[int]] = [[] for _ in shares]
    for place, index in enumerate(order):
        own[index].append(place)
    return tuple(LoadShare(index=at, of=len(order), more=tuple(more)) for at, *more in own)


def _turns(shares: Sequence[int], most: int, first: int = 0) -> list[int]:
    """The engines that have turns from their ``first`` ones on, up to ``most`` turns of all."""
    turns = (
        (Fraction(2 * nth + 1, 2 * share), index)
        for index, share in enumerate(shares)
        for nth in range(first, share)
    )
    return [index for _, index in sorted(turns)][: most - first * len(shares)]


class Share(Model):
    """Have another part of the load from some time of the last phase on. Connections that are no
    longer the engine's own are closed once their requests have ended."""

    type: Literal["share"] = "share"
    id: str
    part: LoadShare
    """The part from then on."""
    from_ns: int
    """The time, from the start of the phase."""


class AskClock(Model):
    """Ask for the engine's clock; it answers at once (``Clock``)."""

    type: Literal["clock"] = "clock"
    id: int


class AskDistance(Model):
    """Ask how far apart two CPUs are (``Distance``); both are busy for some ms."""

    type: Literal["distance"] = "distance"
    cpus: tuple[int, int]


class Machine(Model):
    """The machine that an engine runs on; unknown values are null."""

    kernel: str = ""
    cpu_model: str | None = None
    cpu_count: int = 0
    governor: str | None = None
    limits: dict[str, int] = Field(default_factory=dict)
    """Limits of open files, ports and queues that are known."""
    boot_id: str | None = None
    """Identifies the current boot of its kernel."""
    network: int | None = None
    """The inode of the engine's network namespace."""


class MachineShares(Model):
    """How a machine's CPU time was spent over a phase, as shares of the time of all CPUs."""

    idle: float
    others: float
    stolen: float
    throttled: float | None = None
    """For which share of the phase a CPU limit stopped the engine; null where no cgroup counts
    that."""


class Clock(Model):
    """The answer to ``AskClock``, with its id."""

    type: Literal["clock"]
    id: int
    at_ns: int


class Distance(Model):
    """The answer to ``AskDistance``."""

    type: Literal["distance"]
    cpus: tuple[int, int]
    ns: float | None
    """The round trip of a cache line between the CPUs; null if it could not be measured."""


class AskSpeeds(Model):
    """Watch the speed of these CPUs, at most 16, until the next such line. That line is answered
    with what was seen (``Speeds``); without CPUs it only ends the watching."""

    type: Literal["speeds"] = "speeds"
    cpus: tuple[int, ...]


class AskLock(Model):
    """Take the lock of the engine's machine, on which one run measures at a time, or release it
    (``Lock``). An engine that is told so first does nothing else."""

    type: Literal["lock"] = "lock"
    token: str
    """Identifies the run: its engines do not wait for each other."""
    what: str
    """What the run does, for those who wait for it."""
    hold: bool


class Lock(Model):
    """The answer to ``AskLock``."""

    type: Literal["lock"]
    by: str | None
    """What another run does that has the lock; null if this run has it, or has released it."""


class CpuLooks(Model):
    """How long the same short work took on a CPU, again and again."""

    cpu: int
    every_ns: int
    work_ns: tuple[int, ...]
    """0 where it was not tried."""


class Speeds(Model):
    """The answer to ``AskSpeeds``: what was seen of the CPUs in the line before."""

    type: Literal["speeds"]
    from_ns: int
    """When the first look began, on the engine's clock."""
    cpus: tuple[CpuLooks, ...]
