"""The check `steady-state`: would another stretch of the window have given the same figure?

How: answers are counted in some 32 parts of the window. If the throughput without some stretch
differs by more than chance explains, the figure depends on when one looks. This finds a slow start,
a slow middle, a pause and a slope, as quarters and steps between any two parts are such stretches.
It is not the server's doing if the CPUs themselves changed their speed by as much, or if the
generator had no time to spare and waited for nobody. Pure.
"""

from __future__ import annotations

from trueload.record.schema import Record
from trueload.units import NS_PER_S, format_rate
from trueload.verdict.common import Definition, Finding, Moves, graded_beyond, not_applicable
from trueload.verdict.cpu_speed import change_of_cpus
from trueload.verdict.machine import GENERATOR_FULL
from trueload.verdict.rate_change import rates_of
from trueload.verdict.stretches import CHANGE_FAIL, START_WARN


def check_steady_state(record: Record) -> Finding:
    """Grade the stretch of the window that differs from the rest, by its effect on the whole."""
    rates = rates_of(record)
    if rates.why:
        return not_applicable(rates.why)
    found = rates.change(record)
    if found is None:
        return Finding("pass", f"{format_rate(rates.mean, 'requests')} throughout", 0.0, START_WARN)
    effect, why = min(found.effect, 1.0), rates.text(found)
    if _waited_for_nobody(record):
        own = f"{why}: the generator was busy all the time, so this is its own speed"
        return Finding("pass", own, effect, found.limit)
    if change_of_cpus(record, found, rates.span(found)) is not None:
        return Finding(
            "pass", f"{why}; the speed of its CPUs changed with it (cpu-speed)", effect, found.limit
        )
    status, limit = graded_beyond(found.effect, found.limit, CHANGE_FAIL)
    return Finding(status, why, effect, limit)


def _waited_for_nobody(record: Record) -> bool:
    """Whether all threads of the generator were busy.

    A server that slowed down can have changed the mean only by their spare time, and that is less
    than the limits.
    """
    used = record.generator
    threads_ns = used.threads * record.window.window_ns
    if record.client is not None or used.cpu_s is None or threads_ns <= 0:
        return False
    return (used.cpu_s - (used.spun_s or 0.0)) * NS_PER_S >= GENERATOR_FULL * threads_ns


STEADY_STATE = Definition(
    name="steady-state",
    order=130,
    compute=check_steady_state,
    fault="subject",
    moves=Moves(by_delays=True),
    meaning="If the rate still changes during the window, the figure depends on when you measure.",
    remedy=(
        "Use a longer --warmup; if it still changes, look at the server's memory and the machine."
    ),
)
