"""Attacks on `trueload http`: scripted servers, and hindrances to the generator or the server.

A scene is a value; `play` runs it and returns what was seen.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, Protocol

from redteam.demands import Seen
from redteam.limits import limited
from redteam.stage import Adversary, Command, Stage, adversary, command, engine_of
from setting import GENERATOR_CPU


class Scene(Protocol):
    """One attack, as a value."""

    def play(self, stage: Stage) -> Seen:
        """Run it. `BenchError` says why it cannot be run on this machine."""
        ...


@dataclass(frozen=True)
class Played:
    """The processes of a scene that a hindrance may slow.

    `find_generator` waits for the process that sends; trueload's is a child of the command.
    """

    stage: Stage
    stack: ExitStack
    server: Adversary
    command_pid: int
    find_generator: Callable[[], int]


class Hindrance(Protocol):
    """Something that slows a process."""

    def begin(self, played: Played) -> None:
        """Begin when the command has started; the scene's stack ends it."""
        ...


@dataclass(frozen=True)
class Stop:
    """Stops the generator `times` times, for `for_ms` of every `every_ms`.

    The first stop comes `after_ms` after the first request.
    """

    for_ms: float
    every_ms: float = 1000
    times: int = 1
    after_ms: float = 100

    def begin(self, played: Played) -> None:
        """Wait for the first request."""
        played.server.await_first()
        times = (self.after_ms, self.for_ms, self.every_ms, self.times)
        pid = played.find_generator()
        played.stack.enter_context(hinder(played.stage, "stop", pid, *times))


@dataclass(frozen=True)
class Burn:
    """Another process that uses a CPU for `for_ms` of every `every_ms`."""

    for_ms: float
    every_ms: float
    cpu: int = GENERATOR_CPU

    def begin(self, played: Played) -> None:
        """Begin at once."""
        times = (self.for_ms, self.every_ms)
        played.stack.enter_context(hinder(played.stage, "burn", self.cpu, *times))


@dataclass(frozen=True)
class Crowd:
    """Several hindrances at once."""

    of: tuple[Hindrance, ...]

    def begin(self, played: Played) -> None:
        """Begin each of them."""
        for each in self.of:
            each.begin(played)


@dataclass(frozen=True)
class Quota:
    """A limit of CPU time, for the command and its engine, or for the server."""

    share: float
    period_ms: float
    whose: Literal["generator", "server"] = "generator"

    def begin(self, played: Played) -> None:
        """Begin at once: the engine inherits the group of the command."""
        put = played.stack.enter_context(limited(self.share, self.period_ms))
        put(played.server.process.pid if self.whose == "server" else played.command_pid)


@contextmanager
def hinder(stage: Stage, *words: str | float) -> Iterator[None]:
    """Run `hinder.c`; it ends on SIGTERM and leaves no process stopped."""
    process = subprocess.Popen([stage.program("hinder"), *map(str, words)])
    try:
        yield
    finally:
        process.terminate()
        process.wait()


@dataclass(frozen=True)
class Http:
    """`trueload http` with these flags, against `server.c` with these options."""

    server: str
    flags: str
    hindrance: Hindrance | None = None
    pinned: bool = True
    true_per_s: float | None = None
    """The rate that follows from the options, where counting whole answers would be wrong."""

    def play(self, stage: Stage) -> Seen:
        """Run both."""
        with ExitStack() as stack:
            server = stack.enter_context(adversary(stage, self.server.split()))
            words = ("http", server.url, "--no-save", *self.flags.split())
            running = stack.enter_context(command(stage, *words, pinned=self.pinned))
            if self.hindrance is not None:
                pid = running.process.pid
                find = partial(engine_of, pid)
                self.hindrance.begin(Played(stage, stack, server, pid, find))
            return with_truth(running, server)


def with_truth(running: Command, server: Adversary) -> Seen:
    """Wait for the command, and add the truth of its window, if it had one window."""
    seen = running.seen()
    report = server.end()
    if "warmup" not in seen.result:
        return seen
    window_s = seen.result["window"]["window_ns"] / 1e9
    truth = server.truth(report, seen.result["warmup"]["wall_s"], window_s)
    return replace(seen, truth=truth)
