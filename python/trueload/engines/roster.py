"""The engines of several hosts: started together, asked for their clocks, and reported on.

One more thread asks every engine for its clock, which renews their leases.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Self

from trueload.closeable import Closeable
from trueload.engines.engine import EngineError
from trueload.engines.member import HostReport, Member, ReceivedLine
from trueload.engines.pauses import Pauses
from trueload.engines.twins import numbers_of
from trueload.errors import HostError, UserError
from trueload.places import EngineHost
from trueload.protocol.plan import Hello
from trueload.protocol.tick import Tick
from trueload.text import listed

ASK_EVERY_S = 0.25  # an eighth of the engine's lease of 2 s, and six answers before silence
STARTERS_MAX = 64  # hosts that are started at the same time
MANY = 32
"""From so many hosts on, clocks are asked half as often, and messages are handled together: 256
hosts send 2,000 messages a second, and each would wake the front."""


class Roster(Closeable):
    """Several engines; a context manager that leaves none of them running.

    So many as ``allow_lost`` hosts may be lost while the others go on.
    """

    def __init__(self, hosts: Sequence[EngineHost], pauses: Pauses, allow_lost: int = 0) -> None:
        self._members = [Member(index, host) for index, host in enumerate(hosts)]
        self._living_count = len(self._members)
        self._received: queue.SimpleQueue[ReceivedLine] = queue.SimpleQueue()
        self._over = threading.Event()
        self._pauses = pauses
        self._allow_lost = allow_lost
        self._warned: set[str] = set()
        self.news: list[str] = []
        """Hosts that were lost, and why; whoever has told the user clears it."""

    @classmethod
    def start(cls, hosts: Sequence[EngineHost], pauses: Pauses, allow_lost: int = 0) -> Self:
        """Start an engine on every host, all of them or none. Raises ``UserError``,
        ``EngineError``, which name the host."""
        roster = cls(hosts, pauses, allow_lost)
        # Engines that are up wait for the others, and must learn meanwhile that the front is alive.
        threading.Thread(target=roster._ask_clocks, name="fleet-clocks", daemon=True).start()
        try:
            with ThreadPoolExecutor(min(len(hosts), STARTERS_MAX)) as starters:
                list(starters.map(roster._start, roster._members))
        except BaseException:
            roster.close()
            raise
        roster.warn_of_twins()
        return roster

    @property
    def hello(self) -> Hello:
        return self._members[0].engine.hello

    def warn_of_twins(self) -> None:
        """Note in the news which hosts are the same machine under several names."""
        _, networks = numbers_of([member.engine.hello.machine for member in self._members])
        names: defaultdict[int | None, list[str]] = defaultdict(list)
        for member, number in zip(self._members, networks, strict=True):
            names[number].append(member.name)
        lines = {
            f"warning: {listed(same)} are one machine, which sends the load of {len(same)} hosts"
            for number, same in names.items()
            if number is not None and len(same) > 1
        }
        self.news += sorted(lines - self._warned)
        self._warned |= lines

    def pids_here(self) -> set[int]:
        """Pids of the engines that run on this machine."""
        return {member.engine.pid for member in self._living() if member.is_here}

    def allowed_cpus(self) -> tuple[int, ...]:
        """The CPUs of this machine that engines may run on."""
        cpus: set[int] = set()
        for member in self._living():
            if member.is_here:
                cpus |= set(member.host.cpus or member.engine.allowed_cpus())
        return tuple(sorted(cpus))

    def reports(self, phase_id: str) -> tuple[HostReport, ...]:
        found = [member.report(phase_id) for member in self._members]
        machines, networks = numbers_of([report.hello.machine for report in found])
        return tuple(
            replace(report, machine_number=machine, network_number=network)
            for report, machine, network in zip(found, machines, networks, strict=True)
        )

    def latest(self, phase_id: str | None) -> tuple[tuple[str, Tick], ...]:
        """Name and last tick of each host with a tick of the phase; empty for a single host."""
        if len(self._members) < 2:
            return ()
        found = ((member.name, member.latest) for member in self._living())
        return tuple((name, tick) for name, tick in found if tick and tick.id == phase_id)

    def close(self) -> None:
        """End all, in parallel."""
        self._over.set()
        started = [member.engine for member in self._members if member.is_started]
        if started:
            with ThreadPoolExecutor(min(len(started), STARTERS_MAX)) as closers:
                list(closers.map(lambda engine: engine.close(), started))

    def _start(self, member: Member) -> None:
        try:
            member.start()
        except UserError as error:
            message = f"{member.name}: {error}"
            raise HostError(message, error.hint, error.exit_code) from error
        except EngineError as error:
            raise EngineError(error.kind, f"{member.name}: {error}") from error
        member.divert(self._received.put)

    def _living(self) -> list[Member]:
        """The members that are not lost."""
        return [member for member in self._members if member.lost is None]

    def _to_ask(self) -> list[Member]:
        return self._members

    def _ask_clocks(self) -> None:
        turn = 0
        while not self._over.wait(ASK_EVERY_S):
            turn += 1
            every = 2 if len(self._members) >= MANY else 1
            # Whoever reads from the channel finds out that it has closed.
            for member in self._to_ask():
                with contextlib.suppress(EngineError):
                    if member.is_asked and turn % max(every, member.engine.asked_every) == 0:
                        member.ask_clock()
