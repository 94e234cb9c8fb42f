"""Hosts of a Ray cluster as places: real engines on the hosts of a real cluster.

It also tests what is said when a host or its Ray node ends.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import platform
import re
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from harness import Server, Trueload
from trueload.engines.engine import Engine, EngineError
from trueload.errors import UserError
from trueload.places import Channel, ChannelClosedError
from trueload.places.host_wait import Arriving
from trueload.places.ray import RayPlace, Reservation, reserve
from waiting import has_ended, wait_until

SLACK_S = 3.0  # allowance for a loaded machine: the bounds below catch hangs, not slowness
LOSS_S = 2.0 + SLACK_S  # until a lost host is noticed
LEASE_S = 3.0 + SLACK_S  # until an engine without a front is gone
BOUND_S = 30.0  # for a busy machine: catches what hangs, not what is slow


# 80 MB is small for Ray, and five times what an engine needs.
STORE = {"object_store_memory": 80 * 2**20}


class RayCluster:
    """A cluster on this machine. Its head offers no CPU; tests add hosts with one each."""

    def __init__(self) -> None:
        self._made = importlib.import_module("ray.cluster_utils").Cluster()
        self._made.add_node(num_cpus=0, include_dashboard=False, **STORE)
        self.address: str = self._made.address
        self.close = self._made.shutdown

    def add(self, name: str, at: str) -> psutil.Process:
        """Add a host with a label; return its raylet."""
        node = self._made.add_node(num_cpus=1, node_name=name, labels={"at": at}, **STORE)
        return psutil.Process(node.all_processes["raylet"][0].process.pid)


@pytest.fixture(scope="module")
def joined() -> Iterator[RayCluster]:
    """A cluster of two hosts and more, which ``--place ray`` finds."""
    # Not in pytest's folder: the path of a Unix socket has at most 107 bytes.
    with (
        tempfile.TemporaryDirectory(prefix="tl-ray-") as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_TMPDIR", folder)
        made = RayCluster()
        with contextlib.closing(made):
            patch.setenv("RAY_ADDRESS", made.address)
            made.add("host-a", at="base")
            made.add("host-b", at="base")
            yield made


@pytest.fixture
def base(joined: RayCluster) -> Iterator[Reservation]:
    """One host, which the test must leave as it was."""
    with reserve(None, 1, labels={"at": "base"}) as reserved:
        yield reserved


def run_shell(place: RayPlace, script: str) -> Channel:
    """Start a shell on the host, as a program like any other."""
    return place.open([shutil.which("sh") or "/bin/sh", "-c", script])


def assert_ended(channel: Channel) -> None:
    with pytest.raises(ChannelClosedError, match="it has closed its output"):
        channel.read_line(BOUND_S)


# --- what a host does


def test_a_command_measures_from_a_cluster_and_prints_only_its_result(
    joined: RayCluster, trueload: Trueload, server: Server
) -> None:
    done = trueload.run(
        *("http", server.url, "--duration", "1s", "--warmup", "0s", "--connections", "2"),
        *("--place", "ray", "--json", "-"),
        env={"RAY_ADDRESS": joined.address},
    )
    assert done.code in (0, 4), done  # a busy machine is not the place's fault
    record = done.json()
    assert (record["trouble"], record["counts"]["ok"] > 100) == (None, True)
    assert [host["place"] in ("host-a", "host-b") for host in record["hosts"]] == [True]
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
    assert_ended(channel)
    assert channel.wait(BOUND_S) == 0


def test_the_exit_code_and_the_last_words_are_told(base: Reservation) -> None:
    channel = run_shell(base.places[0], "echo out; echo 'no such plan' >&2; exit 3")
    assert channel.read_line(BOUND_S) == b"out"
    assert_ended(channel)
    assert channel.wait(BOUND_S) == 3
    assert channel.log_tail() == "no such plan\n"


def test_kill_ends_what_the_program_has_started(base: Reservation) -> None:
    channel = run_shell(base.places[0], "sleep 600 & echo $!; wait")
    child = int(channel.read_line(BOUND_S) or b"")
    assert not has_ended(child)
    channel.kill()
    wait_until(lambda: has_ended(child), "the child has gone")
    assert channel.wait(BOUND_S) == -signal.SIGKILL
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


MACHINES = {"x86_64": 62, "aarch64": 183}
HERE = platform.machine()
(ELSEWHERE,) = MACHINES.keys() - {HERE}


def header_for(machine: str) -> bytes:
    """Only the header of a program for this machine type."""
    number = MACHINES[machine].to_bytes(2, "little")
    return b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00" + number + bytes(44)


@pytest.mark.parametrize(
    ("machine", "error", "words"),
    [
        (ELSEWHERE, UserError, f"^host host-. is .*, and the engine here is for {ELSEWHERE}\n"),
        (HERE, OSError, r"Exec format error \(on host-.\)"),
    ],
)
def test_a_program_that_cannot_run_there_is_told(
    base: Reservation, tmp_path: Path, machine: str, error: type[Exception], words: str
) -> None:
    program = tmp_path / "trueload-engine"
    program.write_bytes(header_for(machine))
    with pytest.raises(error, match=words):
        base.places[0].open([str(program)])


def test_a_program_for_that_machine_is_taken_from_beside_it(
    base: Reservation, tmp_path: Path
) -> None:
    program = tmp_path / "trueload-engine"
    program.write_bytes(header_for(ELSEWHERE))
    beside = program.with_name(f"{program.name}-{HERE}")
    beside.write_text("#!/bin/sh\necho made for $1\n")
    channel = base.places[0].open([str(program), "this machine"])
    assert channel.read_line(BOUND_S) == b"made for this machine"


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


def kill_the_actor(actor: psutil.Process, raylet: psutil.Process) -> None:
    actor.kill()


def freeze_the_actor(actor: psutil.Process, raylet: psutil.Process) -> None:
    actor.suspend()


def kill_the_raylet(actor: psutil.Process, raylet: psutil.Process) -> None:
    raylet.kill()


@pytest.mark.parametrize(
    ("strike", "words"),
    [
        (kill_the_actor, "the process of its actor has died"),
        (freeze_the_actor, "it has not answered for 1.8 s"),
        (kill_the_raylet, "its Ray node (raylet) has died"),
    ],
)
def test_a_host_that_is_lost_is_told_and_not_used_again(
    joined: RayCluster, strike: Callable[[psutil.Process, psutil.Process], None], words: str
) -> None:
    name = strike.__name__.replace("_", "-")
    raylet = joined.add(name, at=name)
    with reserve(None, 1, labels={"at": name}) as reserved:
        place = reserved.places[0]
        engine = Engine.start(place)
        pid, actor = engine.pid, psutil.Process(psutil.Process(engine.pid).ppid())
        strike(actor, raylet)
        words = re.escape(f"host {name} is lost: {words}")
        with pytest.raises(EngineError, match=words):
            wait_until(lambda: engine.receive(0.5) and False, "the host is lost", LOSS_S)
        wait_until(lambda: has_ended(pid), "the engine has gone", LEASE_S)
        with pytest.raises(UserError, match=words):
            place.open(["/bin/sh"])
        with contextlib.suppress(psutil.NoSuchProcess):
            actor.resume()
        engine.close()
    wait_until(lambda: has_ended(actor.pid), "the actor has gone")


# --- what is refused


def test_too_few_hosts_are_told_with_what_the_cluster_has(joined: RayCluster) -> None:
    with pytest.raises(UserError) as caught:
        reserve(None, 2, labels={"at": "nowhere"}, wait_s=0.5)
    assert "Ray did not find 2 hosts (1 CPU each, at=nowhere) within 0.5 s" in str(caught.value)
    assert "host-a (1 CPU)" in str(caught.value)
    assert caught.value.hint.startswith("ask for fewer with --hosts")
    with reserve(None, 2, labels={"at": "base"}) as reserved:  # nothing was kept
        assert [place.name for place in reserved.places] == ["host-a", "host-b"]


def test_an_address_that_a_cluster_left_behind_is_told(
    trueload: Trueload, server: Server, tmp_path: Path, refusing_port: int
) -> None:
    stale = tmp_path / "ray" / "ray_current_cluster"
    stale.parent.mkdir()
    stale.write_text(f"127.0.0.1:{refusing_port}")
    env = {"RAY_ADDRESS": "auto", "RAY_TMPDIR": str(tmp_path)}
    done = trueload.run("http", server.url, "--place", "ray", env=env)
    assert (done.code, done.out) == (2, "")
    error, hint = done.err.splitlines()
    assert error.endswith("cannot be reached: Connection refused")
    assert hint.startswith("hint: ")
    assert hint.endswith("a stale address goes with `ray stop`")


def test_what_the_process_had_set_is_as_it_was(joined: RayCluster) -> None:
    def found() -> list[object]:
        return [signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)]

    before = found()
    with reserve(None, 1, labels={"at": "base"}):
        assert found() == before
    assert found() == before
