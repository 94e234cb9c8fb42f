"""Making a record from a trial's observations."""

from __future__ import annotations

from dataclasses import replace

import pytest
from samples import good_record, server_tree
from trueload.assemble.observation import HostSample, Observation
from trueload.assemble.trial import make_record
from trueload.machine.accounting import CpuTimes, MachineSample
from trueload.record.schema import Record

MS = 1_000_000


def sample(at_ms: float, cpu_ms: float) -> HostSample:
    """A server of one process that has used ``cpu_ms``; the rest of the one CPU was stolen."""
    tree = server_tree(int(at_ms * MS), cpu_ns=int(cpu_ms * MS))
    stolen_ns = int((at_ms - cpu_ms) * MS)
    times = CpuTimes(idle_ns=0, stolen_ns=stolen_ns, programs_ns=tree.at_ns)
    return HostSample(machine=MachineSample(tree.at_ns, {0: times}), server=tree)


def made(window_ms: int, from_ms: float, to_ms: float) -> Record:
    """The record of a window whose server was sampled at these times."""
    return made_of(window_ms, sample(from_ms, 100.0), sample(to_ms, 400.0))


def made_of(window_ms: int, before: HostSample, after: HostSample) -> Record:
    """The record of a window with these samples before and after it."""
    record = good_record()
    seen = Observation(
        id="",
        started_at="",
        url="",
        generate=record.plan.generate,
        warmup=None,
        window=record.plan.window,
        environment=record.environment,
        server_source="found",
        earliest=sample(-1000, 0.0),
        before=before,
        after=after,
    )
    log = seen.phase(record.plan.window.id)
    log.started_ns, log.stopped_ns = 0, window_ms * MS
    return make_record(seen)


def test_what_a_server_used_that_died_in_the_window_is_not_known() -> None:
    last = sample(2000, 400.0)
    assert last.server is not None
    gone = replace(last, server=replace(last.server, processes={}))
    assert made_of(2000, sample(0, 100.0), last).server is not None
    assert made_of(2000, sample(0, 100.0), gone).server is None


@pytest.mark.parametrize(
    ("window_ms", "from_ms", "to_ms", "known"),
    [
        (2000, -1, 2001, True),
        (2000, 150, 2000, True),
        (2000, 250, 2000, False),
        (2000, 1999, 2000, False),
        (2000, 1000, 2500, False),
        (300, 99, 300, True),
        (300, 150, 300, False),
    ],
)
def test_what_a_server_used_is_known_where_its_samples_saw_the_window(
    window_ms: int, from_ms: float, to_ms: float, *, known: bool
) -> None:
    record = made(window_ms, from_ms, to_ms)
    assert (record.server is not None) == known
    if record.server is not None:
        assert record.server.cpu_s == pytest.approx(0.3)


def test_a_machine_that_was_not_seen_in_the_window_is_told_from_its_warm_up_on() -> None:
    seen, unseen = made(2000, 0, 2000), made(2000, 1900, 2000)
    # The server used 300 ms of the window's 2 s, and 400 ms of the 3 s with the warm-up.
    assert seen.window.stolen_share == pytest.approx(0.85)
    assert unseen.window.stolen_share == pytest.approx(2.6 / 3)
