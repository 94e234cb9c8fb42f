"""A fleet that hosts join while it sends.

How: hosts that were not there at the start are tried again by another thread. Once one is there, an
engine is started on it; it gets the plan with the share that it will have, and opens its
connections. When they are open, all engines are told from which second of the window on each has
which share. So what a host that was lost had is divided again once another joins. One host joins at
a time. A host that cannot join changes nothing for the others.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from dataclasses import replace

from trueload.engines.engine import EngineError
from trueload.engines.fleet import Fleet
from trueload.engines.member import HostReport, Member, ReceivedLine
from trueload.engines.pauses import Pauses
from trueload.errors import UserError
from trueload.places import EngineHost
from trueload.places.late_hosts import LateHosts
from trueload.protocol.fleet import Clock, Share, load_shares
from trueload.protocol.plan import (
    Blob,
    Done,
    Duration,
    Error,
    FromEngine,
    Generate,
    Phase,
    Ready,
    ToEngine,
)
from trueload.text import plain
from trueload.units import NS_PER_S

LEAD_S = 1.5  # from telling the engines to the change: one silent for so long is lost
STAY_S = 1  # a host that would share the load for less does not join
UNBEGUN = "the run ended before it had joined"
SERIES_S = 3600  # for so long an engine counts by the second, then by two, by four …


def second_to_join(into_s: float, length_s: float) -> int | None:
    """Return the second of a window from which a host shares the load that is ready ``into_s``
    seconds after its start; None if that is too late. The counts of engines over time begin at
    multiples of the same length."""
    step_s = 1 << max(0, math.ceil(math.log2(max(1.0, length_s / SERIES_S))))
    second = math.ceil((into_s + LEAD_S) / step_s) * step_s
    return second if second + STAY_S <= length_s else None


class ElasticFleet(Fleet):
    """A fleet that ``late`` hosts join, each once it is there."""

    def __init__(self, hosts: Sequence[EngineHost], pauses: Pauses, allow_lost: int = 0) -> None:
        super().__init__(hosts, pauses, allow_lost)
        self._late: LateHosts | None = None
        self._opening: list[ToEngine] = []
        """The plan and its blobs, as they were sent."""
        self._newcomers: list[Member] = []
        """All that were started later; the last one may not have joined yet."""
        self._coming: Member | None = None
        self._coming_count = 0
        """How many there will be with it, as its engine was told."""
        self._decided = threading.Event()
        self._thread = threading.Thread(target=self._welcome, name="late-hosts", daemon=True)

    def await_hosts(self, late: LateHosts) -> None:
        """Let these hosts join, from the first phase on."""
        self._late = late

    def send(self, message: ToEngine) -> None:
        super().send(message)
        if isinstance(message, Generate | Blob):
            self._opening.append(message)
        elif isinstance(message, Phase) and self._thread.ident is None:
            self._thread.start()  # the plan is complete

    def reports(self, phase_id: str) -> tuple[HostReport, ...]:
        return tuple(each for each in super().reports(phase_id) if each.lost != UNBEGUN)

    def close(self) -> None:
        if self._late is not None:
            self._late.close()
        self._decided.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._drop(None)
        super().close()

    def receive(self, timeout_s: float) -> FromEngine | None:
        self._let_in()
        return super().receive(timeout_s)

    def _to_ask(self) -> list[Member]:
        return self._members if self._coming is None else [*self._members, self._coming]

    # The thread that waits for hosts.

    def _welcome(self) -> None:
        """Start an engine on each host that comes, one after the other."""
        for host in self._late or ():
            member = Member(-1 - len(self._newcomers), host)
            self._newcomers.append(member)
            self._decided.clear()
            try:
                member.start()
                member.divert(self._received.put)
                self._coming = member
                for message in self._opening_of(member):
                    member.engine.send(message)
            except (UserError, EngineError) as error:
                self._drop(str(error))
            self._decided.wait()

    def _opening_of(self, member: Member) -> list[ToEngine]:
        """The plan and its blobs for an engine that will be one more."""
        found, self._coming_count = list(self._opening), len(self._living()) + 1
        for number, message in enumerate(found):
            if isinstance(message, Generate):
                share = load_shares((1,) * self._coming_count, message.connections)[-1]
                # Its random numbers must be none that others have drawn already.
                own = message.model_copy(update={"seed": message.seed + len(self._members)})
                found[number] = member.own_plan(own, share)
        return found

    # The thread that reads what the engines say.

    def _handle(self, received: ReceivedLine) -> None:
        if received.index >= 0:
            super()._handle(received)
            return
        member = self._newcomers[-1 - received.index]
        if member.index >= 0:
            super()._handle(replace(received, index=member.index))
        elif member is self._coming:
            self._hear(member, received)

    def _handle_done(self, member: Member, message: Done) -> None:
        phase_id = self._running[-1].id if self._running else ""
        if not self._stopping or member.joined_s is None or phase_id in member.measurements:
            super()._handle_done(member, message)
            return
        # It was told to end before its second had come: nobody waits for what it did.
        member.done, member.lost = message.why, UNBEGUN
        self._living_count -= 1
        for awaited in [*self._awaited.values()]:
            awaited.senders.discard(member.index)
            awaited.pass_if_all(self._living_count)

    def _hear(self, member: Member, received: ReceivedLine) -> None:
        """Handle a line of an engine that has not joined yet."""
        member.received_s = time.monotonic()
        try:
            message = member.engine.understand(received.line)
        except EngineError as error:
            self._drop(str(error))
            return
        match message:
            case Clock():
                member.answer(message, received.at_ns)
            case Ready() if message.established == 0:
                self._drop("none of its connections could be opened")
            case Ready():
                member.ready = message
            case Error():
                self._drop(message.message)
            case Done():
                self._drop(f"its engine ended: {message.why}")
            case _:
                pass

    def _drop(self, why: str | None) -> None:
        """Go on without the host that was about to join; say ``why`` unless all ends."""
        member, self._coming = self._newcomers[-1] if self._newcomers else None, None
        if member is not None and member.index < 0 and member.lost is None:
            member.lost = why or "the run ended"
            if member.is_started:
                member.engine.close()
            if why is not None:
                self._announce(f"{plain(member.name)} cannot join: {plain(why)}")
        self._decided.set()

    def _announce(self, line: str) -> None:
        if self._late is not None:
            self._late.announce(line)

    def _let_in(self) -> None:
        """Let the host join that is about to, if its connections are open and the window is on."""
        member, phase = self._coming, self._running[-1] if self._running else None
        if member is None or member.ready is None or phase is None or self._stopping:
            return
        started = self._awaited.get(f"phase_started {phase.id}")
        is_on = started is not None and started.done
        if self._waiting or not is_on or not isinstance(phase.stop, Duration):
            return
        first = self._members[0]
        start_ns = first.offset.to_front(first.starts_ns[phase.id])
        into_s = (time.monotonic_ns() - start_ns) / NS_PER_S
        second = second_to_join(into_s, phase.stop.ns / NS_PER_S)
        if second is None:
            self._drop("it came too late for this run")
            return
        self._join(member, phase, start_ns, second)

    def _join(self, member: Member, phase: Phase, start_ns: int, second: int) -> None:
        """Divide the load again, from a second of the phase on."""
        living, from_ns = self._living(), second * NS_PER_S
        count = len(living) + 1
        if count != self._coming_count:
            self._drop("a host was lost meanwhile")
            return
        shares = load_shares((1,) * count, self._connections or count)
        share_of = {each.index: share for each, share in zip(living, shares, strict=False)}
        at_ns = member.offset.to_engine(start_ns)
        begins = phase.model_copy(update={"at_ns": at_ns, "from_ns": from_ns})
        try:
            member.engine.send(begins)
        except EngineError as error:
            self._drop(str(error))
            return
        self._to_all(lambda each: Share(id=phase.id, part=share_of[each.index], from_ns=from_ns))
        member.index, member.joined_s = len(self._members), second
        member.starts_ns[phase.id] = at_ns
        member.spoke_s = (start_ns + from_ns) / NS_PER_S
        self._members.append(member)
        self._living_count += 1
        self.warn_of_twins()
        self._ticks[phase.id].with_one_more()
        self._coming = None
        self._announce(
            f"{plain(member.name)} joins: from second {second} on, each of {count} hosts has"
            f" 1/{count} of the load"
        )
        self._decided.set()
