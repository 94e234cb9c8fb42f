"""One run over several engine processes: the load is divided and added up exactly.

A lost host ends the run and everything that belonged to it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil
import pytest
from counting import Counting
from harness import Server, put_script
from samples import check_of
from trueload.engines.fleet import Fleet
from trueload.engines.pauses import Pauses
from trueload.errors import UserError
from trueload.metrics.tally import Tally
from trueload.places import EngineHost
from trueload.places.local import LocalChannel, LocalPlace
from trueload.protocol.engine_options import EngineOptions
from trueload.protocol.plan import Closed, Duration, LoadPlan, Open, Requests, Stage
from trueload.protocol.tick import Tick
from trueload.request.traffic import Traffic
from trueload.request.values import OriginSpec, Request, TargetSpec
from trueload.stats import decode_histogram
from trueload.trial.run import run_trial
from trueload.trial.spec import Load, Progress, TrialSpec

MS = 1_000_000
SCRIPTED = Path(__file__).resolve().parent / "scripted_engine.py"


class Named(LocalPlace):
    """This machine as a place with another name."""

    def __init__(self, name: str) -> None:
        self.name = name


class Odd(Named):
    """A host whose engine follows a script."""

    def __init__(self, script: str) -> None:
        super().__init__("odd")
        self._script = script

    def open(self, argv: Sequence[str]) -> LocalChannel:
        command = (f"SCRIPTED_ENGINE={self._script}", sys.executable, "-S", str(SCRIPTED))
        return super().open(["env", *command])


def hosts(count: int) -> tuple[EngineHost, ...]:
    """Hosts that are all this machine."""
    return tuple(EngineHost(Named(f"host{number}")) for number in range(count))


def spec_of(server: Server) -> TrialSpec:
    """A thousand requests over eleven connections."""
    address = server.url.split("/")[2]
    return TrialSpec(
        url=server.url,
        addresses=(address,),
        traffic=Traffic(request=Request(host=address)),
        load=Load(connections=11, stop=Requests(count=1_000), warmup=Duration(ns=50 * MS)),
        engine=EngineOptions(timeout_ns=5_000 * MS),
    )


@pytest.fixture
def spec(server: Server) -> TrialSpec:
    return replace(spec_of(server), hosts=hosts(3))


def engines() -> set[int]:
    """The live engines that this process has started."""
    return {
        child.pid
        for child in psutil.Process().children(recursive=True)
        if child.name() == "trueload-engine" and child.status() != psutil.STATUS_ZOMBIE
    }


CONSTANT = Open(
    stages=(Stage.model_validate({"ns": 400 * MS, "from": 1_000, "to": 1_000}),),
    arrivals="constant",
    seed=1,
)
LOADS: list[tuple[str, LoadPlan, Duration | Requests, int | None]] = [
    ("closed, by requests", Closed(), Requests(count=1_001), 1_001),
    ("closed, for a time", Closed(), Duration(ns=200 * MS), None),
    ("open", CONSTANT, Duration(ns=400 * MS), 400),
]


@pytest.mark.parametrize(("why", "load", "stop", "total"), LOADS)
def test_the_load_is_divided_and_added_up_exactly(
    spec: TrialSpec,
    why: str,
    load: LoadPlan,
    stop: Duration | Requests,
    total: int | None,
) -> None:
    record = run_trial(replace(spec, load=replace(spec.load, pacing=load, stop=stop)))
    assert record.trouble is None, why
    assert [host.connections for host in record.hosts] == [4, 4, 3]
    assert [host.place for host in record.hosts] == ["host0", "host1", "host2"]
    assert record.connections.established == 11
    assert total is None or record.counts.scheduled == total
    assert sum(host.ok or 0 for host in record.hosts) == record.counts.ok
    for host in record.hosts:
        assert host.counts is not None
        assert sum(second.ok for second in host.series) == host.ok == host.counts.ok
        assert decode_histogram(host.latency).total == decode_histogram(host.service).total
        assert (host.requested, host.connect_failed, host.lost) == (host.connections, {}, None)
        assert host.ok_per_s
        assert host.client_ns is not None
        assert host.client_ns.send is not None
        assert host.generator.cpu_s is not None
    assert decode_histogram(record.histograms.latency).total == record.counts.ok
    assert sum(second.ok for second in record.series) == record.counts.ok
    assert record.latency_ns.count == record.counts.ok
    assert min(host.start_ns or 0 for host in record.hosts) == 0
    assert all(host.clock_bound_ns for host in record.hosts)
    assert all(host.environment.kernel.startswith("Linux ") for host in record.hosts)
    assert check_of(record, "audit").status == "pass", check_of(record, "audit")


def test_arrivals_by_chance_are_those_of_one_engine(spec: TrialSpec) -> None:
    load = CONSTANT.model_copy(update={"arrivals": "poisson"})
    scheduled = {
        run_trial(
            replace(
                spec,
                load=replace(spec.load, pacing=load, stop=Duration(ns=400 * MS), warmup=None),
                hosts=where,
            )
        ).counts.scheduled
        for where in ((), hosts(2), hosts(3))
    }
    assert len(scheduled) == 1


def test_no_two_engines_send_the_same_number(spec: TrialSpec) -> None:
    with Counting() as counting:
        request = Request(host=counting.authority, path="/{counter}")
        record = run_trial(
            replace(
                spec,
                addresses=(counting.authority,),
                traffic=Traffic(request=request),
                load=replace(spec.load, warmup=None, stop=Requests(count=300)),
            )
        )
    assert record.counts.ok == 300
    assert len({asked.path for asked in counting.asked}) == 300


def test_origins_have_the_same_parts_over_several_engines(spec: TrialSpec) -> None:
    with Counting() as one, Counting() as other:
        targets = tuple(
            TargetSpec(
                url=server.url,
                request=Request(host=server.authority, path="/{counter}"),
                weight=weight,
                origin=origin,
            )
            for origin, (server, weight) in enumerate(((one, 3), (other, 1)))
        )
        origins = tuple(
            OriginSpec(url=server.url, addresses=(server.authority,)) for server in (one, other)
        )
        record = run_trial(
            replace(
                spec,
                addresses=(one.authority, other.authority),
                traffic=Traffic(targets=targets, origins=origins),
                load=replace(spec.load, connections=12, warmup=None, stop=Requests(count=400)),
            )
        )
        asked = [len(server.asked) for server in (one, other)]
        numbers = {each.path for server in (one, other) for each in server.asked}
    assert asked == [300, 100]
    assert len(numbers) == 400
    assert record.origins is not None
    assert [origin.established for origin in record.origins] == [9, 3]
    over_time = [sum(second.ok for second in track.series) for track in record.tracks]
    assert over_time == [300, 100], "each target has its own course, whoever sent it"
    assert [host.connections for host in record.hosts] == [4, 4, 4]


def test_one_live_view_has_what_all_did(spec: TrialSpec) -> None:
    seen: list[Tick] = []

    def note(progress: Progress) -> None:
        if progress.phase == "window" and progress.tick is not None:
            seen.append(progress.tick)

    record = run_trial(
        replace(spec, load=replace(spec.load, stop=Duration(ns=1_500 * MS), warmup=None)),
        on_progress=note,
    )
    totals = [tick.counts.ok for tick in seen]
    assert totals == sorted(totals)
    assert totals[-1] <= record.counts.ok
    assert sum(sum(tick.latency.values()) for tick in seen) <= record.counts.ok


def test_metrics_say_of_each_host_how_busy_it_is_and_of_all_what_they_did(spec: TrialSpec) -> None:
    tallies = [Tally.of(spec, (), (), 0)]
    record = run_trial(
        replace(spec, load=replace(spec.load, stop=Duration(ns=1_500 * MS), warmup=None)),
        on_progress=lambda progress: tallies.append(tallies[-1].receive(progress)),
    )
    names = {"host0", "host1", "host2"}
    assert any(set(tally.saturation) == names for tally in tallies), "while it goes on"
    outcome = tallies[-1].outcome
    assert outcome is not None
    assert set(outcome.saturation) == names
    window = tallies[-1].phases["window"]
    assert window.totals["ok", ""] == window.latency.count == record.counts.ok


@dataclass
class Strike:
    """Sends a signal to engines of the run once its window is seen. ``pids`` are theirs."""

    how: signal.Signals = signal.SIGKILL
    count: int = 1
    before: set[int] = field(default_factory=lambda: engines())
    pids: list[int] = field(default_factory=list)

    def __call__(self, progress: Progress) -> None:
        if progress.phase == "window" and progress.tick is not None and not self.pids:
            self.pids += sorted(engines() - self.before)[: self.count]
            for pid in self.pids:
                os.kill(pid, self.how)

    def check_left(self) -> None:
        """Check that engines were struck, and none is left."""
        assert len(self.pids) == self.count, "the window was seen"
        left = engines() - self.before
        for pid in left & set(self.pids):
            os.kill(pid, signal.SIGKILL)
        assert not left, "no engine remains"


# Longer than any test may take.
ENDLESS = Duration(ns=600_000 * MS)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (signal.SIGKILL, "the engine died: signal 9 (SIGKILL)"),
        (signal.SIGSTOP, "nothing was heard from it for "),
        (signal.SIGTERM, "the engine ended by itself: signalled"),
    ],
)
def test_a_host_that_is_lost_ends_the_run_and_leaves_nothing(
    spec: TrialSpec, how: signal.Signals, words: str
) -> None:
    strike = Strike(how)
    endless = replace(spec.load, stop=ENDLESS)
    record = run_trial(replace(spec, load=endless), on_progress=strike)
    strike.check_left()
    assert record.trouble is not None
    assert record.trouble.kind == "lost"
    assert record.trouble.what.startswith("host lost: host")
    assert words in record.trouble.what
    assert "its last tick came" in record.trouble.what
    assert (record.verdict, record.partial) == ("invalid", True)
    assert record.throughput.ok_per_s is None, "the rate of a part of the load is no result"
    assert record.latency_ns.count > 0, "what had come until then is kept"
    assert sum(second.ok for second in record.series) == record.counts.ok > 0
    assert [host.place for host in record.hosts] == ["host0", "host1", "host2"]
    assert [host.lost is not None for host in record.hosts].count(True) == 1
    assert all(host.ok and host.latency_ns and host.latency_ns.count for host in record.hosts)
    assert all(host.environment.kernel.startswith("Linux ") for host in record.hosts)
    assert check_of(record, "hosts-lost").status == "fail"


def test_a_run_goes_on_with_the_others_and_nobody_sends_the_lost_part(spec: TrialSpec) -> None:
    strike = Strike()
    load = CONSTANT.model_copy(
        update={"stages": (Stage.model_validate({"ns": 900 * MS, "from": 1_000, "to": 1_000}),)}
    )
    went_on = replace(spec.load, connections=12, pacing=load, stop=Duration(ns=900 * MS))
    tried = replace(spec, load=went_on, allow_lost=1, hosts=hosts(3))
    record = run_trial(tried, on_progress=strike)
    strike.check_left()
    assert record.trouble is None
    assert (record.partial, record.verdict in ("suspect", "invalid")) == (True, True)
    assert record.counts.scheduled == 600, "two thirds of the arrivals, and no more"
    assert record.connections.requested == 8
    (lost,) = (host for host in record.hosts if host.lost is not None)
    assert "signal 9 (SIGKILL)" in str(lost.lost)
    stayed = [host for host in record.hosts if host.lost is None]
    assert sum(host.ok or 0 for host in stayed) == record.counts.ok == record.latency_ns.count
    assert sum(second.ok for second in record.series) == record.counts.ok
    assert check_of(record, "hosts-lost").status == "warn"
    assert "8 of 12 connections" in check_of(record, "hosts-lost").why
    assert check_of(record, "audit").status == "pass", check_of(record, "audit")


def test_one_more_lost_host_than_is_allowed_ends_the_run(spec: TrialSpec) -> None:
    strike = Strike(count=2)
    endless = replace(spec.load, stop=ENDLESS)
    record = run_trial(replace(spec, load=endless, allow_lost=1), on_progress=strike)
    strike.check_left()
    assert record.trouble is not None
    assert record.trouble.kind == "lost"
    assert [host.lost is not None for host in record.hosts].count(True) == 2


def test_an_engine_that_cannot_be_started_names_its_host_and_starts_none(
    spec: TrialSpec, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = engines()
    monkeypatch.setenv("TRUELOAD_ENGINE", str(put_script(tmp_path / "engine", "exit 7")))
    record = run_trial(spec)
    assert record.trouble is not None
    assert "exit code 7" in record.trouble.what
    assert "host" in record.trouble.what
    assert record.counts.issued == 0
    assert not (engines() - before)


@pytest.mark.parametrize(
    ("script", "kind", "words"),
    [
        (
            "run_out_of_memory",
            "memory",
            "host lost: odd: the engine ran out of memory; its last tick",
        ),
        ("talk_nonsense", "lost", "not a message"),
        ("close_stdout", "lost", "closed its output"),
        ("complain_and_go_on", "engine", "odd: thread 2 has ended"),
        ("die_at_once", "died", "odd: the engine died: exit code 7; its last words: out of memory"),
        ("never_be_ready", "start", "odd: the engine"),
    ],
)
def test_one_engine_that_errs_leaves_no_result_of_the_others(
    spec: TrialSpec, script: str, kind: str, words: str
) -> None:
    before = engines()
    three = (*hosts(2), EngineHost(Odd(script)))
    record = run_trial(
        replace(
            spec, load=replace(spec.load, stop=Duration(ns=30_000 * MS), warmup=None), hosts=three
        )
    )
    assert record.trouble is not None
    assert record.trouble.kind == kind, record.trouble
    assert words in record.trouble.what
    assert (record.verdict, record.partial) == ("invalid", True)
    assert record.throughput.ok_per_s is None
    assert not (engines() - before), "no engine remains"


def test_what_cannot_be_added_up_leaves_no_rate(spec: TrialSpec) -> None:
    two = (*hosts(1), EngineHost(Odd("measure_nonsense")))
    record = run_trial(
        replace(spec, load=replace(spec.load, stop=Duration(ns=100 * MS), warmup=None), hosts=two)
    )
    assert record.trouble is not None
    assert record.trouble.kind == "junk"
    assert "not an HdrHistogram" in record.trouble.what
    assert (record.verdict, record.throughput.ok_per_s) == ("invalid", None)


def test_a_plan_that_one_engine_refuses_is_the_users_to_mend(spec: TrialSpec) -> None:
    three = (*hosts(2), EngineHost(Odd("refuse")))
    with pytest.raises(UserError, match="refused the plan: odd: field `connections`: too many"):
        run_trial(replace(spec, hosts=three))


def test_an_engine_that_answers_and_does_nothing_is_lost(spec: TrialSpec) -> None:
    three = (*hosts(2), EngineHost(Odd("have_no_connection")))
    record = run_trial(replace(spec, load=replace(spec.load, warmup=None), hosts=three))
    assert record.trouble is not None
    assert record.trouble.what.startswith("host lost: odd: its engine has reported no work")


def test_fewer_connections_than_hosts_are_refused(spec: TrialSpec) -> None:
    before = engines()
    with pytest.raises(UserError, match="2 connections are too few for 3 hosts"):
        run_trial(replace(spec, load=replace(spec.load, connections=2)))
    assert not (engines() - before)


def test_a_fleet_that_is_closed_leaves_nothing() -> None:
    before = engines()
    with Pauses() as pauses, Fleet.start(hosts(3), pauses):
        assert len(engines() - before) == 3
    assert not (engines() - before)
