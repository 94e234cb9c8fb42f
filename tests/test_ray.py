"""Hosts of a Ray cluster as places: real engines on the hosts of a real cluster.

It also tests what is said when a host, its Ray node or the front ends.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from harness import ROOT, Server, Trueload
from ray_cluster import RayCluster
from trueload.engines.engine import Engine, EngineError
from trueload.errors import UserError
from trueload.places import Channel, ChannelClosedError, EngineHost
from trueload.places.arriving import Arriving
from trueload.places.ray import RayPlace, Reservation, reserve
from trueload.protocol.plan import Duration, Tick
from trueload.request.values import Request
from trueload.trial.run import run_trial
from trueload.trial.spec import ONE_SECOND, Load, TrialSpec
from waiting import has_ended, wait_until

SLACK_S = 3.0  # allowance for a loaded machine: the bounds below catch hangs, not slowness
LOSS_S = 2.0 + SLACK_S  # until a lost host is noticed
LEASE_S = 3.0 + SLACK_S  # until an engine without a front is gone
BOUND_S = 30.0  # for a busy machine: catches what hangs, not what is slow


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    # Not in pytest's folder: the path of a Unix socket has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="tl-ray-") as folder, RayCluster(Path(folder)) as made:
        made.add("host-a", at="base")
        made.add("host-b", at="base")
        yield made


@pytest.fixture
def joined(cluster: RayCluster, monkeypatch: pytest.MonkeyPatch) -> RayCluster:
    """The cluster, set up so that ``--place ray`` finds it."""
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    return cluster


@pytest.fixture
def base(joined: RayCluster) -> Iterator[Reservation]:
    """One host, which the test must leave as it was."""
    with reserve(None, 1, labels={"at": "base"}) as reserved:
        yield reserved


def run_shell(place: RayPlace, script: str) -> Channel:
    """Start a shell on the host, as a program like any other."""
    return place.open([shutil.which("sh") or "/bin/sh", "-c", script])


def read_to_end(channel: Channel) -> tuple[list[bytes], str]:
    """Read all lines, and how the program ended."""
    lines: list[bytes] = []
    deadline_s = time.monotonic() + BOUND_S
    while time.monotonic() < deadline_s:
        try:
            line = channel.read_line(0.5)
        except ChannelClosedError as error:
            return lines, str(error)
        if line is not None:
            lines.append(line)
    raise AssertionError(f"it does not end: {lines[-3:]}")


# --- what a host does


def test_each_place_is_another_host_under_its_own_name(joined: RayCluster) -> None:
    with reserve(None, 2, labels={"at": "base"}) as reserved:
        assert sorted(place.name for place in reserved.places) == ["host-a", "host-b"]
        channels = [run_shell(place, "echo $$") for place in reserved.places]
        for channel in channels:
            assert channel.read_line(BOUND_S) == str(channel.pid).encode()


def test_a_trial_on_a_host_is_measured_there(base: Reservation, server: Server) -> None:
    ticks: list[Tick] = []
    record = run_trial(
        TrialSpec(
            url=server.url,
            addresses=(f"{server.host}:{server.port}",),
            request=Request(host=server.host),
            load=Load(connections=2, warmup=None, stop=Duration(ns=3 * ONE_SECOND.ns)),
            hosts=(EngineHost(base.places[0]),),
        ),
        on_progress=lambda progress: ticks.append(progress.tick) if progress.tick else None,
    )
    assert record.trouble is None
    assert record.counts.ok > 100
    # Eleven are due; on a busy machine a late one may replace the next.
    assert len(ticks) >= 3


def test_a_command_measures_from_a_cluster_and_prints_only_its_result(
    joined: RayCluster, trueload: Trueload, server: Server
) -> None:
    done = trueload.run(
        *("http", server.url, "--duration", "1s", "--warmup", "0s", "--connections", "2"),
        *("--place", "ray", "--json", "-"),
        env={"RAY_ADDRESS": joined.address},
    )
    assert done.code in (0, 4), done  # a busy machine is not the place's fault
    assert done.json()["counts"]["ok"] > 100
    assert "ray" not in done.err.lower()


def test_an_engine_on_a_host_is_no_less_than_one_here(base: Reservation) -> None:
    with Engine.start(base.places[0]) as engine:
        process = psutil.Process(engine.pid)
        assert process.name() == "trueload-engine"
        assert not any(name.startswith("RAY_") for name in process.environ())
        blocked = Path(f"/proc/{engine.pid}/status").read_text().split("SigBlk:")[1].split()[0]
        assert int(blocked, 16) == 0
        if os.geteuid() == 0:  # only root can undo the niceness that Ray adds
            assert process.nice() <= os.nice(0)


def test_a_long_line_comes_whole(base: Reservation) -> None:
    channel = base.places[0].open([shutil.which("cat") or "/bin/cat"])
    lines = [bytes([65 + number]) * length for number, length in enumerate((1, 70_000, 3_000_000))]
    for line in lines:
        channel.send(line + b"\n", BOUND_S)
    assert [channel.read_line(BOUND_S) for _ in lines] == lines
    channel.close_input()
    assert read_to_end(channel) == ([], "it has closed its output")
    assert channel.wait(BOUND_S) == 0


def test_the_exit_code_and_the_last_words_are_told(base: Reservation) -> None:
    channel = run_shell(base.places[0], "echo out; echo 'no such plan' >&2; exit 3")
    assert read_to_end(channel) == ([b"out"], "it has closed its output")
    assert channel.wait(BOUND_S) == 3
    assert channel.log_tail() == "no such plan\n"


def test_a_program_that_does_not_read_holds_nobody_up(base: Reservation) -> None:
    channel = run_shell(base.places[0], "exec sleep 600")
    with pytest.raises(ChannelClosedError, match=r"it has not read its input for 0\.2 s"):
        channel.send(b"x" * 3_000_000, 0.2)
    assert channel.wait(0.01) is None
    channel.kill()
    assert channel.wait(BOUND_S) == -signal.SIGKILL


def test_kill_ends_what_the_program_has_started(base: Reservation) -> None:
    channel = run_shell(base.places[0], "sleep 600 & echo $!; wait")
    child = int(channel.read_line(BOUND_S) or b"")
    assert not has_ended(child)
    channel.kill()
    wait_until(lambda: has_ended(child), "the child has gone")
    channel.kill()  # does nothing


def test_many_programs_one_after_another_leave_no_descriptors_open(base: Reservation) -> None:
    channel = run_shell(base.places[0], "read line")
    actor = psutil.Process(psutil.Process(channel.pid).ppid())

    def start_and_kill(programs: int) -> None:
        for _ in range(programs):
            run_shell(base.places[0], "read line").kill()

    start_and_kill(20)
    before = actor.num_fds()
    start_and_kill(20)
    wait_until(lambda: actor.num_fds() <= before, "its descriptors are closed")


def test_a_script_runs_too(base: Reservation, tmp_path: Path) -> None:
    script = tmp_path / "hello"
    script.write_text("#!/bin/sh\necho hello from $1\n")
    channel = base.places[0].open([str(script), "far away"])
    assert channel.read_line(BOUND_S) == b"hello from far away"


def elf(machine: int) -> bytes:
    """Only the header of a program for this machine type."""
    return (
        b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00" + machine.to_bytes(2, "little") + bytes(44)
    )


def test_a_program_for_another_machine_is_not_sent(base: Reservation, tmp_path: Path) -> None:
    other, number = ("x86_64", 62) if platform.machine() == "aarch64" else ("aarch64", 183)
    program = tmp_path / "trueload-engine"
    program.write_bytes(elf(number))
    with pytest.raises(
        UserError, match=f"^host host-. is .*, and the engine here is for {other}\n"
    ):
        base.places[0].open([str(program)])


def test_a_program_for_that_machine_is_taken_from_beside_it(
    base: Reservation, tmp_path: Path
) -> None:
    program = tmp_path / "trueload-engine"
    program.write_bytes(elf(62 if platform.machine() == "aarch64" else 183))
    beside = program.with_name(f"{program.name}-{platform.machine()}")
    beside.write_text("#!/bin/sh\necho made for this machine\n")
    channel = base.places[0].open([str(program)])
    assert channel.read_line(BOUND_S) == b"made for this machine"


def test_a_program_that_cannot_be_started_says_why(base: Reservation, tmp_path: Path) -> None:
    program = tmp_path / "broken"
    program.write_bytes(elf(183 if platform.machine() == "aarch64" else 62))
    with pytest.raises(OSError, match=r"Exec format error \(on host-.\)"):
        base.places[0].open([str(program)])


def test_a_host_that_comes_later_is_waited_for(joined: RayCluster) -> None:
    told: list[str] = []

    def announce(line: str) -> None:
        told.append(line)
        if len(told) == 1:
            joined.add("host-late", at="late")

    arriving = Arriving(round(BOUND_S * 1e9), announce)
    with reserve(None, 1, labels={"at": "late"}, arriving=arriving) as reserved:
        assert [place.name for place in reserved.places] == ["host-late"]
    assert told[0].startswith("waiting for hosts: 0 of 1 are there, ")


# --- what is lost


def test_an_actor_that_dies_is_a_lost_host_and_is_not_started_again(joined: RayCluster) -> None:
    with reserve(None, 1, labels={"at": "base"}) as reserved:
        place = reserved.places[0]
        engine = Engine.start(place)
        pid = engine.pid
        psutil.Process(psutil.Process(pid).ppid()).kill()
        words = f"host {place.name} is lost: the process of its actor has died"
        listen_until_lost(engine, words)
        wait_until(lambda: has_ended(pid), "the engine has gone", LEASE_S)
        with pytest.raises(UserError, match=words):
            place.open(["/bin/sh"])
        engine.close()


def test_a_dead_raylet_is_a_lost_host(joined: RayCluster) -> None:
    node = joined.add("host-raylet", at="raylet")
    with reserve(None, 1, labels={"at": "raylet"}) as reserved:
        engine = Engine.start(reserved.places[0])
        pid, actor = engine.pid, psutil.Process(engine.pid).ppid()
        os.kill(node.raylet_pid, signal.SIGKILL)
        listen_until_lost(engine, "host host-raylet is lost: its Ray node (raylet) has died")
        wait_until(lambda: has_ended(pid), "the engine has gone", LEASE_S)
        wait_until(lambda: has_ended(actor), "the actor has gone", LEASE_S)
        engine.close()


def test_a_host_that_does_not_answer_is_lost(joined: RayCluster) -> None:
    joined.add("host-silent", at="silent")
    with reserve(None, 1, labels={"at": "silent"}) as reserved:
        engine = Engine.start(reserved.places[0])
        pid, actor = engine.pid, psutil.Process(psutil.Process(engine.pid).ppid())
        actor.suspend()
        try:
            listen_until_lost(engine, "host host-silent is lost: it has not answered for 1.5 s")
            wait_until(lambda: has_ended(pid), "the engine has gone", LEASE_S)
        finally:
            actor.resume()
        engine.close()


def test_a_killed_front_leaves_nothing_running(joined: RayCluster) -> None:
    script = """if True:
        import sys
        from trueload.engines.engine import Engine
        from trueload.places.ray import reserve
        with reserve(None, 2, labels={"at": "base"}) as reserved:
            engines = [Engine.start(place) for place in reserved.places]
            print(*(engine.pid for engine in engines), flush=True)
            sys.stdin.read()
    """
    front = subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert front.stdout is not None
    pids = [int(word) for word in front.stdout.readline().split()]
    assert len(pids) == 2
    actors = [psutil.Process(pid).ppid() for pid in pids]
    front.kill()
    front.communicate()
    wait_until(lambda: all(map(has_ended, pids)), "the engines have gone", LEASE_S)
    wait_until(lambda: all(map(has_ended, actors)), "the actors have gone")


def listen_until_lost(engine: Engine, words: str) -> None:
    """Listen to an engine until it is lost, and check the words of the error."""

    def listen() -> bool:
        engine.receive(0.5)
        return False

    with pytest.raises(EngineError, match=re.escape(words)):
        wait_until(listen, "the host is lost", LOSS_S)


# --- what is refused


def test_too_few_hosts_are_told_with_what_the_cluster_has(joined: RayCluster) -> None:
    with pytest.raises(UserError) as caught:
        reserve(None, 2, labels={"at": "nowhere"}, wait_s=0.5)
    assert "Ray did not find 2 hosts (1 CPU each, at=nowhere) within 0.5 s" in str(caught.value)
    assert "host-a (1 CPU)" in str(caught.value)
    with reserve(None, 2, labels={"at": "base"}) as reserved:  # nothing was kept
        assert len(reserved.places) == 2


def test_a_cluster_that_cannot_be_reached_is_two_lines_and_exit_code_2(
    trueload: Trueload, server: Server, refusing_port: int
) -> None:
    address = f"ray://127.0.0.1:{refusing_port}"
    done = trueload.run("http", server.url, "--place", address)
    assert done.code == 2
    assert done.out == ""
    error, hint = done.err.splitlines()
    assert error == (f"error: the Ray cluster at {address} cannot be reached: Connection refused")
    assert hint.startswith("hint: ")


def test_an_address_that_a_cluster_left_behind_is_told(
    trueload: Trueload, server: Server, tmp_path: Path
) -> None:
    stale = tmp_path / "ray" / "ray_current_cluster"
    stale.parent.mkdir()
    with socket.socket() as closed:  # bound, not listening: refuses
        closed.bind(("127.0.0.1", 0))
        stale.write_text(f"127.0.0.1:{closed.getsockname()[1]}")
        done = trueload.run(
            *("http", server.url, "--place", "ray"),
            env={"RAY_ADDRESS": "auto", "RAY_TMPDIR": str(tmp_path)},
        )
    assert done.code == 2
    assert "cannot be reached: Connection refused" in done.err
    assert "a stale address goes with `ray stop`" in done.err


def test_what_the_process_had_set_is_as_it_was(joined: RayCluster) -> None:
    def found() -> list[object]:
        return [signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)]

    before = found()
    with reserve(None, 1, labels={"at": "base"}):
        assert found() == before
    assert found() == before
