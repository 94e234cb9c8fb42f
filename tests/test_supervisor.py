"""The supervisor between front and engine: forwards lines, adds leases, ends with the engine."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from harness import kill_group
from trueload.places import supervisor

LEASE = supervisor.LEASE.decode()
ECHO = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)\nprint('over')"


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    """A list of processes, which are killed at the end."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        kill_group(process)


def keep(started: list[subprocess.Popen[str]], program: str) -> subprocess.Popen[str]:
    """Start a supervisor of a Python program."""
    process = subprocess.Popen(
        [sys.executable, supervisor.__file__, sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
        start_new_session=True,
    )
    started.append(process)
    return process


def send(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdin is not None
    process.stdin.write(text)
    process.stdin.flush()


def receive(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_lines_are_handed_on_and_leases_come_between_them(
    started: list[subprocess.Popen[str]],
) -> None:
    process = keep(started, ECHO)
    send(process, "one\n")
    assert receive(process) == "one\n"
    assert [receive(process), receive(process)] == [LEASE, LEASE]


def test_no_lease_falls_within_a_line(started: list[subprocess.Popen[str]]) -> None:
    # The program reads its input as it comes, and prints each complete line.
    process = keep(started, ECHO)
    assert receive(process) == LEASE
    send(process, "one ")
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(3 * supervisor.LEASE_EVERY_S)
    send(process, "line\n")
    received = receive(process)
    while received == LEASE:
        received = receive(process)
    assert received == "one line\n"


def test_the_end_of_the_input_is_the_end_of_the_programs(
    started: list[subprocess.Popen[str]],
) -> None:
    process = keep(started, ECHO)
    out, _ = process.communicate("one\n", timeout=60)
    assert [line for line in out.splitlines(keepends=True) if line != LEASE] == ["one\n", "over\n"]
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("raise SystemExit(7)", 7),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
    ],
)
def test_it_ends_as_the_program_does_though_its_input_goes_on(
    started: list[subprocess.Popen[str]], program: str, code: int
) -> None:
    process = keep(started, program)
    assert receive(process) == ""
    assert process.wait(60) == code
