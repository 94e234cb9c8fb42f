"""One engine of several that share a load: its part, its clock, its machine.

Must not know how the others are spoken to.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from trueload.protocol.model import Model


class Part(Model):
    """Which of several engines one is: every number in its plan and phases is of all of them
    together, and is dealt out in turn over all their threads."""

    index: int = 0
    of: int = 1


WHOLE = Part()


class AskClock(Model):
    """Say what the clock shows (``Clock``), at once."""

    type: Literal["clock"] = "clock"
    id: int


class AskDistance(Model):
    """Say how far apart two CPUs are (``Distance``): some ms in which both are busy."""

    type: Literal["distance"] = "distance"
    cpus: tuple[int, int]


class Machine(Model):
    """The machine that an engine runs on; what it does not say is null, or left out of limits."""

    kernel: str = ""
    cpu_model: str | None = None
    cpu_count: int = 0
    governor: str | None = None
    limits: dict[str, int] = Field(default_factory=dict)


class MachineShares(Model):
    """How a machine's CPU time was spent over a phase, as shares of that of all CPUs."""

    idle: float
    others: float
    stolen: float


class Clock(Model):
    """The answer to ``AskClock``, with its id."""

    type: Literal["clock"]
    id: int
    at_ns: int


class Distance(Model):
    """The answer to ``AskDistance``: what a round trip of a cache line between its CPUs takes, null
    where that could not be measured."""

    type: Literal["distance"]
    cpus: tuple[int, int]
    ns: float | None


class AskSpeeds(Model):
    """Look at the speed of these CPUs, at most 16, until the next such line, which is answered by
    what was seen (``Speeds``); without CPUs it only ends it."""

    type: Literal["speeds"] = "speeds"
    cpus: tuple[int, ...]


class CpuLooks(Model):
    """How long the same short work took a CPU, again and again; 0 where no look was taken."""

    cpu: int
    every_ns: int
    work_ns: tuple[int, ...]


class Speeds(Model):
    """The answer to ``AskSpeeds``: what was seen of the CPUs of the line before, from ``from_ns``
    on the engine's clock."""

    type: Literal["speeds"]
    from_ns: int
    cpus: tuple[CpuLooks, ...]
