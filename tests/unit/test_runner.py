"""The runner's parts: CPU layouts, requirements, and processes that reliably end."""

from __future__ import annotations

import dataclasses
import os
import resource
import signal
import sys
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trueload.runner import cgroup, needs
from trueload.runner import process as processes_module
from trueload.runner.cpus import Layout, NoLayout, lay_out
from trueload.runner.environment import subject_environment
from trueload.runner.needs import version_satisfies
from trueload.runner.process import (
    Exit,
    Orders,
    Processes,
    Program,
    StartError,
    substitute,
)
from trueload.subjects.manifest import Cores, Manifest, Needs, Subject
from trueload.text import without_escapes
from waiting import has_ended, wait_until

APART = {0: "0", 1: "1", 2: "2", 3: "3"}
THREADS = {0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"}

# ((cores, CPUs, physical cores, engine threads, share), (subject's CPUs, engine's, shared))
LAYOUTS: list[tuple[Cores, list[int], dict[int, str], int, bool, object]] = [
    ("single", [0, 1], APART, 1, False, ((1,), (0,), False)),
    ("single", [0, 1, 2, 3], APART, 2, False, ((3,), (0, 1), False)),
    ("single", [0, 1, 2, 3], THREADS, 1, False, ((3,), (0,), False)),
    ("single", [1, 2, 3], THREADS, 1, False, ((3,), (2,), False)),
    ("single", [1, 3], THREADS, 1, False, ((3,), (1,), False)),
    ("single", [5], {}, 1, False, "one CPU for the subject and 1 for the engine"),
    ("single", [5], {}, 1, True, ((5,), (5,), True)),
    ("single", [0, 1], APART, 2, False, "--share-cpus"),
    ("multi", [0, 1, 2, 3], APART, 1, False, ((1, 2, 3), (0,), False)),
    ("multi", [0, 1, 2, 3], APART, 2, False, ((2, 3), (0, 1), False)),
    ("multi", [0, 1], APART, 1, False, "needs three CPUs"),
    ("multi", [0, 1], APART, 1, True, ((0, 1), (0, 1), True)),
    ("multi", [0, 1, 2], APART, 3, False, "leave no CPU of 3"),
]


@pytest.mark.parametrize(("cores", "cpus", "core_of", "threads", "share", "expected"), LAYOUTS)
def test_subject_and_engine_are_kept_apart_or_it_is_said_why_not(
    cores: Cores,
    cpus: list[int],
    core_of: dict[int, str],
    threads: int,
    share: bool,
    expected: object,
) -> None:
    found = lay_out(cores, cpus, core_of, threads, share)
    if isinstance(expected, str):
        assert isinstance(found, NoLayout)
        assert expected in found.reason
    else:
        assert isinstance(found, Layout)
        assert (found.subject, found.engine, found.shared) == expected


VERSIONS = [
    ("go version go1.22.3 linux/amd64", ">=", "1.22", True),
    ("go version go1.9.3 linux/amd64", ">=", "1.22", False),
    ("v20.20.2", ">=", "18", True),
    ("v20.20.2", "==", "20", True),
    ("v20.20.2", "==", "20.1", False),
    ("v20", ">=", "20.0", True),
    ("v20", "<", "21", True),
    ('openjdk version "17.0.9" 2023', ">=", "17", True),
    ("no number at all", ">=", "1", False),
]


@pytest.mark.parametrize(("version", "operator", "wanted", "expected"), VERSIONS)
def test_a_version_is_compared_by_its_parts(
    version: str, operator: str, wanted: str, expected: bool
) -> None:
    assert version_satisfies(version, operator, wanted) is expected


def tool(folder: Path, monkeypatch: pytest.MonkeyPatch, output: str) -> str:
    """Create a program that prints this version; return its name."""
    name = f"tool-{uuid.uuid4().hex}"  # answers are remembered by name
    path = folder / name
    path.write_text(f"#!{sys.executable}\nprint({output!r})\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    return name


TOOL_OUTPUTS = [
    ("\x1b[1mApache Maven 3.8.7\x1b[m", "Apache Maven 3.8.7"),
    ("\x1b[38;5;208mMaven\x1b[0m \x1b[1m3.8.7\x1b(B\x1b[m", "Maven 3.8.7"),
    ("\x1b]8;;http://127.0.0.1/\x1b\\Maven\x1b]8;;\x1b\\ 3.8.7", "Maven 3.8.7"),
    ("\x1b]0;a title 99\x07Maven 3.8.7", "Maven 3.8.7"),
    ("\x9b1mMaven 3.8.7\x9b0m", "Maven 3.8.7"),
    ("\x1b7\x1b=Maven 3.8.7\x1b8", "Maven 3.8.7"),
    ("\n  \x1b[0m\nMaven 3.8.7\nand more", "Maven 3.8.7"),
    ("Maven 3.8.7\x07\x00", "Maven 3.8.7"),
]


@pytest.mark.parametrize(("output", "expected"), TOOL_OUTPUTS, ids=range(len(TOOL_OUTPUTS)))
def test_a_version_is_read_through_escape_sequences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str, expected: str
) -> None:
    name = tool(tmp_path, monkeypatch, output)
    version = needs.tool_version(name)
    assert version == expected
    assert version_satisfies(version, ">=", "3.6.3")
    assert not version_satisfies(version, ">=", "4")


@given(st.text(), st.text())
def test_taking_out_escape_sequences_leaves_plain_text_alone(text: str, other: str) -> None:
    plain = "".join(filter(str.isprintable, text))
    assert without_escapes(plain) == plain
    assert len(without_escapes(text + other)) <= len(text + other)


def subject_that_needs(tools: Sequence[str], debian: Sequence[str]) -> Subject:
    manifest = Manifest(
        role="server",
        about="a",
        category="micro",
        contracts=("http-plaintext",),
        run=("{build}/x",),
        needs=Needs(tools=tuple(tools), debian=tuple(debian)),
    )
    return Subject("c", "x", "", Path(), manifest)


def test_a_tool_that_is_there_needs_no_package_that_gives_it_but_libraries_are_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(needs, "_installed", lambda package: False)
    server = tool(tmp_path, monkeypatch, "server version: server/1.22.1")
    found = subject_that_needs([f"{server}>=1.18"], ["server-light"])
    assert (needs.missing(found), needs.missing_packages(found)) == (None, [])
    found = subject_that_needs([server], ["server-light", "liburing-dev"])
    assert needs.missing_packages(found) == ["liburing-dev"]
    assert "the Debian package liburing-dev: " in str(needs.missing(found))


def test_a_tool_that_is_missing_or_too_old_needs_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(needs, "_installed", lambda package: False)
    server = tool(tmp_path, monkeypatch, "server version: server/1.22.1")
    for tools in ([f"{server}>=2"], ["no-such-tool-of-ours"], []):
        found = subject_that_needs(tools, ["server-light"])
        assert needs.missing_packages(found) == ["server-light"], tools
        assert "`sudo apt-get install " in str(needs.missing(found)), tools


def test_substitution_never_makes_one_argument_of_several_or_several_of_one() -> None:
    values = {"host": "127.0.0.1", "port": "80", "build": "/a b/$(c)"}
    argv = ["{build}/x", "{host}:{port}", "{other}", "a b"]
    assert substitute(argv, values, ()) == ["/a b/$(c)/x", "127.0.0.1:80", "{other}", "a b"]
    assert substitute(["{trueload}", "serve"], {}, ("py", "-m")) == ["py", "-m", "serve"]


def test_an_exit_is_a_code_or_a_signal() -> None:
    assert str(Exit.of_status(3 << 8)) == "exit code 3"
    assert str(Exit.of_status(15)) == "signal 15 (SIGTERM)"
    assert "perhaps out of memory" in str(Exit.of_status(9))


def orders(tmp_path: Path, *argv: str, programs: int = 1, log_bytes_max: int = 1 << 20) -> Orders:
    return Orders(
        programs=(Program(argv),) * programs,
        cwd=tmp_path,
        env=subject_environment({}),
        log=tmp_path / "log",
        log_bytes_max=log_bytes_max,
    )


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def wait_for_log(processes: Processes, word: str) -> None:
    """Wait for a complete line with the word in the log: unbuffered Python writes in pieces."""

    def is_there() -> bool:
        processes.poll(0)
        return word in processes.log_tail().rpartition("\n")[0]

    wait_until(is_there, processes.log_tail)


@pytest.fixture(params=["with a cgroup", "without a cgroup"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to know which processes belong to a subject."""
    if request.param == "without a cgroup":
        monkeypatch.setattr(processes_module, "make_group", lambda: None)


DAEMON = """
import os, signal
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("daemon", os.getpid(), flush=True)
        signal.pause()
    os._exit(0)
os.wait()
"""


@pytest.mark.usefixtures("either")
def test_a_daemon_belongs_to_the_tree_and_ends_with_it(tmp_path: Path) -> None:
    with Processes(orders(tmp_path, *python(DAEMON))) as processes:
        wait_for_log(processes, "daemon")
        assert processes.wait(time.monotonic() + 30), "the first process ends by itself"
        daemon = int(processes.log_tail().split()[1])
        assert daemon in processes.pids()
        assert daemon in {p.pid for p in processes.tree.sample().processes.values()}
        assert processes.alive()
        processes.end(5)
    assert not Path(f"/proc/{daemon}").exists()


@pytest.mark.usefixtures("either")
def test_a_supervisor_that_is_killed_takes_the_program_with_it(tmp_path: Path) -> None:
    with Processes(orders(tmp_path, *python("print('up', flush=True); input()"))) as processes:
        wait_for_log(processes, "EOF")
    with Processes(
        orders(tmp_path, *python("import signal; print('up', flush=True); signal.pause()"))
    ) as processes:
        wait_for_log(processes, "up")
        (pid,) = processes.started
        kept = processes._supervisor
        assert kept is not None
        os.kill(kept.pid, signal.SIGKILL)
        wait_until(lambda: has_ended(pid), "it ends with its supervisor")


def test_a_program_has_no_terminal_no_input_and_a_session_of_its_own(tmp_path: Path) -> None:
    code = "import os, sys; print(os.getsid(0) == os.getpid(), repr(sys.stdin.read()))"
    with Processes(orders(tmp_path, *python(code))) as processes:
        assert processes.wait(time.monotonic() + 30)
        processes.end(0)
        assert processes.log_tail().strip() == "True ''"


def test_one_that_prints_without_end_is_never_blocked_and_its_log_is_bounded(
    tmp_path: Path,
) -> None:
    code = "import sys; [sys.stdout.write('x' * 65535 + '\\n') for _ in range(1000)]; print('end')"
    made = orders(tmp_path, *python(code), log_bytes_max=100_000)
    with Processes(made) as processes:
        assert processes.wait(time.monotonic() + 60), "it came to its end"
        processes.end(0)
    assert (tmp_path / "log").stat().st_size < 200_000
    assert processes.log_tail().endswith("end\n")
    assert "bytes dropped" in (tmp_path / "log").read_text()


def test_one_that_cannot_be_started_says_why(tmp_path: Path) -> None:
    for program, why in (("no-such-program", "No such file"), (str(tmp_path), "Permission denied")):
        with (
            pytest.raises(StartError, match=why),
            Processes(orders(tmp_path, program)),
        ):
            pass


def test_one_that_is_to_have_more_open_files_than_there_may_be_is_not_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (100, 120))
    made = orders(tmp_path, *python("import resource as r; print(r.getrlimit(r.RLIMIT_NOFILE))"))
    with Processes(dataclasses.replace(made, files=120)) as processes:
        assert processes.wait(time.monotonic() + 30)
        processes.end(0)
        assert processes.log_tail().strip() == "(120, 120)", "no less, and it cannot raise it"
    with (
        pytest.raises(StartError, match="to have 121 open files, and the hard limit is 120"),
        Processes(dataclasses.replace(made, files=121)),
    ):
        pass


def test_several_are_started_together_and_each_end_is_told(tmp_path: Path) -> None:
    with Processes(orders(tmp_path, "sh", "-c", "exit 4", programs=3)) as processes:
        assert processes.wait(time.monotonic() + 30)
        assert [str(end) for end in processes.exits] == ["exit code 4"] * 3
        assert not processes.alive()


def test_groups_of_a_dead_run_are_swept_and_those_of_a_live_one_stay() -> None:
    mine = cgroup.make_group()
    if mine is None:
        return  # no group can be created here; the supervisor's descendants are used instead
    stale = cgroup.Group(mine.path.with_name(f"{cgroup.PREFIX}1-999999999-1"))
    stale.path.mkdir(exist_ok=True)
    cgroup.sweep()
    assert not stale.path.exists()
    assert mine.path.exists()
    mine.remove()
    assert not mine.path.exists()
