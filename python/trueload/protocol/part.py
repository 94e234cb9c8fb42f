"""One engine of several that share a load: its part, its clock, its machine.

Must not know how the others are spoken to.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from trueload.protocol.model import Model


class Part(Model):
    """Which of several engines this is. Every number in its plan and phases is the total of all
    engines, and is dealt out in turn over all their threads."""

    index: int = 0
    of: int = 1


WHOLE = Part()


class AskClock(Model):
    """Ask for the engine's clock; it answers at once (``Clock``)."""

    type: Literal["clock"] = "clock"
    id: int


class AskDistance(Model):
    """Ask how far apart two CPUs are (``Distance``); both are busy for some ms."""

    type: Literal["distance"] = "distance"
    cpus: tuple[int, int]


class Machine(Model):
    """The machine that an engine runs on. Unknown values are null, or left out of ``limits``."""

    kernel: str = ""
    cpu_model: str | None = None
    cpu_count: int = 0
    governor: str | None = None
    limits: dict[str, int] = Field(default_factory=dict)


class MachineShares(Model):
    """How a machine's CPU time was spent over a phase, as shares of the time of all CPUs."""

    idle: float
    others: float
    stolen: float


class Clock(Model):
    """The answer to ``AskClock``, with its id."""

    type: Literal["clock"]
    id: int
    at_ns: int


class Distance(Model):
    """The answer to ``AskDistance``: the round trip of a cache line between its CPUs in ns, null if
    it could not be measured."""

    type: Literal["distance"]
    cpus: tuple[int, int]
    ns: float | None


class AskSpeeds(Model):
    """Watch the speed of these CPUs, at most 16, until the next such line. That line is answered
    with what was seen (``Speeds``); without CPUs it only ends the watching."""

    type: Literal["speeds"] = "speeds"
    cpus: tuple[int, ...]


class CpuLooks(Model):
    """How long the same short work took on a CPU, again and again; 0 where it was not tried."""

    cpu: int
    every_ns: int
    work_ns: tuple[int, ...]


class Speeds(Model):
    """The answer to ``AskSpeeds``: what was seen of the CPUs in the line before, from ``from_ns``
    on the engine's clock."""

    type: Literal["speeds"]
    from_ns: int
    cpus: tuple[CpuLooks, ...]
