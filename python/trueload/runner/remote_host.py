"""Another host where subjects run: built here, copied there, managed by the agent.

How: each question to the host is a call to the agent. One call asks for as much as possible,
because each costs a round trip.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self

from trueload.closeable import Closeable
from trueload.places.ssh import SshPlace
from trueload.runner.build import Build
from trueload.runner.process import Exit, Orders, SubjectState
from trueload.runner.remote_agent import RemoteAgent

NEWS_EVERY_S = 0.25
KEEPER_PATIENCE_S = 10.0  # beyond the grace, like the supervisor's own


class RemoteHost:
    """A host reached by ssh, with the interface of ``hosts.LocalHost``.

    If ``cpus`` is None the subject may use all CPUs.
    """

    trueload = None

    def __init__(
        self, place: SshPlace, host: RemoteAgent, address: str, cpus: tuple[int, ...] | None
    ) -> None:
        self.address: str | None = address
        self.cpus = cpus or host.cpus
        self._place = place
        self._host = host

    def free_port(self, host: str) -> int:
        return int(self._host.call("free_port", host=host))

    def taken_by(self, host: str, port: int) -> str | None:
        found = self._host.call("taken_by", host=host, port=port)
        return None if found is None else str(found)

    def folder_of(self, built: Build) -> Path:
        return self._place.put_folder(built.folder, built.key)

    def environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        return dict(extra)

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        yield Path(self._host.scratch)

    def start(self, orders: Orders) -> contextlib.AbstractContextManager[RemoteProcesses]:
        return RemoteProcesses(self._host, orders)


class RemoteProcesses(Closeable):
    """Programs that the agent has started, with the interface of ``process.Processes``.

    A context manager.
    """

    def __init__(self, host: RemoteAgent, orders: Orders) -> None:
        self._host = host
        self._orders = orders
        self._alive = True
        self._ended = False
        self._received_s = time.monotonic()
        self.started: tuple[int, ...] = ()
        self.exits: list[Exit] = []

    def __enter__(self) -> Self:
        orders = self._orders
        programs = [(list(each.argv), list(each.cpus)) for each in orders.programs]
        started = self._host.call(
            "start",
            programs=programs,
            cwd=str(orders.cwd),
            env=dict(orders.env),
            files=orders.files,
        )
        self.started = tuple(started)
        return self

    def close(self) -> None:
        """End the programs at once."""
        self.end(0)

    @property
    def tree(self) -> RemoteAgent:
        return self._host

    def alive(self) -> bool:
        """Whether any process is left there."""
        if not self._ended:
            self.receive(self._host.call("news"))
        return self._alive

    def look(self, host: str, port: int) -> SubjectState:
        """Return the state of the programs, and who listens on their port."""
        found = self._host.call("look", host=host, port=port)
        self.receive(found)
        taken = found["taken_by"]
        return SubjectState(bool(found["alive"]), int(found["sockets"]), taken and str(taken))

    def listens_on(self) -> list[str]:
        """Return all addresses that they listen on."""
        return [str(each) for each in self._host.call("elsewhere")]

    def poll(self, timeout_s: float) -> None:
        """Ask for news, at most every ``NEWS_EVERY_S``; sleep otherwise."""
        if time.monotonic() - self._received_s < NEWS_EVERY_S:
            time.sleep(timeout_s)
        else:
            self.alive()

    def receive(self, news: Mapping[str, object]) -> None:
        """Store the agent's news."""
        self._received_s = time.monotonic()
        self._alive = bool(news["alive"])
        exits = news["exits"]
        assert isinstance(exits, list)
        self.exits = [Exit(code, signal) for code, signal in exits]

    def end(self, grace_s: float) -> None:
        """End the programs. Idempotent: calling it again does nothing."""
        if not self._ended:
            self._ended, self._alive = True, False
            self._host.call("end", grace_s + KEEPER_PATIENCE_S, grace_s=grace_s)

    def log_tail(self) -> str:
        """Return the end of their output."""
        return str(self._host.call("log_tail"))
