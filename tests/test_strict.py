"""The checks that other tests excuse: each is seen to pass and to fail, on CPUs of their own.

Other tests run in parallel, so they excuse what the machine does to a result
(``harness.OF_THE_MACHINE``). Here nothing is excused: engine and scripted server have a CPU each,
and nothing else should run. ``make test-strict`` runs this file alone, one test after the other.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from harness import (
    COMMAND_TIMEOUT_S,
    OF_OTHER_MACHINES,
    OF_THE_MACHINE,
    Finished,
    Trueload,
    kill_group,
)
from subject_world import World
from trap_runs import engine_of
from trueload.machine.facts import observe

PROGRAM = Path(__file__).with_name("scripted_http.py")
CPUS = sorted(os.sched_getaffinity(0))
ENGINE_CPU, SERVER_CPU = CPUS[-1], CPUS[0]
pytestmark = [
    pytest.mark.strict,
    pytest.mark.skipif(len(CPUS) < 2, reason="engine and server need a CPU each"),
]
# An engine that is kept from its CPU is stopped for four fifths of the time.
STOPPED_S, AWAKE_S = 0.1, 0.025
# A machine of two CPUs is sometimes disturbed, so a run has this many tries. If a change has broken
# a check, all of them fail.
TRIES = 5
# If all tries fail, the machine is watched for a moment without our programs. The CPU use of others
# then shows whether the checks are to blame.
WATCH_S, BUSY_SHARE = 1.0, 0.05

Disturb = Callable[[int], AbstractContextManager[None]]
"""What is done to an engine under load, by its pid."""


@contextmanager
def running_on(cpu: int, *words: str) -> Iterator[Callable[[], str]]:
    """Run a Python program on one CPU; yields a function that reads its next line."""
    process = subprocess.Popen(
        [sys.executable, *words],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {cpu}),
    )
    assert process.stdout is not None
    try:
        with process.stdout as output:
            yield lambda: output.readline().strip()
    finally:
        kill_group(process)


@contextmanager
def kept_from_its_cpu(engine: int) -> Iterator[None]:
    """Stop and continue the engine repeatedly, until the run is over."""
    over = threading.Event()

    def stutter() -> None:
        with suppress(ProcessLookupError):  # it ended by itself
            while not over.is_set():
                os.kill(engine, signal.SIGSTOP)
                over.wait(STOPPED_S)
                os.kill(engine, signal.SIGCONT)
                over.wait(AWAKE_S)

    thread = threading.Thread(target=stutter)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def others_at_work(_: int) -> Iterator[None]:
    """Run busy programs unrelated to the run, one on each CPU."""
    with ExitStack() as stack:
        for cpu in CPUS:
            stack.enter_context(running_on(cpu, "-c", "while True: pass"))
        yield


@dataclass(frozen=True)
class Case:
    """A server, a load on it, and what some checks must say of the run."""

    behaviour: str
    flags: str
    expected: Mapping[str, str]
    disturb: Disturb | None = None
    server_cpu: int = SERVER_CPU


def passing(*more: str) -> Mapping[str, str]:
    """What the checks say of a run that is in order."""
    always = ("same-host", "hiccup", "quantile-width", "generator-limit", "starvation")
    return dict.fromkeys((*always, "client-share", *more), "pass")


CASES = {
    "a closed loop that is in order": Case(
        "hard-working",
        "-c 16 -d 1500ms --warmup 300ms --fail-on p50>10s",
        passing("littles-law", "fairness"),
    ),
    "an open loop that is in order": Case(
        "very slow",
        "-c 256 -d 2s --warmup 300ms --rate 1k/s --fail-on p50>10s",
        passing("send-lag", "rate-reached"),
    ),
    "nobody else is at work": Case("slow", "-c 4 -d 1200ms --warmup 0s", {"noise": "pass"}),
    "half of the slots never come back": Case(
        "ignores half", "-c 16 -d 1s --warmup 0s --timeout 2s", {"littles-law": "warn"}
    ),
    "one connection is never answered": Case(
        "ignores the first", "-c 16 -d 1500ms --warmup 0s --timeout 2s", {"starvation": "fail"}
    ),
    "some connections are favoured": Case(
        "favours one in four", "-c 16 -d 1500ms --warmup 0s", {"fairness": "fail"}
    ),
    "the engine has more to read than the server to write": Case(
        "crumbles", "-c 64 -d 1s --warmup 300ms", {"generator-limit": "fail"}
    ),
    "there are two kinds of answers": Case(
        "two speeds", "-c 16 -d 1s --warmup 0s --fail-on p50>10s", {"quantile-width": "warn"}
    ),
    "the server is too slow for the rate": Case(
        "slow", "-c 2 -d 1s --warmup 0s --rate 1k/s", {"rate-reached": "fail"}
    ),
    "the engine is kept from its CPU": Case(
        "honest",
        "-c 128 -d 3s --warmup 0s --rate 1k/s",
        {"send-lag": "fail", "client-share": "fail", "hiccup": "fail"},
        kept_from_its_cpu,
    ),
    "server and engine share a CPU": Case(
        "honest", "-c 16 -d 1500ms --warmup 500ms", {"same-host": "warn"}, None, ENGINE_CPU
    ),
    "others are at work on all CPUs": Case(
        "honest", "-c 16 -d 1500ms --warmup 500ms", {"noise": "fail"}, others_at_work
    ),
}
# A suite claims a maximum, and keeps subject and engine apart by itself.
SUITE_CASES = {
    "a server at its limit": Case("hard-working", "", {"server-idle": "pass"}),
    "a server that waits": Case("slow", "", {"server-idle": "warn"}),
}


def assert_checks(run: Callable[[], Any], expected: Mapping[str, str]) -> None:
    """Check that within `TRIES` results each check gives the wanted status."""
    missing = dict(expected)
    for _ in range(TRIES):
        checks = {check["name"]: check for check in run()["checks"]}
        missing = {
            name: status for name, status in missing.items() if checks[name]["status"] != status
        }
        if not missing:
            return
    machine = observe(WATCH_S)
    busy, stolen = machine.busy_share or 0.0, machine.stolen_share or 0.0
    if busy + stolen > BUSY_SHARE:
        pytest.skip(
            f"this machine is not quiet: others use {busy:.0%} of it, its host {stolen:.0%}"
        )
    raise AssertionError([f"{name} is not {missing[name]}: {checks[name]}" for name in missing])


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_check_says_of_a_run_what_is_so(trueload: Trueload, case: Case) -> None:
    assert_checks(lambda: run_once(trueload, case), case.expected)


def run_once(trueload: Trueload, case: Case) -> Any:
    """Run once and return the record; the engine may be disturbed once the server is under load."""
    with running_on(case.server_cpu, str(PROGRAM), case.behaviour) as next_line:
        url = f"http://127.0.0.1:{next_line()}/"
        words = (*case.flags.split(), "--cpus", str(ENGINE_CPU), "--json", "-", "--no-save")
        process = trueload.start("http", url, *words)
        assert next_line() == "under load"
        with case.disturb(engine_of(process.pid)) if case.disturb else nullcontext():
            out, err = process.communicate(timeout=COMMAND_TIMEOUT_S)
    return Finished(process.returncode, out, err).json()


@pytest.mark.parametrize("case", SUITE_CASES.values(), ids=SUITE_CASES)
def test_a_check_says_of_a_claimed_maximum_what_is_so(world: World, case: Case) -> None:
    run = ["python3", PROGRAM.name, case.behaviour, "{host}", "{port}"]
    folder = world.add("scripted", category="micro", run=run)
    (folder / PROGRAM.name).write_bytes(PROGRAM.read_bytes())
    words = ("--cores", "single", "-c", "16", "-d", "1s", "--repeat", "1", "--json", "-")

    def run_suite() -> Any:
        done = world.run("suite", "run", "quick", "--subjects", "python", *words)
        (trial,) = done.json()["trials"]
        return trial

    assert_checks(run_suite, case.expected)


def test_each_check_that_is_excused_elsewhere_is_seen_to_pass_and_to_speak() -> None:
    expectations = {
        each for case in (*CASES.values(), *SUITE_CASES.values()) for each in case.expected.items()
    }
    seen = OF_THE_MACHINE - OF_OTHER_MACHINES
    assert {name for name, status in expectations if status == "pass"} == seen
    assert {name for name, status in expectations if status != "pass"} == seen
