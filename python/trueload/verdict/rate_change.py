"""The rate of answers within a window, for `steady-state` and `cpu-speed`. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from trueload.protocol.flow import Flow
from trueload.protocol.plan import Closed
from trueload.record.schema import Record
from trueload.units import NS_PER_S, counted, format_count, format_duration, format_rate
from trueload.verdict.common import is_staged
from trueload.verdict.stretches import PARTS, PARTS_MIN, Stretch, largest_change
from trueload.verdict.throttling import TURN_NS

ANSWERS_MIN = 10  # in a part, on average: fewer are a matter of chance
# Answers cannot come as fast as requests go out before the first requests are answered.
FILLING = 2.0  # mean service times, without a warm-up


@dataclass(frozen=True)
class Rates:
    """The answers per second in each part of a window.

    ``part_ns`` is the length of a part, and ``skipped_ns`` is where the first one begins. Without
    parts, ``why`` says why the rates are not known.
    """

    parts: tuple[float, ...] = ()
    part_ns: float = 0.0
    skipped_ns: float = 0.0
    why: str = ""

    @property
    def mean(self) -> float:
        """The mean rate of all parts."""
        return sum(self.parts) / len(self.parts)

    def change(self, record: Record) -> Stretch | None:
        """Return the stretch that differs from the rest; None if chance explains it all."""
        if not self.parts:
            return None
        at_once = _at_once(record) * NS_PER_S / self.part_ns
        return largest_change(self.parts, at_once, TURN_NS / self.part_ns)

    def span(self, stretch: Stretch) -> tuple[float, float]:
        """Return start and end of a stretch, in ns from the window's start."""
        first, end = (self.skipped_ns + self.part_ns * at for at in (stretch.first, stretch.end))
        return first, end

    def text(self, stretch: Stretch) -> str:
        """A text: ``900 requests/s from 0 s to 1 s, 1,000/s in the rest of the window``."""
        from_ns, to_ns = self.span(stretch)
        inside = format_rate(stretch.inside, "requests")
        when = f"from {format_duration(from_ns)} to {format_duration(to_ns)}"
        return f"{inside} {when}, {format_count(stretch.outside)}/s in the rest of the window"


def rates_of(record: Record) -> Rates:
    """Return the rates of a record's window; no parts if its load changes."""
    if is_staged(record):
        return Rates(why="the load itself changes (--stages)")
    if record.flow is None:
        return Rates(why="it is not known when answers came")
    skipped_ns = _filling_ns(record)
    rates, part_ns = rates_by_part(record.flow, skipped_ns)
    if len(rates) < PARTS_MIN:
        return Rates(why=_too_few(record.flow, skipped_ns))
    return Rates(tuple(rates), part_ns, skipped_ns)


def rates_by_part(flow: Flow, skipped_ns: float = 0.0) -> tuple[list[float], float]:
    """Return the answers per second in parts of equal length, and that length in ns.

    There are 32 to 39 parts if there are enough answers. The last stretch of the window is left out
    if it does not fill a part.
    """
    skipped = math.ceil(skipped_ns / flow.part_ns)
    whole = flow.whole_ns // flow.part_ns
    counts = list(flow.answered[skipped:whole])
    counts += [0] * (whole - skipped - len(counts))
    wanted = min(PARTS, sum(counts) // ANSWERS_MIN)
    if wanted < PARTS_MIN:
        return [], 0.0
    width = max(1, len(counts) // wanted)
    part_ns = width * flow.part_ns
    starts = range(0, len(counts) - width + 1, width)
    return [sum(counts[at : at + width]) * NS_PER_S / part_ns for at in starts], part_ns


def _at_once(record: Record) -> int:
    """The number of answers that may come together.

    In a closed loop whose slots keep step, it is one for each slot.
    """
    generate = record.plan.generate
    closed = isinstance(record.plan.window.load, Closed)
    return generate.connections * generate.pipeline if closed and record.client is None else 0


def _filling_ns(record: Record) -> float:
    """The time in which no answer can be expected: without a warm-up, that of the first ones."""
    if record.plan.warmup is not None or record.client is not None:
        return 0.0
    return FILLING * (record.service_ns.mean or 0.0)


def _too_few(flow: Flow, skipped_ns: float) -> str:
    """Return why a window has too few parts."""
    least = PARTS_MIN * ANSWERS_MIN
    if sum(flow.answered) < least:
        few = counted(sum(flow.answered), "answer is", "answers are")
        return f"{few} too few to tell; it takes {least}"
    why = f"a window of {format_duration(flow.whole_ns)} is too short to tell"
    if skipped_ns:
        why += f", because no answer is expected in the first {format_duration(skipped_ns)}"
    return why
