"""Whether the CPUs changed their speed, and the rate with it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from samples import flow, good_record
from trueload.record.schema import Check, CpuSpeed, Record

S, MS = 1_000_000_000, 1_000_000
EVERY_NS = 50 * MS
WORK_NS = 14_000
RAW_PARTS = 300
Level = Callable[[float], float]


def even(_: float) -> float:
    return 1


def slow_at_first(at: float) -> float:
    return 0.7 if at < 0.4 else 1


def slow_at_last(at: float) -> float:
    return 0.7 if at >= 0.6 else 1


def looks(
    cpu: int, speed: Level, *, window_ns: int = 10 * S, noise: float = 0.05, seen: int | None = None
) -> CpuSpeed:
    """The samples of a CPU whose speed at each time, from 0 to 1, is ``speed(time)``."""
    chance = random.Random(3)
    count = window_ns // EVERY_NS if seen is None else seen
    work_ns = (
        round(
            WORK_NS / speed((at + 0.5) * EVERY_NS / window_ns) * (1 + abs(chance.gauss(0, noise)))
        )
        for at in range(count)
    )
    return CpuSpeed(cpu=cpu, from_ns=0, every_ns=EVERY_NS, work_ns=tuple(work_ns))


def record_of(
    rate: Level,
    *speeds: CpuSpeed,
    server: float | None = 0.99,
    generator: float = 0.7,
    threads: int = 1,
    spun_s: float | None = None,
) -> Record:
    """A server on CPU 0 and a generator on CPU 1, with these saturations."""
    window_ns = 10 * S
    chance = random.Random(7)
    means = (60 * rate((place + 0.5) / RAW_PARTS) for place in range(RAW_PARTS))
    parts = (max(0, round(mean * (1 + chance.gauss(0, 0.1)))) for mean in means)
    good = good_record()
    assert good.server is not None
    theirs = {"saturation": server, "allowed_cpus": (0,)}
    ours = {
        "allowed_cpus": (1,),
        "saturation": generator,
        "cpu_s": generator * window_ns / S,
        "threads": threads,
        "spun_s": spun_s,
    }
    changes: dict[str, Any] = {
        "flow": flow(*parts, window_ns=window_ns),
        "cpu_speeds": speeds,
        "server": good.server.model_copy(update=theirs),
        "generator": good.generator.model_copy(update=ours),
        "window": good.window.model_copy(update={"window_ns": window_ns}),
    }
    return good_record(**changes)


def checks(record: Record) -> tuple[Check, Check]:
    by_name = {check.name: check for check in record.checks}
    return by_name["cpu-speed"], by_name["steady-state"]


SLOW, STEADY = looks(0, slow_at_first), looks(0, even)


@pytest.mark.parametrize(
    ("record", "of_cpu", "of_server"),
    [
        pytest.param(record_of(even, STEADY), "pass", "pass", id="nothing changes"),
        pytest.param(record_of(even, SLOW), "pass", "pass", id="the CPU alone"),
        pytest.param(record_of(slow_at_first, STEADY), "pass", "warn", id="the rate alone"),
        pytest.param(record_of(slow_at_first, SLOW), "warn", "pass", id="both"),
        pytest.param(
            record_of(slow_at_first, looks(0, slow_at_last)), "pass", "warn", id="at other times"
        ),
        pytest.param(
            record_of(slow_at_last, looks(0, lambda at: 1.1 if at >= 0.6 else 1)),
            *("pass", "warn"),
            id="the other way",
        ),
        pytest.param(
            record_of(slow_at_first, looks(0, lambda at: 0.9 if at < 0.4 else 1)),
            *("pass", "warn"),
            id="far less than the rate",
        ),
        pytest.param(
            record_of(slow_at_first, looks(1, slow_at_first)), "n/a", "warn", id="the other CPU"
        ),
        pytest.param(record_of(slow_at_first), "n/a", "warn", id="nobody looked"),
        pytest.param(
            record_of(slow_at_first, looks(0, slow_at_first, seen=3)),
            "pass",
            "warn",
            id="few looks",
        ),
        pytest.param(
            record_of(slow_at_first, SLOW, server=0.5), "n/a", "warn", id="a server with time left"
        ),
        pytest.param(
            record_of(slow_at_first, SLOW, server=None), "n/a", "warn", id="a server unknown"
        ),
        pytest.param(
            record_of(
                lambda at: 0.3 if at < 0.5 else 1, looks(0, lambda at: 0.5 if at < 0.5 else 1)
            ),
            *("fail", "pass"),
            id="by half",
        ),
    ],
)
def test_a_change_is_the_cpu_s_where_both_changed(
    record: Record, of_cpu: str, of_server: str
) -> None:
    cpu, server = checks(record)
    assert (cpu.status, server.status) == (of_cpu, of_server), (cpu, server)


def test_both_checks_say_what_was_seen() -> None:
    cpu, server = checks(record_of(slow_at_first, SLOW))
    assert "the server's CPU 0 was 30" in cpu.why
    assert "% slower" in cpu.why
    assert server.why.endswith(
        "/s in the rest of the window; the speed of its CPUs changed with it (cpu-speed)"
    )


def test_looks_that_were_interrupted_or_missed_are_left_out() -> None:
    work_ns = list(STEADY.work_ns)
    work_ns[:80:8] = [0] * 10
    work_ns[1:80:2] = [5 * WORK_NS] * 40
    torn = STEADY.model_copy(update={"work_ns": tuple(work_ns)})
    cpu, server = checks(record_of(slow_at_first, torn))
    assert (cpu.status, server.status) == ("pass", "warn")


@pytest.mark.parametrize(
    ("busy", "spun_s", "threads", "status"),
    [
        (0.97, None, 1, "pass"),
        (0.94, None, 1, "warn"),
        (0.97, 0.5, 1, "warn"),
        (0.97, None, 2, "warn"),
    ],
    ids=["busy all the time", "with time to spare", "polling", "one of two threads"],
)
def test_a_generator_that_waited_for_nobody_changed_its_own_speed(
    busy: float, spun_s: float | None, threads: int, status: str
) -> None:
    record = record_of(slow_at_last, STEADY, generator=busy, threads=threads, spun_s=spun_s)
    _, server = checks(record)
    assert server.status == status, server
