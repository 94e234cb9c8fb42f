"""The messages between the front and an aggregator, an engine that starts other engines and
combines what they say. Engines below it are known by numbers that the front gives them.

They mirror crates/engine/src/protocol/aggregate.rs. Must not know how a message is sent.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from trueload.protocol.model import Model
from trueload.protocol.tick import Second, Tick


class Aggregate(Model):
    """Be an aggregator. Engines are opened later, one by one. All end when the front was silent
    for ``lease_ns``."""

    type: Literal["aggregate"] = "aggregate"
    protocol: int
    lease_ns: int


class OpenChild(Model):
    """Start one more engine by a command on the aggregator's machine."""

    type: Literal["open"] = "open"
    child: int
    argv: tuple[str, ...]


class Relay(Model):
    """Hand a line, without its newline, to engines."""

    type: Literal["relay"] = "relay"
    children: tuple[int, ...]
    line: str


class CloseChild(Model):
    """Close an engine's input, or kill its process."""

    type: Literal["close"] = "close"
    child: int
    kill: bool


class Relayed(Model):
    """A line of an engine. Ticks and clocks are combined instead. ``summed``: it is the end of a
    phase, its series is in the sums that come as ``Seconds``, and its own has counts only."""

    type: Literal["relayed"]
    child: int
    line: str
    summed: bool = Field(default=False, exclude_if=lambda value: not value)


class Ended(Model):
    """An engine's process has ended, or has closed its output. ``code`` is negative for a signal,
    and None if it still runs or never ran; ``log`` is the tail of its stderr."""

    type: Literal["ended"]
    child: int
    code: int | None
    log: str


class Silent(Model):
    """An engine has not answered for so long, and is heard no more."""

    type: Literal["silent"]
    child: int
    silent_ns: int


class Quiet(Model):
    """Engines that answer, but have said nothing else for 2.5 s, at this time of the aggregator's
    clock."""

    type: Literal["quiet"]
    at_ns: int
    children: tuple[int, ...]


class ClockOf(Model):
    """How far an engine's clock is ahead of the aggregator's, give or take ``bound_ns``."""

    child: int
    ahead_ns: int
    bound_ns: int


class Clocks(Model):
    """The clocks of engines, about once a second."""

    type: Literal["clocks"]
    clocks: tuple[ClockOf, ...]


class Standings(Model):
    """How far engines have come in a phase, about once a second. For each its number, and of its
    last tick: ``at_ns``, ok, failed, open connections and ``busiest_ns``."""

    type: Literal["standings"]
    id: str
    hosts: tuple[tuple[int, int, int, int, int, int], ...]


class Told(Model):
    """The ticks of an engine in phases that it had not ended, thinned to one a second or fewer."""

    type: Literal["told"]
    child: int
    ticks: tuple[Tick, ...]


class Seconds(Model):
    """The series of a phase, summed over the engines."""

    type: Literal["seconds"]
    id: str
    series: tuple[Second, ...]


ToAggregator = Aggregate | OpenChild | Relay | CloseChild
FromAggregator = Relayed | Ended | Silent | Quiet | Clocks | Standings | Told | Seconds
