"""Each finding of the doctor: its text on a fit machine, and on every kind of unfit one."""

from __future__ import annotations

import resource
from dataclasses import replace
from typing import Any

import pytest
from trueload.cli.doctor import render
from trueload.commands.doctor import JUDGES, EngineFound, Facts, Finding, examine, worst
from trueload.machine.facts import Machine, observe
from trueload.machine.wakeups import WakeupLatency
from trueload.trial.ceiling import Ceiling

FIT = Facts(
    machine=Machine(
        cpus=4,
        cores=4,
        can_pin=True,
        cpu_quota=None,
        governors=("performance",),
        open_files_soft=1024,
        open_files_hard=1_048_576,
        ports=28_232,
        time_wait=12,
        time_wait_reuse=2,
        backlog=4096,
        clock_source="tsc",
        clock_resolution_ns=1.0,
        clock_read_ns=50.0,
        memory_available_bytes=8 << 30,
        watched_s=3.0,
        busy_share=0.01,
        stolen_share=0.0,
        wakeups=WakeupLatency(count=3_000, p99_ns=120_000, p999_ns=200_000),
    ),
    engine=EngineFound("bin/trueload-engine", "1.2.3", None),
    front_version="1.2.3",
    skipped={},
    subjects=12,
    ceiling=Ceiling(100_000.0, 1_000_000.0, True, None),
    core_latencies_ns=(88.0, 131.5, 92.4),
)


def unfit(**machine: Any) -> Facts:
    return replace(FIT, machine=replace(FIT.machine, **machine))


def named(name: str, facts: Facts) -> Finding:
    (found,) = [finding for finding in examine(facts) if finding.name == name]
    return found


# (the test's name, facts, finding, its status, words of the consequence)
TROUBLES = [
    (
        "an engine that is not there stops everything",
        replace(FIT, engine=EngineFound(None, None, "it is not there")),
        "engine",
        "fail",
        "nothing can be measured",
    ),
    (
        "an engine of another version may read plans otherwise",
        replace(FIT, front_version="1.2.4"),
        "engine",
        "fail",
        "1.2.4",
    ),
    ("one CPU is shared by engine and server", unfit(cpus=1, cores=1), "cpus", "warn", "one CPU"),
    ("two threads of one core are one core", unfit(cpus=2, cores=1), "cpus", "warn", "core"),
    ("no pinning lets them wander", unfit(can_pin=False), "pinning", "warn", "same-host"),
    (
        "a host that moves the CPUs about makes a request cost more now and then",
        replace(FIT, core_latencies_ns=(88.0, 92.4, 401.0)),
        "cpu-distance",
        "warn",
        "share a cache",
    ),
    ("a quota below the CPUs throttles", unfit(cpu_quota=1.5), "cpu-quota", "warn", "100 ms"),
    (
        "a governor that saves power changes the clock",
        unfit(governors=("performance", "powersave")),
        "frequency",
        "warn",
        "clock follows",
    ),
    ("others at work spoil it", unfit(busy_share=0.05), "background", "warn", "other programs"),
    (
        "a sleeper that is woken late sends late",
        unfit(wakeups=WakeupLatency(count=3_000, p99_ns=250_000, p999_ns=300_000)),
        "wake-ups",
        "warn",
        "open loop",
    ),
    (
        "once in a thousand is warned of, too",
        unfit(wakeups=WakeupLatency(count=3_000, p99_ns=100_000, p999_ns=1_600_000)),
        "wake-ups",
        "warn",
        "percentiles",
    ),
    (
        "one in a hundred by a millisecond forbids it",
        unfit(wakeups=WakeupLatency(count=3_000, p99_ns=1_000_000, p999_ns=1_600_000)),
        "wake-ups",
        "fail",
        "send-lag",
    ),
    ("others hard at work forbid it", unfit(busy_share=0.25), "background", "fail", "percentiles"),
    ("stolen time spoils it", unfit(stolen_share=0.05), "stolen-cpu", "warn", "hypervisor"),
    ("much stolen time forbids it", unfit(stolen_share=0.30), "stolen-cpu", "fail", "repeated"),
    ("little memory kills", unfit(memory_available_bytes=1 << 29), "memory", "warn", "killed"),
    (
        "a hard limit caps the connections",
        unfit(open_files_soft=1024, open_files_hard=4096),
        "open-files",
        "warn",
        "4,046 connections",
    ),
    (
        "a low soft limit caps the subjects",
        unfit(open_files_soft=256),
        "open-files",
        "warn",
        "soft limit",
    ),
    ("few ports run out", unfit(ports=6000), "local-ports", "warn", "100 requests/s"),
    ("ports in TIME_WAIT are gone", unfit(time_wait=20_000), "time-wait", "warn", "half"),
    ("a short backlog overflows", unfit(backlog=128), "backlog", "warn", "overflows"),
    ("a slow clock slows the engine", unfit(clock_read_ns=1500.0), "clock", "warn", "as much as"),
    ("a coarse clock blurs times", unfit(clock_resolution_ns=4e6), "clock", "warn", "told apart"),
    (
        "a subject that lacks its tool is skipped",
        replace(FIT, skipped={"go/fasthttp": "go is not installed"}),
        "subjects",
        "warn",
        "go/fasthttp",
    ),
    (
        "a ceiling that could not be measured is not known",
        replace(FIT, ceiling=Ceiling(None, None, True, "it did not listen")),
        "ceiling",
        "warn",
        "not known",
    ),
]

UNKNOWN = [
    ("CPUs that cannot be looked at", replace(FIT, core_latencies_ns=()), "cpu-distance"),
    ("a quick look measures no ceiling", replace(FIT, ceiling=None), "ceiling"),
    ("no governor is visible in a virtual machine", unfit(governors=()), "frequency"),
    ("a kernel that hides its ports", unfit(ports=None), "local-ports"),
    ("a kernel that hides its sockets", unfit(time_wait=None), "time-wait"),
    ("a kernel that hides its backlog", unfit(backlog=None), "backlog"),
    ("a kernel that hides its memory", unfit(memory_available_bytes=None), "memory"),
    ("a quick look, or no catalogue here", replace(FIT, skipped=None), "subjects"),
    ("a host that no load reached", unfit(wakeups=None), "wake-ups"),
    ("a host that hides how its CPUs are used", unfit(busy_share=None), "background"),
    ("a host that hides what is stolen", unfit(stolen_share=None), "stolen-cpu"),
    ("a host whose threads were not bound", unfit(can_pin=None), "pinning"),
    (
        "a host that hides its clock",
        unfit(clock_source=None, clock_resolution_ns=None, clock_read_ns=None),
        "clock",
    ),
]

THERE = replace(
    FIT,
    machine=replace(FIT.machine, clock_resolution_ns=None, clock_read_ns=None),
    skipped=None,
    is_here=False,
)


@pytest.mark.parametrize(
    ("sentence", "facts", "name", "status", "word"), TROUBLES, ids=[row[0] for row in TROUBLES]
)
def test_trouble_is_told_with_its_consequence_and_its_cure(
    sentence: str, facts: Facts, name: str, status: str, word: str
) -> None:
    finding = named(name, facts)
    assert finding.status == status, sentence
    assert word in (finding.consequence or ""), sentence
    assert finding.cure, sentence
    others = [f.name for f in examine(facts) if f.status in ("warn", "fail") and f.name != name]
    assert others == [], f"{sentence}, and nothing else"


@pytest.mark.parametrize(("sentence", "facts", "name"), UNKNOWN, ids=[row[0] for row in UNKNOWN])
def test_what_cannot_be_seen_is_not_judged(sentence: str, facts: Facts, name: str) -> None:
    assert named(name, facts).status == "n/a", sentence


def test_a_fit_machine_has_nothing_to_mend() -> None:
    findings = examine(FIT)
    assert {finding.status for finding in findings} == {"pass"}
    assert all(finding.cure is None and finding.consequence is None for finding in findings)


def test_an_unlimited_number_of_files_is_enough() -> None:
    facts = unfit(open_files_soft=resource.RLIM_INFINITY, open_files_hard=resource.RLIM_INFINITY)
    assert named("open-files", facts) == Finding(
        "open-files", "pass", "unlimited soft, unlimited hard", None, None
    )


def test_a_quota_of_all_cpus_is_none() -> None:
    assert named("cpu-quota", unfit(cpu_quota=4.0)).status == "pass"


def test_the_worst_finding_leads() -> None:
    assert worst(examine(FIT)) == "pass"
    assert worst(examine(unfit(can_pin=False))) == "warn"
    assert worst(examine(unfit(can_pin=False, stolen_share=0.5))) == "fail"
    assert worst(examine(unfit(governors=()))) == "pass"


def test_every_judge_has_trouble_in_the_table() -> None:
    names = {finding.name for finding in examine(FIT)}
    assert len(names) == len(JUDGES)
    assert {row[2] for row in TROUBLES} == names


def test_what_was_never_built_from_its_registry_is_not_claimed() -> None:
    finding = named("subjects", replace(FIT, subjects=92, untried=8))
    assert (
        finding.value
        == "92 of 92 have what they need here; 8 were never built from their registries"
    )


def test_many_reasons_are_not_told_one_by_one() -> None:
    few = {f"a/{name}": f"needs {name}" for name in "xyz"}
    cure = named("subjects", replace(FIT, skipped=few)).cure
    assert cure == "provide what is missing: needs x; needs y; needs z"
    many = named("subjects", replace(FIT, skipped={**few, "a/w": "needs w"}))
    assert many.consequence == "skipped by suites: a/w, a/x, a/y, a/z"
    assert many.cure is not None
    assert "trueload subjects list" in many.cure
    assert "needs" not in many.cure
    very_many = named("subjects", replace(FIT, skipped={f"a/{name}": name for name in "abcdefghi"}))
    assert very_many.consequence == ("skipped by suites: a/a, a/b, a/c, a/d, a/e, a/f and 3 more")


def test_what_tools_say_never_reaches_the_terminal_as_codes() -> None:
    facts = replace(FIT, skipped={"a/b": "there is \x1b[1mMaven\x07"})
    text = render(examine(facts))
    assert "Maven" in text
    assert all(char.isprintable() or char == "\n" for char in text)


def test_this_machine_can_be_observed() -> None:
    machine = observe(watch_s=0.01)
    assert machine.cpus >= 1
    assert machine.busy_share is not None
    assert 0.0 <= machine.busy_share <= 1.0
    assert machine.clock_read_ns
    assert machine.wakeups is not None
    assert machine.wakeups.count >= 1
    assert 0 <= machine.wakeups.p99_ns <= machine.wakeups.p999_ns


def test_another_host_is_judged_as_this_one_but_for_what_is_only_here() -> None:
    findings = examine(THERE)
    assert [finding.name for finding in findings] == [finding.name for finding in examine(FIT)]
    assert {f.name for f in findings if f.status == "n/a"} == {"subjects"}
    assert worst(findings) == "pass"
    for finding in (named("clock", THERE), named("subjects", THERE)):
        assert "here" not in finding.value, finding


@pytest.mark.parametrize(
    ("sentence", "facts", "name", "status", "words"),
    [
        (
            "a clock behind a system call is slow, also where nobody has timed it",
            replace(THERE, machine=replace(THERE.machine, clock_source="hpet")),
            "clock",
            "warn",
            "clocksource=",
        ),
        (
            "an engine that dies there is not fixed by building one here",
            replace(THERE, engine=EngineFound("as sent to ssh:h", None, "the engine died")),
            "engine",
            "fail",
            "stays reachable",
        ),
    ],
)
def test_trouble_of_another_host_has_the_cure_for_it(
    sentence: str, facts: Facts, name: str, status: str, words: str
) -> None:
    finding = named(name, facts)
    assert finding.status == status, sentence
    assert words in (finding.cure or ""), sentence


def test_the_ceiling_says_what_it_was_measured_on() -> None:
    apart = named("ceiling", replace(FIT, ceiling=Ceiling(100_000.0, 1_000_000.0, True, None)))
    together = named("ceiling", replace(FIT, ceiling=Ceiling(50_000.0, 500_000.0, False, None)))
    assert apart.status == together.status == "pass"
    assert "100,000 requests/s" in apart.value
    assert "a CPU each" in apart.value
    assert "on one CPU together" in together.value
