"""One engine of a fleet: what it was sent, what it sent, and its clock."""

from __future__ import annotations

import itertools
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from trueload.deadline import seconds_left
from trueload.engines.clock import Comparison, Offset, Reading, SharedOffset
from trueload.engines.engine import Engine, EngineError
from trueload.engines.host_ticks import HostTicks
from trueload.engines.losses import ChannelEnd
from trueload.engines.merge import Span
from trueload.places import ChannelClosedError, EngineHost
from trueload.places.local import LocalPlace
from trueload.protocol.fleet import AskClock, Clock, LoadShare
from trueload.protocol.plan import Generate, Hello, Measurement, Ready
from trueload.protocol.tick import Tick
from trueload.units import NS_PER_S, format_duration

COMPARED_AT_START = 8  # questions before anything is agreed: the quickest of them counts
COMPARE_S = 5.0


@dataclass(frozen=True, slots=True)
class ReceivedLine:
    """An unread line from a member, or its end, and its time of arrival (``time.monotonic_ns``)."""

    index: int
    line: bytes | ChannelClosedError
    at_ns: int


@dataclass(frozen=True)
class HostReport:
    """What one host did in a phase.

    ``start_ns`` is when it began to send, on the front's clock; None if that is not known. ``lost``
    says how the host was lost, None if it was not, and ``way_lost`` whether that was the way to it
    and others. ``measurement`` is None if it was lost before it had ended the phase; ``told`` has
    what it told until then. ``joined_s`` is the second of the phase in which it joined the others;
    None if it began with them. ``agreed_bound_ns`` is how wrong the offset was at most that it
    converted times with in the phase; None if it converted none. Hosts with the same
    ``machine_number`` are one machine, those with the same ``network_number`` have one network.
    """

    host: EngineHost
    hello: Hello
    measurement: Measurement | None
    offset: Offset
    start_ns: int | None
    lost: str | None = None
    way_lost: bool = False
    told: HostTicks = field(default_factory=HostTicks)
    ready: Ready | None = None
    agreed_bound_ns: int | None = None
    joined_s: int | None = None
    machine_number: int | None = None
    network_number: int | None = None


class Member:
    """An engine, its clock readings, and its share of each phase."""

    def __init__(self, index: int, host: EngineHost) -> None:
        self.index = index
        self.host = host
        self.name = host.place.name
        self.ready: Ready | None = None
        self.done: str | None = None
        self.joined_s: int | None = None
        """The second of the window in which it joined the others."""
        self.lost: str | None = None
        """How it was lost, in one line."""
        self.way_lost = False
        """Whether the way to it and others was lost, for which it is not to blame."""
        self.cut: ChannelEnd | None = None
        """How it was cut off, until that is judged."""
        self.latest: Tick | None = None
        """Its last tick, on the front's clock."""
        self.received_s = self.spoke_s = time.monotonic()
        self.starts_ns: dict[str, int] = {}
        """When each phase was to begin, on its own clock."""
        self.started_ns: dict[str, int] = {}
        self.stopped_ns: dict[str, int] = {}
        self.measurements: dict[str, Measurement] = {}
        self.told: defaultdict[str, HostTicks] = defaultdict(HostTicks)
        self._engine: Engine | None = None
        self._comparison = Comparison()
        self._asked_ns: dict[int, int] = {}
        self._ids = itertools.count(1)
        self._agreed: dict[str, SharedOffset] = {}
        self._agreed_now: SharedOffset | None = None

    @property
    def engine(self) -> Engine:
        """Its engine; it must have been started."""
        assert self._engine is not None
        return self._engine

    @property
    def is_started(self) -> bool:
        """Whether its engine has been started."""
        return self._engine is not None

    @property
    def is_asked(self) -> bool:
        """Whether it is to be asked for its clock."""
        return self.is_started and self.lost is None and not self.done

    @property
    def is_here(self) -> bool:
        """Whether it runs on this machine, as a child of the front."""
        return isinstance(self.host.place, LocalPlace)

    def start(self) -> None:
        """Start the engine and compare clocks. Raises ``UserError``, ``EngineError``."""
        self._engine = Engine.start(self.host.place, lease=False)
        self._compare_clocks()
        self.received_s = time.monotonic()

    def own_plan(self, plan: Generate, share: LoadShare) -> Generate:
        """The whole plan with its share, and its CPUs and local addresses."""
        host = self.host
        return plan.model_copy(
            update={
                "part": share,
                "cpus": plan.cpus if host.cpus is None else host.cpus,
                "local_addresses": host.local_addresses or plan.local_addresses,
            }
        )

    def divert(self, sink: Callable[[ReceivedLine], None]) -> None:
        """Hand what the engine says to a sink that all members share."""
        self.engine.divert(
            lambda line: sink(ReceivedLine(self.index, line, time.monotonic_ns())),
        )

    def ask_clock(self) -> None:
        """Ask for its time, which also says that the front is alive. Another thread may call this
        than ``answer``. Raises ``EngineError``."""
        number = next(self._ids)
        self._asked_ns[number] = time.monotonic_ns()
        self.engine.send(AskClock(id=number))

    def answer(self, clock: Clock, at_ns: int) -> None:
        """Note the answer to ``ask_clock``, received at ``at_ns`` of the front's clock."""
        self.compare_agreed()
        asked_ns = self._asked_ns.pop(clock.id, None)
        if asked_ns is not None:
            self._comparison.add(Reading(asked_ns, at_ns, clock.at_ns))

    def _compare_clocks(self) -> None:
        """Ask an engine that has just started until its clock is known. Raises ``EngineError``."""
        deadline_s = time.monotonic() + COMPARE_S
        while len(self._comparison) < COMPARED_AT_START:
            self.ask_clock()
            answer = self.engine.receive(seconds_left(deadline_s))
            if not isinstance(answer, Clock):
                received = (
                    f"said '{answer.type}'" if answer else f"said nothing for {COMPARE_S:g} s"
                )
                raise EngineError("start", f"the engine {received} when asked for its clock")
            self.answer(answer, time.monotonic_ns())

    def agree(self, phase_id: str, *, again: bool) -> int:
        """The offset that its engine is to convert times with in a phase: the one known now or, if
        not ``again``, that of the phase before."""
        if again or self._agreed_now is None:
            self._agreed_now = SharedOffset(self.offset.ns)
        self._agreed[phase_id] = self._agreed_now
        self.compare_agreed()
        return self._agreed_now.ns

    def compare_agreed(self) -> None:
        """Note how wrong the agreed offset is now; before a reading is added, and at the end of a
        phase."""
        if self._agreed_now is not None:
            self._agreed_now.compare(self.offset)

    @property
    def offset(self) -> Offset:
        """The offset of its clock from the front's, now."""
        offset = self._comparison.offset(time.monotonic_ns())
        assert offset is not None, "clocks are compared before anything else"
        return offset

    def tell(self, tick: Tick) -> None:
        """Note a tick of its own, on the front's clock."""
        self.latest = tick
        phase_id = tick.id or ""
        self.told[phase_id].add(tick, self.offset.to_front(self.starts_ns.get(phase_id, 0)))

    def last_tick_of(self, phase_ids: Sequence[str]) -> str:
        """When its last tick in these phases came, in words."""
        for phase_id in reversed(phase_ids):
            tick = self.told[phase_id].last
            if tick is not None:
                start_ns = self.offset.to_front(self.starts_ns[phase_id])
                into = format_duration(max(0, tick.at_ns - start_ns))
                return f"its last tick came {into} into the {phase_id}"
        return "no tick had come"

    def span(self, phase_id: str) -> Span:
        """The times of a finished phase, on the front's clock."""
        found, offset = self.measurements[phase_id], self.offset
        stopped_ns = found.started_ns + found.window_ns
        return Span(
            started_ns=offset.to_front(found.started_ns),
            began_ns=offset.to_front(found.began_ns) - (self.joined_s or 0) * NS_PER_S,
            stopped_ns=offset.to_front(stopped_ns),
            done_ns=offset.to_front(stopped_ns + found.drain_ns),
        )

    def has_part_in(self, phase_id: str) -> bool:
        """Whether it has ended a phase, and was not lost before that."""
        found = self.measurements.get(phase_id)
        return found is not None and (self.lost is None or not found.partial)

    def report(self, phase_id: str) -> HostReport:
        """What it did in a phase."""
        agreed = self._agreed.get(phase_id)
        return HostReport(
            host=self.host,
            hello=self.engine.hello,
            measurement=self.measurements.get(phase_id),
            offset=self.offset,
            start_ns=self._began_ns(phase_id),
            lost=None if self.has_part_in(phase_id) else self.lost,
            way_lost=self.way_lost and not self.has_part_in(phase_id),
            told=self.told[phase_id],
            ready=self.ready,
            agreed_bound_ns=None if agreed is None else agreed.bound_ns,
            joined_s=self.joined_s,
        )

    def _began_ns(self, phase_id: str) -> int | None:
        if phase_id in self.measurements:
            return self.span(phase_id).began_ns
        started_ns = self.started_ns.get(phase_id)
        joined_ns = (self.joined_s or 0) * NS_PER_S
        return None if started_ns is None else self.offset.to_front(started_ns) - joined_ns
