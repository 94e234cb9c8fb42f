"""A run over fifty hosts that stand-ins play in this process (bench/standin.py).

Every sum is exact, every clock offset is found, and a host that falls silent is named.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import pytest
from harness import ROOT
from samples import counts, histogram
from trueload.places import Channel, EngineHost, Sink
from trueload.places.lines import Lines
from trueload.protocol.plan import (
    Connections,
    Duration,
    EngineOptions,
    Generator,
    Hello,
    Histograms,
    Measurement,
    PhaseDone,
    Ready,
    Second,
    Slots,
    Tick,
)
from trueload.record.schema import Record
from trueload.request.values import Request
from trueload.stats import decode_histogram
from trueload.trial.run import run_trial
from trueload.trial.spec import Load, TrialSpec

HOSTS, VARIANTS = 50, 3
NS_PER_S, MS = 1_000_000_000, 1_000_000
TICK_NS = 50 * MS
REPLIES = 3  # answers in a tick


@pytest.fixture(scope="module")
def bench() -> Any:
    """The modules of bench/, which is not a package."""
    sys.path.insert(0, str(ROOT / "bench"))
    try:
        return {name: import_module(name) for name in ("recording", "standin")}
    finally:
        sys.path.remove(str(ROOT / "bench"))


class Played(Channel):
    """One stand-in, as a channel."""

    @property
    def pid(self) -> int:
        return 0

    def __init__(self, machine: Any, stage: Stage) -> None:
        self.machine = machine
        self.lines = Lines()
        self._stage = stage

    def send(self, line: bytes, timeout_s: float) -> None:
        with self._stage.changed:
            for each in line.splitlines():
                self.machine.handle_line(time.monotonic_ns(), each)
            self._stage.changed.notify()

    def read_line(self, timeout_s: float) -> bytes | None:
        return self.lines.read(timeout_s)

    def divert(self, sink: Sink) -> None:
        self.lines.divert(sink)

    def close_input(self) -> None:
        self.lines.stop()

    def wait(self, timeout_s: float) -> int | None:
        return 0

    def kill(self) -> None:
        self.lines.stop()

    def log_tail(self) -> str:
        return ""


class Stage:
    """One thread that sends the lines of all stand-ins, each when it is due."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self._played: list[Played] = []
        self._over = False
        threading.Thread(target=self._play, daemon=True).start()

    def start(self, machine: Any) -> Played:
        with self.changed:
            machine.handle_start(time.monotonic_ns())
            self._played.append(Played(machine, self))
            self.changed.notify()
            return self._played[-1]

    def end(self) -> None:
        with self.changed:
            self._over = True
            self.changed.notify()

    def _play(self) -> None:
        with self.changed:
            while not self._over:
                for each in self._played:
                    while (line := each.machine.poll_output(time.monotonic_ns())) is not None:
                        each.lines.add(line)
                due = [each.machine.poll_timeout_ns() for each in self._played]
                next_ns = min((each for each in due if each is not None), default=None)
                left_ns = None if next_ns is None else max(0, next_ns - time.monotonic_ns())
                self.changed.wait(None if left_ns is None else left_ns / NS_PER_S)


@dataclass
class PlayedPlace:
    """A place where a stand-in can be started."""

    name: str
    machine: Any
    stage: Stage = field(repr=False)

    def open(self, argv: Sequence[str]) -> Played:
        return self.stage.start(self.machine)


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    made.end()


def tick(number: int) -> Tick:
    ok = REPLIES * (number + 1)
    return Tick(
        type="tick",
        at_ns=TICK_NS * (number + 1),
        id="window",
        counts=counts(scheduled=ok, issued=ok, ok=ok, statuses={"200": ok}),
        latency={100 + number: REPLIES},
        service={},
        open=1,
        bytes_in=100 * ok,
        bytes_out=50 * ok,
        busiest_ns=MS,
    )


def measurement(ticks: Sequence[Tick]) -> Measurement:
    last = ticks[-1]
    ok, window_ns = last.counts.ok, last.at_ns
    latency = histogram(*((10_000 + 997 * number, REPLIES) for number in range(len(ticks))))
    return Measurement(
        started_ns=0,
        window_ns=window_ns,
        drain_ns=0,
        partial=False,
        counts=last.counts,
        bytes_in=last.bytes_in,
        bytes_out=last.bytes_out,
        histograms=Histograms(
            latency=latency, service=latency, connect=None, first_byte=latency, total=None
        ),
        connections=Connections(
            requested=2, established=2, reconnects=0, down=0, outage_ns=0, outages=0, family="ipv4"
        ),
        slots=Slots(
            asked=2,
            never_answered=0,
            answers_sum=ok,
            answers_sum_squares=ok * ok // 2,
            answers_min=ok // 2,
            answers_max=ok - ok // 2,
            long_waits_ns=(),
            permitted_ns=2 * window_ns,
        ),
        series=(Second(t_s=0, ok=ok, failed=0, latency={100: ok}),),
        generator=Generator(
            driver="epoll", threads=1, cpus=(), cpu_ns=MS, saturation=0.1, peak_rss_bytes=1
        ),
    )


def recorded(bench: Any, ticks: int) -> Any:
    """The recording of an engine's window with this many ticks."""
    sent = [tick(number) for number in range(ticks)]
    return bench["recording"].Recording(
        hello=Hello(type="hello", protocol=1, version="stand-in", pid=1),
        ready=Ready(
            type="ready",
            at_ns=0,
            listen=None,
            requested=2,
            established=2,
            failed={},
            address="192.0.2.1:80",
        ),
        ticks=tuple(sent),
        done=PhaseDone(type="phase_done", id="window", measurement=measurement(sent)),
    )


def ahead_ns(number: int) -> int:
    """The lead of a host's clock; clocks differ by minutes."""
    return (number - HOSTS // 2) * 60 * NS_PER_S


def run_over(
    bench: Any,
    stage: Stage,
    recording: Any,
    silent: int | None = None,
    *,
    news: list[str] | None = None,
) -> Record:
    """Run a trial that sends no packet; its address is reserved for documentation (RFC 5737)."""
    standin, scaled = bench["standin"], bench["recording"].scaled
    lines = [standin.lines_of(scaled(recording, times + 1)) for times in range(VARIANTS)]
    hosts = []
    for number in range(HOSTS):
        nature = standin.Nature(
            ahead_ns=ahead_ns(number), back_ns=number * 1_000, ticks=2 if number == silent else None
        )
        machine = standin.StandIn(lines[number % VARIANTS], nature)
        hosts.append(EngineHost(PlayedPlace(f"host{number}", machine, stage)))
    spec = TrialSpec(
        url="http://192.0.2.1/",
        addresses=("192.0.2.1:80",),
        request=Request(host="192.0.2.1"),
        load=Load(
            connections=2 * sum(number % VARIANTS + 1 for number in range(HOSTS)),
            stop=Duration(ns=recording.measurement.window_ns),
            warmup=None,
        ),
        engine=EngineOptions(timeout_ns=10 * NS_PER_S),
        hosts=tuple(hosts),
    )
    told = [] if news is None else news
    return run_trial(spec, on_progress=lambda progress: told.extend(progress.news))


def test_what_fifty_hosts_say_is_added_up_exactly(
    bench: Any, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording, news = recorded(bench, ticks=10), list[str]()
    monkeypatch.setattr("trueload.trial.run.MANY_HOSTS", HOSTS)
    record = run_over(bench, stage, recording, news=news)
    assert record.trouble is None
    assert news == ["adding up what 50 hosts have reported"]
    shares = [number % VARIANTS + 1 for number in range(HOSTS)]
    times, one = sum(shares), recording.measurement
    assert record.connections.established == 2 * times
    assert record.counts == counts(
        scheduled=30 * times, issued=30 * times, ok=30 * times, statuses={"200": 30 * times}
    )
    assert [host.ok for host in record.hosts] == [30 * share for share in shares]
    whole, part = (decode_histogram(each.histograms.latency) for each in (record, one))
    assert (whole.lows, whole.highs) == (part.lows, part.highs)
    assert whole.counts == tuple(count * times for count in part.counts)
    assert [(second.t_s, second.ok) for second in record.series] == [(0, 30 * times)]
    assert record.series[0].latency == {100: 30 * times}
    for number, host in enumerate(record.hosts):
        assert host.place == f"host{number}"
        assert abs((host.clock_offset_ns or 0) - ahead_ns(number)) <= (host.clock_bound_ns or 0)


def test_of_fifty_hosts_the_one_that_falls_silent_is_named(bench: Any, stage: Stage) -> None:
    record = run_over(bench, stage, recorded(bench, ticks=200), silent=7)
    assert record.trouble is not None
    assert record.trouble.kind == "lost"
    assert record.trouble.what.startswith("host lost: host7: nothing was heard of it for ")
    assert "its last tick came" in record.trouble.what
    assert record.throughput.ok_per_s is None
