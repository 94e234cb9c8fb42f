"""One trial against an engine that misbehaves: there is always a record, and always an end."""

from __future__ import annotations

import dataclasses
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from samples import check_of
from trueload.assemble.unfinished import charge
from trueload.engines import engine as engine_module
from trueload.errors import UserError
from trueload.machine.accounting import ProcessSample, TreeSample
from trueload.places import lines
from trueload.protocol.engine_options import EngineOptions
from trueload.protocol.plan import Duration, Requests
from trueload.record.schema import CoreLatency, Record
from trueload.request.traffic import Traffic
from trueload.request.values import Request
from trueload.trial import run as trial_module
from trueload.trial.plan import make_plan
from trueload.trial.run import run_trial
from trueload.trial.spec import Load, Progress, TrialSpec
from waiting import be_late

SCRIPTED = Path(__file__).resolve().parents[1] / "scripted_engine.py"
SPEC = TrialSpec(
    url="http://127.0.0.1:9/",
    addresses=("127.0.0.1:9",),
    traffic=Traffic(request=Request(host="127.0.0.1:9")),
    load=Load(connections=4, stop=Duration(ns=2_000_000_000), warmup=None),
    engine=EngineOptions(timeout_ns=100_000_000),
)


class PinnedTo:
    """A server of one process that may use these CPUs and uses no CPU time."""

    def __init__(self, cpus: set[int]) -> None:
        self._cpus = frozenset(cpus)

    def sample(self) -> TreeSample:
        """Return a sample in which it has used nothing."""
        one = ProcessSample(4242, 1, 1, 0, 0, 0, 0, 0, 1, {}, self._cpus)
        return TreeSample(time.monotonic_ns(), {one.identity: one}, None)


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Use the scripted engine in the engine's place."""
    binary = tmp_path / "engine"
    binary.write_text(f"#!/bin/sh\nexec {sys.executable} -S {SCRIPTED}\n")
    binary.chmod(0o755)
    monkeypatch.setenv("TRUELOAD_ENGINE", str(binary))
    return binary


def play(
    monkeypatch: pytest.MonkeyPatch, script: str, spec: TrialSpec = SPEC, **options: Any
) -> Record:
    monkeypatch.setenv("SCRIPTED_ENGINE", script)
    return run_trial(spec, **options)


@pytest.mark.parametrize(
    ("script", "kind", "what"),
    [
        ("die_in_the_window", "died", "signal 9 (SIGKILL), perhaps from the kernel, because mem"),
        ("run_out_of_memory", "memory", "the engine ran out of memory in the window phase"),
        ("abort_in_the_window", "died", "signal 6 (SIGABRT); its last words: memory is fine"),
        ("fall_silent", "silent", "said nothing"),
        ("talk_nonsense", "junk", "not a message"),
        ("measure_nonsense", "junk", "not an HdrHistogram"),
        ("warm_up_with_nonsense", "junk", "not an HdrHistogram"),
        ("talk_without_end", "junk", "it has written a line of more than 1 MiB"),
        ("close_stdout", "died", "closed its output"),
        ("end_by_itself", "engine", "ended by itself: signalled"),
        ("complain_and_go_on", "engine", "thread 2 has ended"),
    ],
)
@pytest.mark.usefixtures("scripted")
def test_a_record_is_made_from_the_last_ticks(
    monkeypatch: pytest.MonkeyPatch, script: str, kind: str, what: str
) -> None:
    if kind == "silent":
        monkeypatch.setattr(trial_module, "SILENCE_S", 1.0)
    monkeypatch.setattr(lines, "LINE_BYTES_MAX", 2**20)
    record = play(monkeypatch, script)
    assert record.trouble is not None
    assert record.trouble.kind == kind
    assert what in record.trouble.what
    assert record.trouble.what.isprintable()
    assert record.partial
    assert record.verdict == "invalid"
    assert check_of(record, "audit").status == "fail"
    assert check_of(record, "connections").status == "n/a"
    counts = record.counts
    assert (counts.issued, counts.ok, counts.failed, counts.cancelled) == (100, 90, {"reset": 5}, 5)
    assert record.window.window_ns == 1_200_000_000
    assert record.throughput.ok_per_s == pytest.approx(75)
    assert record.latency_ns.count == 90
    assert [second.ok for second in record.series] == [45, 45]
    assert record.slots is None
    assert record.generator.saturation is None


@pytest.mark.parametrize(
    ("warmup", "looks"),
    [
        (Duration(ns=2_000_000_000), 1),
        (Duration(ns=1_000_000_000), 1),
        (Duration(ns=300_000_000), 0),
        (Requests(count=20_000), 0),
    ],
)
@pytest.mark.usefixtures("scripted")
def test_a_warm_up_that_may_be_short_is_not_used_to_look_for_backends(
    monkeypatch: pytest.MonkeyPatch, warmup: Duration | Requests, looks: int
) -> None:
    looked: list[object] = []

    def look(pids: object, without: object) -> set[int]:
        looked.append(pids)
        return set()

    monkeypatch.setattr("trueload.trial.observer.backends", look)
    spec = dataclasses.replace(SPEC, load=dataclasses.replace(SPEC.load, warmup=warmup))
    record = play(monkeypatch, "die_in_the_window", spec)
    assert record.trouble is not None
    assert len(looked) == looks


BESIDE = dataclasses.replace(
    SPEC, engine=EngineOptions(cpus=(1,)).over(SPEC.engine), server=PinnedTo({0})
)
"""A server on the other CPU."""


@pytest.mark.parametrize(
    ("script", "spec", "core_latency"),
    [
        ("measure", BESIDE, CoreLatency(cpus=(1, 0), before_ns=90.0, after_ns=400.0)),
        (
            "fall_silent_at_the_end",
            BESIDE,
            CoreLatency(cpus=(1, 0), before_ns=90.0, after_ns=None),
        ),
        ("measure", SPEC, None),
        ("measure", dataclasses.replace(BESIDE, server=PinnedTo({1})), None),
        ("measure", dataclasses.replace(BESIDE, addresses=("192.0.2.1:9",)), None),
    ],
    ids=["moved", "not answered", "no server", "one CPU", "another machine"],
)
@pytest.mark.usefixtures("scripted")
def test_how_far_apart_the_cpus_are_is_looked_at_on_both_sides_of_the_window(
    monkeypatch: pytest.MonkeyPatch, script: str, spec: TrialSpec, core_latency: CoreLatency | None
) -> None:
    monkeypatch.setattr(engine_module, "ANSWER_S", 0.5)
    record = play(monkeypatch, script, spec)
    assert record.trouble is None
    assert record.cpu_distance == core_latency


@pytest.mark.usefixtures("scripted")
def test_a_trial_ends_in_time_though_its_engine_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_module, "SLACK_S", 0.2)
    spec = dataclasses.replace(
        SPEC, load=dataclasses.replace(SPEC.load, stop=Duration(ns=100_000_000))
    )
    record = play(monkeypatch, "tick_for_ever", spec)
    assert record.trouble is not None
    assert record.trouble.kind == "late"


@pytest.mark.usefixtures("scripted")
def test_what_had_come_while_the_front_was_kept_from_hearing_it_is_not_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trial_module, "SLACK_S", 0.2)
    monkeypatch.setattr(trial_module, "SILENCE_S", 1.0)
    spec = dataclasses.replace(
        SPEC, load=dataclasses.replace(SPEC.load, stop=Duration(ns=100_000_000))
    )
    ticks: list[Progress] = []

    def dawdle(progress: Progress) -> None:
        if progress.tick is not None:
            ticks.append(progress)
            if len(ticks) == 1:
                be_late(2.0)

    record = play(monkeypatch, "end_the_window", spec, on_progress=dawdle)
    assert len(ticks) == 2
    assert record.trouble is None


@pytest.mark.parametrize(
    ("script", "kind", "what"),
    [
        ("die_at_once", "died", "exit code 7; its last words: out of memory"),
        (
            "run_out_of_memory_at_once",
            "memory",
            "the engine ran out of memory in the connect phase",
        ),
        ("stay_silent", "start", "said nothing for 0.5 s"),
        ("never_be_ready", "silent", "did not report in time that its connections are open"),
    ],
)
@pytest.mark.usefixtures("scripted")
def test_an_engine_that_never_connects_leaves_an_empty_record(
    monkeypatch: pytest.MonkeyPatch, script: str, kind: str, what: str
) -> None:
    # Shorten only the wait for hello, which is in vain: other engines may be slow to start.
    if kind == "start":
        monkeypatch.setattr(engine_module, "HELLO_S", 0.5)
    monkeypatch.setattr(trial_module, "CONNECT_SLACK_S", 0.2)
    record = play(monkeypatch, script)
    assert record.trouble is not None
    assert record.trouble.kind == kind
    assert what in record.trouble.what
    assert record.connections.established == 0
    assert record.counts.issued == 0
    assert record.verdict == "invalid"
    assert record.partial


@pytest.mark.usefixtures("scripted")
def test_a_refused_plan_is_the_users_to_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="refused the plan: field `connections`: too many"):
        play(monkeypatch, "refuse")


@pytest.mark.usefixtures("scripted")
def test_an_engine_of_another_version_is_not_talked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="speaks protocol 999"):
        play(monkeypatch, "speak_of_tomorrow")


def test_an_engine_that_is_not_there_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = tmp_path / "text"
    text.write_text("not to be executed")
    for path in (tmp_path / "missing", tmp_path, text):
        monkeypatch.setenv("TRUELOAD_ENGINE", str(path))
        with pytest.raises(UserError, match="is not a program"):
            run_trial(SPEC)


def test_an_engine_that_cannot_be_executed_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    binary = tmp_path / "engine"
    binary.write_bytes(b"\x7fELF and then nothing")
    binary.chmod(0o755)
    monkeypatch.setenv("TRUELOAD_ENGINE", str(binary))
    with pytest.raises(UserError, match="cannot be started"):
        run_trial(SPEC)


@pytest.mark.parametrize(
    ("stop", "failed"),
    [
        (Duration(ns=10**9), {"connect.refused": 3, "connect.timeout": 1}),
        (Requests(count=10), {"connect.refused": 8, "connect.timeout": 2}),
    ],
)
@pytest.mark.usefixtures("scripted")
def test_without_a_connection_requests_are_charged_with_its_failure(
    monkeypatch: pytest.MonkeyPatch, stop: Duration | Requests, failed: dict[str, int]
) -> None:
    record = play(
        monkeypatch,
        "have_no_connection",
        dataclasses.replace(SPEC, load=dataclasses.replace(SPEC.load, stop=stop)),
    )
    assert record.counts.failed == failed
    assert record.counts.issued == record.counts.scheduled == sum(failed.values())
    assert record.trouble is None
    assert not record.partial
    assert record.verdict == "invalid"
    assert check_of(record, "connections").status == "fail"
    assert check_of(record, "audit").status == "pass"


def test_a_name_without_addresses_is_a_record_of_class_dns() -> None:
    record = run_trial(
        dataclasses.replace(
            SPEC, addresses=(), load=dataclasses.replace(SPEC.load, stop=Requests(count=50))
        )
    )
    assert record.counts.failed == {"dns": 50}
    assert record.counts.issued == 50
    assert record.connections.established == 0
    assert record.verdict == "invalid"
    assert record.trouble is None


class Asked:
    """An interrupt that comes with the first tick."""

    requested = False


@pytest.mark.usefixtures("scripted")
def test_an_interrupt_keeps_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt = Asked()

    def ask(progress: Progress) -> None:
        interrupt.requested = interrupt.requested or progress.tick is not None

    record = play(monkeypatch, "fall_silent", on_progress=ask, interrupt=interrupt)
    assert record.partial
    assert record.trouble is None
    assert record.counts.ok in (45, 90)


@pytest.mark.parametrize(
    ("failed", "requests", "charged"),
    [
        ({}, 10, {}),
        ({"a": 1}, 10, {"a": 10}),
        ({"a": 1, "b": 1}, 3, {"a": 2, "b": 1}),
        ({"a": 2, "b": 1, "c": 1}, 10, {"a": 5, "b": 3, "c": 2}),
        ({"a": 100, "b": 1}, 1, {"a": 1}),
        ({"a": 5}, 0, {}),
    ],
)
def test_every_request_is_charged_with_one_failure(
    failed: dict[str, int], requests: int, charged: dict[str, int]
) -> None:
    assert charge(failed, requests) == charged


def test_the_plan_has_the_headers_that_the_request_needs() -> None:
    request = Request(host="[::1]:8080", method="POST", headers=(("A", "b"),), body=b"12345")
    load = dataclasses.replace(SPEC.load, close=True)
    traffic = Traffic(request=request)
    plan = make_plan(dataclasses.replace(SPEC, traffic=traffic, load=load), (1,))
    assert plan.request is not None
    assert plan.request.headers == (
        ("Host", "[::1]:8080"),
        ("A", "b"),
        ("Content-Length", "5"),
        ("Connection", "close"),
    )
    assert plan.request.body_sha256 is not None
    assert plan.cpus == (1,)
    own = Request(host="h", headers=(("host", "other"),))
    plan = make_plan(dataclasses.replace(SPEC, traffic=Traffic(request=own)), ())
    assert plan.request is not None
    assert plan.request.headers == (("host", "other"),)


def test_nothing_is_left_running(monkeypatch: pytest.MonkeyPatch, scripted: Path) -> None:
    monkeypatch.setattr(trial_module, "SILENCE_S", 0.2)
    record = play(monkeypatch, "fall_silent")
    assert record.trouble is not None
    assert record.trouble.kind == "silent"
    for stat in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = stat.read_bytes()
        except OSError:
            continue
        assert str(scripted).encode() not in words
