"""The check `cpu-speed`: did the server's CPUs change their speed, and its answers with them?

The CPUs of a virtual machine are often hyperthreads of cores whose other threads serve other
machines. What these slow down is no stolen time. The engine does the same short work on each CPU of
the server, 20 times a second (crates/drive/src/speed.rs). Pure.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from statistics import fmean, median, variance

from trueload.record.schema import CpuSpeed, Record
from trueload.units import format_cpu_list, format_share
from trueload.verdict.common import Definition, Finding, graded_beyond, not_applicable
from trueload.verdict.machine import GENERATOR_FULL, SERVER_FULL
from trueload.verdict.rate_change import rates_of
from trueload.verdict.stretches import CHANGE_FAIL, LATER_WARN, Stretch

LOOKS_MIN = 4  # samples in a stretch, and in the rest
INTERRUPTED = 2.0  # medians: another thread of the core takes no more than a third of the speed
STANDARD_ERRORS = 4.0  # the stretch was chosen by its rate, so chance has only one try
# The engine's work needs little memory, so other machines mostly slow it less than a server. In
# logarithms its change was 0.41 to 0.58 of that of Node.js's rate, and 0.66 to 1.4 of nginx's
# (docs/verdicts.md).
OF_RATE_LEAST = 0.4


def change_of_cpus(record: Record, found: Stretch, span_ns: tuple[float, float]) -> float | None:
    """Return the speed of the CPUs in this stretch as a factor of their speed in the rest.

    It concerns a server without time to spare. None if the factor does not explain the rate.
    """
    from_ns, to_ns = span_ns
    looks = [look for each in _of_server(record) for look in _looks(each)]
    inside = [speed for at_ns, speed in looks if from_ns <= at_ns < to_ns]
    rest = [speed for at_ns, speed in looks if not from_ns <= at_ns < to_ns]
    if min(len(inside), len(rest)) < LOOKS_MIN or not found.inside or not found.outside:
        return None
    factor = fmean(inside) / fmean(rest)
    if abs(fmean(inside) - fmean(rest)) < STANDARD_ERRORS * _error(inside, rest):
        return None
    of_rate = math.log(factor) / math.log(found.inside / found.outside)
    return factor if of_rate >= OF_RATE_LEAST else None


def _error(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the standard error of the difference of two means."""
    return math.sqrt(variance(one) / len(one) + variance(other) / len(other))


def _looks(seen: CpuSpeed) -> Iterator[tuple[float, float]]:
    """Yield the time of each sample, in ns from the window's start, and the speed of the CPU.

    The speed is 1 over the time of its work. Samples that were interrupted are left out.
    """
    taken_ns = [work_ns for work_ns in seen.work_ns if work_ns]
    most_ns = INTERRUPTED * median(taken_ns) if taken_ns else 0
    for number, work_ns in enumerate(seen.work_ns):
        if 0 < work_ns <= most_ns:
            yield seen.from_ns + number * seen.every_ns, 1 / work_ns


def _of_server(record: Record) -> list[CpuSpeed]:
    """The server's CPUs, if it had no time to spare and the generator had; else none."""
    cpus = _limiting_cpus(record)
    return [each for each in record.cpu_speeds if each.cpu in cpus]


def _limiting_cpus(record: Record) -> Collection[int]:
    """The numbers of the server's CPUs, if they were the limit; else none."""
    server, generator = record.server, record.generator.saturation
    if server is None or (server.saturation or 0.0) < SERVER_FULL:
        return ()
    return () if generator is None or generator >= GENERATOR_FULL else server.allowed_cpus


def check_cpu_speed(record: Record) -> Finding:
    """Check whether the rate changed with the speed of the server's CPUs."""
    if not record.cpu_speeds:
        return not_applicable("the speed of the CPUs is not known")
    if not _of_server(record):
        return not_applicable("the server's CPUs were not the limit")
    rates = rates_of(record)
    if rates.why:
        return not_applicable(rates.why)
    found = rates.change(record)
    if found is None:
        return Finding("pass", "the rate was the same throughout", 0.0, LATER_WARN)
    cpus = format_cpu_list(_limiting_cpus(record))
    factor = change_of_cpus(record, found, rates.span(found))
    if factor is None:
        return Finding("pass", f"the rate changed, but the speed of CPU {cpus} changed less")
    how = f"{format_share(abs(factor - 1))} {'faster' if factor > 1 else 'slower'}"
    why = f"{rates.text(found)}, and at the same time the server's CPU {cpus} was {how}"
    status, limit = graded_beyond(found.effect, found.limit, CHANGE_FAIL)
    return Finding(status, why, min(found.effect, 1.0), limit)


CPU_SPEED = Definition(
    name="cpu-speed",
    order=165,
    compute=check_cpu_speed,
    of_client="it is not looked at",
    fault="machine",
    meaning=(
        "When the machine's CPUs change their speed during the run, the server's figures"
        " change with them."
    ),
    remedy=(
        "Use a machine whose cores no other virtual machine shares; or measure often and in turns,"
        " as `trueload compare` and suites do."
    ),
)
