"""Where an engine runs: open a place, then ``send`` lines, read lines, ``kill``.

How: a place starts a process on its host and returns a channel to it. No call on a channel blocks
for longer than the caller allows. There is one module for each kind of place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol


class ChannelClosedError(Exception):
    """The other end has gone, or does not read what it is sent. The message says how."""


class HostGoneError(ChannelClosedError):
    """The host of the program is lost. The message says which, and how."""


class CutOffError(ChannelClosedError):
    """The way to the program is lost, and nothing is known of the program itself. The message says
    how, and ``why`` the same without the host's name."""

    def __init__(self, message: str, why: str = "") -> None:
        super().__init__(message)
        self.why = why or message


class LinkLostError(CutOffError):
    """The way to this host and others is lost; no host is to blame. The message says which way."""


class LineTooLongError(ChannelClosedError):
    """The program wrote a line that is longer than allowed; nothing more is read from it."""


Sink = Callable[[bytes | ChannelClosedError], None]
"""Takes lines, and finally why there will be no more. Called from a thread of the channel."""


class Channel(Protocol):
    """An open place: a process that reads and writes lines."""

    asked_every: int = 1
    """A fleet asks for the clock in every turn, or in every second one where messages cost much."""

    @property
    def pid(self) -> int:
        """Process id on its host."""
        ...

    @property
    def way(self) -> str | None:
        """What its lines go through, as those of other hosts may; None if nothing is known."""
        return None

    def send(self, line: bytes, timeout_s: float) -> None:
        """Send one line, its newline included. Raises ``ChannelClosedError``."""
        ...

    def read_line(self, timeout_s: float) -> bytes | None:
        """The next line; None when none came in time. Raises ``ChannelClosedError`` at the end."""
        ...

    def divert(self, sink: Sink) -> None:
        """Hand each line from now on to ``sink``, instead of keeping it for ``read_line``."""
        ...

    def close_input(self) -> None:
        """Say that nothing more will be sent."""
        ...

    def wait(self, timeout_s: float) -> int | None:
        """The exit code (negative: the signal that ended it); None if it still runs."""
        ...

    def kill(self) -> None:
        """End the process and everything it started, at once. Does nothing if it has ended."""
        ...

    def log_tail(self) -> str:
        """The last part of what it wrote to stderr."""
        ...

    def suspect(self) -> bool:
        """Note that nothing is heard of it. Return whether the channel itself finds out why, and
        ends then: a moment later, with the reason."""
        return False


class Place(Protocol):
    """Where a process can be started."""

    @property
    def name(self) -> str:
        """The name in the record: ``local``, or the host's name."""
        ...

    def open(self, argv: Sequence[str]) -> Channel:
        """Start a process. Raises ``OSError`` if it cannot be started."""
        ...


@dataclass(frozen=True)
class EngineHost:
    """A place, and what an engine may use there. ``cpus`` None and empty ``local_addresses`` leave
    both to what the run asks for. ``group`` is the name of the hosts that it is compared with. By
    its ``weight`` it has its share of the load."""

    place: Place
    cpus: tuple[int, ...] | None = None
    local_addresses: tuple[str, ...] = ()
    group: str | None = None
    weight: int = 1
