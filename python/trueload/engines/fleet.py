"""The engines of several hosts, spoken to as one.

How: every engine gets the whole plan and its share of it, and deals out its own connections,
requests and arrivals. A phase begins once every engine is ready, at a time that each is told in its
own clock. Lines from all engines go into one queue, which is read when the caller asks. A message
goes on to the caller once all engines have sent it. A host that falls silent, dies or ends before
it was told to is lost. Hosts that go at once are lost by the way that they share. If more hosts are
lost than may be, the run ends: the ``EngineError`` says which host, and what it said last. Else the
others go on with their own shares.
"""

from __future__ import annotations

import contextlib
import queue
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from trueload.deadline import seconds_left
from trueload.engines.engine import EngineError, FailureKind
from trueload.engines.host_ticks import condensed
from trueload.engines.losses import ChannelEnd, LifeSign, judge
from trueload.engines.member import Member, ReceivedLine
from trueload.engines.merge import OverTime, merge_measurements, merge_ready
from trueload.engines.pauses import Pauses
from trueload.engines.roster import ASK_EVERY_S, MANY, Roster
from trueload.engines.settlement import Settlement
from trueload.engines.ticks import Ticks
from trueload.places import EngineHost, LinkLostError
from trueload.protocol.broadcast import PhaseSent, Settle, Settled
from trueload.protocol.fleet import Clock, load_shares
from trueload.protocol.plan import (
    Done,
    Duration,
    Error,
    FromEngine,
    Generate,
    Phase,
    PhaseDone,
    PhaseStarted,
    PhaseStopped,
    Ready,
    RequestRows,
    Stop,
    ToEngine,
    Turns,
)
from trueload.protocol.tick import Tick
from trueload.units import NS_PER_S

SILENCE_S = 1.5  # design §9: a host that is silent for so long is lost
IDLE_S = 2.5  # ten ticks: an engine that answers, but reports no work
START_LEAD_NS = 50_000_000
"""Lead time of announcing a phase; four of the slowest round trips are added to it."""
START_LEAD_EACH_NS = 200_000  # and so much for each host: they are sent to one after the other
LOOK_EVERY_S = SILENCE_S / 10
STALL_S = 0.5  # a front that itself was paused for so long cannot tell who was silent
TOGETHER_S = 0.01  # of many hosts, the front handles what has come so often


@dataclass
class Barrier:
    """A message that all living members have to send before ``then`` is done, once."""

    then: Callable[[], None]
    senders: set[int] = field(default_factory=set)
    done: bool = False

    def pass_if_all(self, living: int) -> None:
        """Do it if so many have sent the message, and it has not been done."""
        if not self.done and len(self.senders) == living > 0:
            self.done = True
            self.then()


class Fleet(Roster):
    """Several engines at work, spoken to as one."""

    def __init__(self, hosts: Sequence[EngineHost], pauses: Pauses, allow_lost: int = 0) -> None:
        super().__init__(hosts, pauses, allow_lost)
        self._out: deque[FromEngine] = deque()
        self._waiting: deque[Phase] = deque()
        self._running: list[Phase] = []
        self._ticks: dict[str, Ticks] = {}
        self._connections: int | None = None
        self._joining: set[str] = set()
        """Phases that change the number of connections."""
        self._settling = Settlement(len(self._members))
        self._timeout_ns = 0
        self._stopping = False
        self._looked_s = time.monotonic()
        self._over_time: dict[str, OverTime] = {}
        self._awaited: dict[str, Barrier] = {}

    def send(self, message: ToEngine) -> None:
        """Send one message to all; a phase waits until its start can be agreed. Raises
        ``EngineError``."""
        if isinstance(message, Phase):
            self._waiting.append(message)
            self._advance()
        elif isinstance(message, Generate):
            self._connections = message.connections
            self._timeout_ns = message.timeout_ns
            weights = tuple(each.host.weight for each in self._members)
            shares = load_shares(weights, message.connections)
            self._to_all(lambda member: member.own_plan(message, shares[member.index]))
        else:
            self._to_all(lambda member: message)

    def receive(self, timeout_s: float) -> FromEngine | None:
        """The next message that all have sent; None if none came in time. Raises ``EngineError``,
        of kind ``lost`` if a host is lost."""
        deadline_s = time.monotonic() + timeout_s
        while not self._out:
            if self._received.empty():  # a host with unread messages is not silent
                self._look_for_losses()
                if len(self._members) >= MANY:
                    time.sleep(min(TOGETHER_S, seconds_left(deadline_s)))
            try:
                left_s = min(seconds_left(deadline_s), LOOK_EVERY_S)
                self._handle(self._received.get(timeout=left_s))
            except queue.Empty:
                if seconds_left(deadline_s) == 0:
                    return None
        return self._out.popleft()

    def gather(self, within_s: float) -> list[Tick]:
        """After a host was lost: tell the others to end, and take what they still say of their
        phases. Return the merged ticks that nobody has received."""
        self.stop()
        deadline_s = time.monotonic() + within_s
        while not all(member.done for member in self._living()):
            try:
                self._handle(self._received.get(timeout=seconds_left(deadline_s)))
            except (queue.Empty, EngineError):
                if seconds_left(deadline_s) == 0:
                    break
        told = [message for message in self._out if isinstance(message, Tick)]
        self._out.clear()
        last = self._ticks[self._running[-1].id].rest() if self._running else None
        return told if last is None else [*told, last]

    def stop(self) -> None:
        """Ask all to end. What they still have to say can be received."""
        self._stopping = True
        self._waiting.clear()
        for member in self._living():
            if member.cut is not None:
                self._lose([member], member.cut.what, of_way=member.cut.names_way)
        for member in self._living():
            with contextlib.suppress(EngineError):
                member.engine.send(Stop())

    def _to_all(self, message: Callable[[Member], ToEngine]) -> None:
        for member in self._living():
            try:
                member.engine.send(message(member))
            except EngineError as error:
                self._fail(member, error)

    def _advance(self) -> None:
        """Tell all of the next phase as soon as its start can be agreed. That is at once if the
        phase before ends at a known time, else when all have ended it."""
        living = self._living()
        while self._waiting and all(member.ready for member in living):
            before = self._running[-1] if self._running else None
            if before is not None and not self._is_over(before):
                if not isinstance(before.stop, Duration):
                    return
                starts_ns = [member.starts_ns[before.id] + before.stop.ns for member in living]
                again = False
            else:
                offsets = [member.offset for member in living]
                slowest_ns = 8 * max(offset.bound_ns for offset in offsets)
                lead_ns = START_LEAD_NS + START_LEAD_EACH_NS * len(offsets) + slowest_ns
                start_ns = time.monotonic_ns() + lead_ns
                starts_ns = [offset.to_engine(start_ns) for offset in offsets]
                again = True
            self._begin(self._waiting.popleft(), starts_ns, again=again)

    def _begin(self, phase: Phase, starts_ns: Sequence[int], *, again: bool) -> None:
        """Begin a phase. ``again``: the one before is over, so clocks may be compared again."""
        self._running.append(phase)
        if phase.connections not in (None, self._connections):
            self._connections = phase.connections
            self._joining.add(phase.id)
        living = self._living()
        self._ticks[phase.id] = Ticks(len(living))
        for member, start_ns in zip(living, starts_ns, strict=True):
            member.starts_ns[phase.id] = start_ns
            member.spoke_s = max(time.monotonic(), member.offset.to_front(start_ns) / NS_PER_S)
        across = isinstance(phase.load, Turns)  # only then times go from one clock to another

        def in_its_time(member: Member) -> Phase:
            ahead_ns = member.agree(phase.id, again=again) if across else None
            at_ns = member.starts_ns[phase.id]
            return phase.model_copy(update={"at_ns": at_ns, "ahead_ns": ahead_ns})

        self._to_all(in_its_time)

    def _once_all(self, what: str, member: Member, then: Callable[[], None]) -> None:
        """Do ``then`` when all living members have sent this message, now that one has. Members
        are remembered by index, because there may be very many."""
        awaited = self._awaited.setdefault(what, Barrier(then))
        awaited.senders.add(member.index)
        awaited.pass_if_all(self._living_count)

    def _is_over(self, phase: Phase) -> bool:
        return all(phase.id in member.measurements for member in self._living())

    def _handle(self, received: ReceivedLine) -> None:
        member = self._members[received.index]
        if member.lost is not None or (member.done and self._stopping):
            return
        if isinstance(received.line, bytes):
            member.received_s = time.monotonic()
        try:
            message = member.engine.understand(received.line)
        except EngineError as error:
            self._fail(member, error)
            return
        if not isinstance(message, Clock):
            member.spoke_s = member.received_s
        match message:
            case Clock():
                member.answer(message, received.at_ns)
            case Ready():
                self._handle_ready(member, message)
            case PhaseStarted() | PhaseStopped():
                self._handle_edge(member, message)
            case Tick():
                self._handle_tick(member, message)
            case PhaseDone():
                self._handle_done_phase(member, message)
            case PhaseSent() | Settled() if not self._stopping:
                self._settle(member, message)
            case RequestRows():
                self._out.append(message.model_copy(update={"host": member.name}))
            case Error():
                named = f"{member.name}: {message.message}"
                self._out.append(message.model_copy(update={"message": named}))
            case Done():
                self._handle_done(member, message)
            case _:
                pass

    def _handle_ready(self, member: Member, message: Ready) -> None:
        member.ready = message

        def all_are() -> None:
            found = [each.ready for each in self._living() if each.ready is not None]
            self._out.append(merge_ready(found, time.monotonic_ns()))
            self._advance()

        self._once_all("ready", member, all_are)

    def _handle_edge(self, member: Member, message: PhaseStarted | PhaseStopped) -> None:
        """A phase has started, or stopped, once it has on all engines. So none starts before the
        one before it has stopped. Its start is that of the first engine, its end that of the last.
        """
        started = isinstance(message, PhaseStarted)
        (member.started_ns if started else member.stopped_ns)[message.id] = message.at_ns

        def all_have() -> None:
            found = [
                each.offset.to_front((each.started_ns if started else each.stopped_ns)[message.id])
                for each in self._living()
            ]
            at_ns = min(found) if started else max(found)
            self._out.append(message.model_copy(update={"at_ns": at_ns}))

        self._once_all(f"{message.type} {message.id}", member, all_have)

    def _handle_tick(self, member: Member, message: Tick) -> None:
        ticks = self._ticks.get(message.id or "")
        if ticks is None:
            return
        at_ns = member.offset.to_front(message.at_ns)
        moved = message.model_copy(update={"at_ns": at_ns})
        member.tell(moved)
        if (merged := ticks.receive(member.index, moved)) is not None:
            self._out.append(merged)

    def _settle(self, member: Member, message: PhaseSent | Settled) -> None:
        """Settle a broadcast: what was sent, and what failed, is sent to all once all have reported
        it. A message that has not come when the timeout has passed since the last was sent is lost.
        """
        if isinstance(message, Settled):
            charge = self._settling.receive_settled(member.index, message)
            if charge is not None:
                self._to_all(lambda member: charge)
            return
        settle = self._settling.receive_sent(member.index, message)
        if settle is None:
            return
        stopped_ns = max(
            each.offset.to_front(each.stopped_ns[message.id]) for each in self._members
        )
        until_ns = stopped_ns + self._timeout_ns

        def in_its_time(member: Member) -> Settle:
            return settle.model_copy(update={"until_ns": member.offset.to_engine(until_ns)})

        self._to_all(in_its_time)

    def _handle_done_phase(self, member: Member, message: PhaseDone) -> None:
        if message.id not in self._ticks:
            return
        over_time = self._over_time.setdefault(message.id, OverTime())
        if self._stopping or not message.measurement.partial:
            over_time.add(message.measurement)
        # Kept for each host, the latencies over time would take most of the front's memory.
        own = {"series": condensed(message.measurement.series), "tracks": ()}
        member.measurements[message.id] = message.measurement.model_copy(update=own)
        member.compare_agreed()

        def all_have() -> None:
            self._out.append(self._merged_phase(message))
            self._advance()

        self._once_all(f"{message.type} {message.id}", member, all_have)

    def _merged_phase(self, message: PhaseDone) -> PhaseDone:
        """The end of a phase, of all that have ended it. Raises ``EngineError`` for junk."""
        if (rest := self._ticks[message.id].rest()) is not None:
            self._out.append(rest)
        ended = [each for each in self._members if each.has_part_in(message.id)]
        parts = [each.measurements[message.id] for each in ended]
        spans = [each.span(message.id) for each in ended]
        try:
            merged = merge_measurements(parts, spans, self._over_time[message.id])
        except ValueError as error:
            raise EngineError(
                "junk", (f"the measurements of the hosts cannot be added up: {error}")
            ) from error
        return message.model_copy(update={"measurement": merged})

    def _handle_done(self, member: Member, message: Done) -> None:
        if not self._stopping and message.why in ("signalled", "orphaned"):
            self._lose([member], f"the engine ended by itself: {message.why}")
            return
        member.done = message.why

        def all_are() -> None:
            whys = [each.done for each in self._living() if each.done]
            odd = [why for why in whys if why in ("signalled", "orphaned")]
            self._out.append(message.model_copy(update={"why": (odd or whys)[0]}))

        self._once_all("done", member, all_are)

    def _look_for_losses(self) -> None:
        now_s = time.monotonic()
        stood_s = now_s - self._looked_s
        if stood_s < LOOK_EVERY_S:
            return
        self._looked_s = now_s
        if stood_s > STALL_S:
            for member in self._members:
                member.received_s += stood_s
                member.spoke_s += stood_s
        living = [member for member in self._living() if not member.done]
        gone = [member for member in living if is_gone(member, now_s)]
        if gone:
            signs = [sign_of(member, member in gone) for member in living]
            way_of = {member.index: member.engine for member in living}
            for loss in judge(signs, now_s, SILENCE_S, lambda index: way_of[index].way):
                lost = [self._members[index] for index in loss.indexes]
                self._lose(lost, loss.what, of_way=loss.of_way)
        for member in living:
            if member in gone or member.lost is not None:
                continue
            if now_s - member.spoke_s > IDLE_S and self._is_at_work(member):
                # It answers, but does not work on a phase that has begun.
                self._lose([member], f"its engine has reported no work for {IDLE_S:g} s")

    def _is_at_work(self, member: Member) -> bool:
        """Whether it is in a phase, in which it reports four times a second. A phase that needs
        more connections first begins once they are made."""
        return any(
            phase.id not in member.measurements
            and (phase.id in member.started_ns or phase.id not in self._joining)
            for phase in self._running
        )

    def _fail(self, member: Member, error: EngineError) -> None:
        """Lose a member for an error, or note that it is cut off: who else is, will tell why."""
        cut, what = error.cut, str(error).removeprefix(f"host {member.name} is lost: ")
        if cut is None or self._stopping:
            self._lose([member], what, error.kind, of_way=isinstance(cut, LinkLostError))
        elif member.cut is None:
            names_way = isinstance(cut, LinkLostError)
            member.cut = ChannelEnd(time.monotonic(), what, cut.why, names_way)

    def _lose(
        self,
        members: Sequence[Member],
        what: str,
        kind: FailureKind = "died",
        *,
        of_way: bool = False,
    ) -> None:
        """Go on without hosts that were lost by one cause. If no more may be lost, tell the others
        to end, and raise ``EngineError``; while they are ending nothing is raised. No host is lost
        if this process itself was paused: then all of them end. With ``of_way`` the way to them is
        lost, and none of them is named."""
        if (paused := self._pauses.behind(what)) is not None:
            for member in members:
                member.done = member.done or what
            if self._stopping:
                return
            self.stop()
            raise EngineError("paused", paused)
        silent_s = time.monotonic() - min(member.received_s for member in members)
        seen = "seen at once" if silent_s < ASK_EVERY_S else f"seen after {silent_s:.1f} s"
        for member in members:
            last = "" if of_way else f"; {member.last_tick_of([each.id for each in self._running])}"
            member.lost, member.way_lost = f"{what}{last}; {seen}", of_way
            self._forget(member)
        if not self._stopping:
            lost = members[0].lost
            told = f"{lost}" if of_way else f"host lost: {members[0].name}: {lost}"
            self.news.append(told)
            lost_count = len(self._members) - self._living_count
            if lost_count > self._allow_lost or self._living_count == 0:
                self.stop()
                raise EngineError("memory" if kind == "memory" else "lost", told)
        for awaited in [*self._awaited.values()]:
            awaited.pass_if_all(self._living_count)
        self._advance()

    def _forget(self, member: Member) -> None:
        """Wait no longer for what a lost member has not sent."""
        self._living_count -= 1
        for ticks in self._ticks.values():
            ticks.without(member.index)
        for awaited in self._awaited.values():
            awaited.senders.discard(member.index)


def is_gone(member: Member, now_s: float) -> bool:
    """Whether a member is cut off, or silent for too long."""
    return member.cut is not None or now_s - member.received_s > SILENCE_S


def sign_of(member: Member, gone: bool) -> LifeSign:
    """What is known of a member; if one is silent, its channel is asked to find out why."""
    is_awaited = gone and member.cut is None and member.engine.suspect()
    return LifeSign(member.index, member.received_s, member.cut, is_awaited)
