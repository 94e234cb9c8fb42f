"""The start and end of every command: help, version, errors in two lines, exit codes, pipes."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sandbox
from harness import ROOT, Finished, Trueload, start_server
from report_samples import put_records
from samples import good_record
from subject_world import World
from trueload import __version__
from trueload.cli.app import COMMANDS, build_command
from trueload.commands.foreign_flags import ALIASES
from trueload.errors import ExitCode
from trueload.runner.supervisor import descendants
from trueload.store.runs import Store
from waiting import has_ended, wait_until

URL = "http://127.0.0.1:9/"

# (the test's name, command line, words of the error, words of the hint)
WRONG = [
    ("an unknown command", "htttp", "no command 'htttp'", "http?"),
    ("a command like no other", "frobnicate", "no command 'frobnicate'", "--help"),
    ("an unknown verb", "runs lst", "no command 'lst'", "list?"),
    ("an unknown flag", "http --frobnicate", "no option --frobnicate", "trueload http --help"),
    ("a flag that is nearly right", f"http {URL} --duratio 1s", "--duratio", "--duration"),
    ("a flag of trueload itself", "--verzion", "no option --verzion", "--version"),
    ("a missing argument", "compare", "missing argument", "trueload compare URL URL"),
    ("a flag without its value", f"http {URL} -c", "-c", "write -c COUNT"),
    ("the same, of a verb", "runs export x -o", "-o", "write -o FILE"),
    ("another tool's flag, where ours would not fit", "doctor -n 3", "-n", "doctor --help"),
    ("a flag of curl that the suite has not", "suite run -m GET", "-m", "suite run --help"),
    ("an argument too many", f"doctor {URL}", URL, "trueload doctor --place"),
    ("a wrong value", f"http {URL} -c many", "many", ""),
]


def assert_two_lines(ended: Finished, what: str) -> tuple[str, str]:
    """Check for an error and a hint on stderr, nothing on stdout, and exit code 2."""
    assert ended.code == ExitCode.USAGE, (what, ended)
    assert ended.out == "", (what, ended)
    lines = ended.err.splitlines()
    assert len(lines) == 2, (what, ended)
    assert lines[0].startswith("error: "), (what, ended)
    assert lines[1].startswith("hint: "), (what, ended)
    return lines[0], lines[1]


@pytest.mark.parametrize(("sentence", "words", "error", "hint"), WRONG, ids=[w[0] for w in WRONG])
def test_a_mistake_gets_one_line_and_one_hint(
    trueload: Trueload, sentence: str, words: str, error: str, hint: str
) -> None:
    error_line, hint_line = assert_two_lines(trueload.run(*words.split()), sentence)
    assert error in error_line, sentence
    assert hint in hint_line, sentence


def test_what_means_the_same_elsewhere_is_taken_but_not_listed(trueload: Trueload) -> None:
    words = set(trueload.run("http", "--help").out.replace(",", " ").split())
    assert not words & set(ALIASES)
    assert set(ALIASES.values()) <= words
    server = start_server(trueload)
    given = ("-n", "20", "-m", "HEAD", "-c", "2", "--json", "-", "--no-save")
    ended = trueload.run("http", server.url.removeprefix("http://"), *given)
    record = json.loads(ended.out)
    assert record["counts"]["ok"] == 20, ended
    assert record["plan"]["url"] == server.url
    request = record["plan"]["generate"]["request"]
    assert request["method"] == "HEAD", request
    for command in ("compare", "ws"):
        assert "no option -n" not in trueload.run(command, "-n", "1").err


def test_a_flag_of_its_own_is_not_taken_for_that_of_another_tool(trueload: Trueload) -> None:
    assert "no option -n" in trueload.run("runs", "list", "-n", "1").err


def test_help_lists_every_command_in_plain_text(trueload: Trueload) -> None:
    ended = trueload.run("--help", env={"FORCE_COLOR": "1", "TERM": "xterm-256color"})
    assert ended.code == 0
    listed = ended.out.partition("Commands:")[2]
    assert [line.split()[0] for line in listed.splitlines() if line.strip()] == list(COMMANDS)
    assert all(char.isprintable() or char == "\n" for char in ended.out)


def list_verbs() -> Iterator[tuple[str, ...]]:
    """Yield the words of every command that is no group: ("http",), ("runs", "list"), …"""
    for name, command in build_command().commands.items():
        verbs = getattr(command, "commands", None)
        yield from [(name,)] if verbs is None else [(name, verb) for verb in verbs]


@pytest.mark.parametrize("verb", list(list_verbs()), ids=" ".join)
def test_each_command_has_help_with_an_example(trueload: Trueload, verb: tuple[str, ...]) -> None:
    ended = trueload.run(*verb, "--help", env={"FORCE_COLOR": "1"})
    assert ended.code == 0, ended
    example = rf"Example: (sudo )?trueload {' '.join(verb)}\b"
    assert re.search(example, " ".join(ended.out.split())), ended
    assert "\x1b" not in ended.out


@pytest.mark.parametrize("words", [(), ("runs",), ("subjects",), ("suite",)], ids=str)
def test_nothing_asked_is_answered_with_the_help(
    trueload: Trueload, words: tuple[str, ...]
) -> None:
    ended = trueload.run(*words)
    assert ended.code == ExitCode.USAGE
    assert ended.out == ""
    assert "Commands:" in ended.err


def test_the_version_is_one_line(trueload: Trueload) -> None:
    ended = trueload.run("--version")
    assert (ended.code, ended.out, ended.err) == (0, f"trueload {__version__}\n", "")


def test_serving_does_not_wait_for_the_statistics() -> None:
    code = (
        "import sys; from trueload.cli.app import build_app; build_app('serve');"
        "sys.exit(any(name in sys.modules for name in ('scipy', 'numpy', 'hdrh')))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_the_help_of_all_imports_no_command() -> None:
    code = (
        "import sys, trueload.cli.app as app; code = app.run(['--help']);"
        "sys.exit(code or any(name in sys.modules for name in ('pydantic', 'trueload.cli.load')))"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, capture_output=True)
    assert (ended.returncode, ended.stderr) == (0, b"")


def run_broken(trueload: Trueload, exception: str) -> Finished:
    """Run `trueload doctor` with its work replaced by something that raises."""
    code = (
        "import sys; import trueload.cli.doctor as d\n"
        "def broken(*a, **k): raise " + exception + "\n"
        "d.gather = broken\n"
        "from trueload.cli.app import main; sys.exit(main(['doctor']))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env=trueload.env(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return Finished(ended.returncode, ended.stdout, ended.stderr)


def test_a_bug_of_ours_gets_two_lines_and_a_file(trueload: Trueload) -> None:
    ended = run_broken(trueload, "RuntimeError('one\\nline\\x1b[31m')")
    assert ended.code == ExitCode.INTERNAL
    error, hint = ended.err.splitlines()
    assert "RuntimeError: one line" in error
    assert "report" in hint
    assert "\x1b" not in ended.err
    details = Path(error.rpartition("the details are in ")[2])
    assert details.is_relative_to(trueload.folder)
    assert "Traceback" in details.read_text()


def test_a_bug_is_told_even_where_nothing_can_be_written(trueload: Trueload) -> None:
    trueload.folder.mkdir(parents=True, exist_ok=True)
    (trueload.folder / "state").write_text("in the way")
    ended = run_broken(trueload, "RuntimeError('x')")
    assert ended.code == ExitCode.INTERNAL
    assert len(ended.err.splitlines()) == 2
    details = Path(ended.err.splitlines()[0].rpartition("the details are in ")[2])
    assert details.is_file()
    details.unlink()


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (
            '__import__("resource").setrlimit(9, (2**28, 2**28)) or [__import__("threading")'
            ".Thread(target=__import__('threading').Event().wait, daemon=True).start()"
            " for _ in range(99)]",
            "this machine grants no more threads",
        ),
        ("MemoryError", "this machine grants no more memory"),
        (
            "PermissionError(1, 'Operation not permitted')",
            "this machine forbids a system call that trueload needs: Operation not permitted",
        ),
    ],
)
def test_what_the_machine_refuses_is_no_bug(trueload: Trueload, raised: str, expected: str) -> None:
    ended = run_broken(trueload, raised)
    assert ended.code == ExitCode.MACHINE, ended.err
    error, hint = ended.err.splitlines()
    assert error == f"error: {expected}"
    assert hint.startswith("hint: ")


@pytest.mark.skipif(not sandbox.CALLS, reason="system calls are numbered for x86-64")
def test_a_sandbox_that_forbids_to_ask_for_limits_is_no_obstacle(trueload: Trueload) -> None:
    def forbid() -> None:
        sandbox.refuse("getrlimit", "setrlimit", "prlimit64")

    process = trueload.start("doctor", "--json", "--quick", prepare=forbid)
    out, err = process.communicate(timeout=60)
    assert process.returncode in (ExitCode.OK, ExitCode.INVALID), err
    assert json.loads(out)


@pytest.mark.skipif(not sandbox.CALLS, reason="system calls are numbered for x86-64")
def test_an_engine_without_threads_is_told(trueload: Trueload) -> None:
    script = (
        "import sandbox, subprocess, sys, errno\n"
        "keep = subprocess.Popen.__init__\n"
        "def start(self, *a, **k):\n"
        "    no_thread = lambda: sandbox.refuse('clone3', error=errno.EAGAIN)\n"
        "    keep(self, *a, preexec_fn=no_thread, **k)\n"
        "subprocess.Popen.__init__ = start\n"
        "from trueload.cli.app import main\n"
        "sys.exit(main(['serve', 'http', '--listen', '127.0.0.1:0']))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script],
        env={**trueload.env(), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == ExitCode.MACHINE, ended.stderr
    error, hint = ended.stderr.splitlines()
    assert error.startswith("error: the engine's machine grants no thread for ")
    assert hint.startswith("hint: raise its limits")


def test_an_error_with_its_own_exit_code_keeps_it(trueload: Trueload) -> None:
    raised = "__import__('trueload.errors').errors.UserError('a\\nb', 'c', 3)"
    ended = run_broken(trueload, raised)
    assert (ended.code, ended.out, ended.err) == (3, "", "error: a b\nhint: c\n")


def test_ctrl_c_ends_with_130_and_no_traceback(trueload: Trueload) -> None:
    ended = run_broken(trueload, "KeyboardInterrupt")
    assert ended.code == ExitCode.INTERRUPTED
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_measures_nothing_ends_its_children_when_it_is_told_to_end(
    trueload: Trueload, number: signal.Signals
) -> None:
    process = trueload.start("doctor")
    children: set[int] = set()
    while not children and process.poll() is None:
        children = descendants(process.pid)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == ExitCode.INTERRUPTED
    assert [line.split(":")[0] for line in err.splitlines()] == ["error", "hint"]
    wait_until(lambda: all(map(has_ended, children)), "all are gone")


def test_a_folder_that_is_gone_and_a_name_that_is_too_long_are_told(
    trueload: Trueload, tmp_path: Path
) -> None:
    long = trueload.run("runs", "compare", "9" * 400, "9" * 400)
    assert (long.code, len(long.err.splitlines())) == (2, 2)
    assert "File name too long" in long.err
    gone = tmp_path / "gone"
    gone.mkdir()

    def leave() -> None:
        os.chdir(gone)
        gone.rmdir()

    process = trueload.start("subjects", "list", "rust", prepare=leave)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err


def test_a_reader_that_goes_away_is_no_reason_to_complain(trueload: Trueload) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = trueload.start("--help", stdout=writer)
    os.close(writer)
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait(60) == 128 + signal.SIGPIPE


def test_a_full_disk_behind_stdout_is_told(trueload: Trueload) -> None:
    with open("/dev/full", "w") as full:
        process = trueload.start("--help", stdout=full.fileno())
    assert process.stderr is not None
    lines = process.stderr.read().splitlines()
    assert process.wait(60) == ExitCode.OUTPUT
    assert len(lines) == 2
    assert "No space left" in lines[0]


def test_an_error_that_cannot_be_told_keeps_its_exit_code(trueload: Trueload) -> None:
    with open("/dev/full", "w") as full:
        process = trueload.start("bogus", stderr=full.fileno())
    assert process.wait(60) == ExitCode.USAGE


MUCH = ("runs", "export", "last")


@pytest.fixture
def much(trueload: Trueload) -> str:
    """What ``MUCH`` prints, which is more than a pipe or a terminal holds."""
    with Store.open(trueload.store) as store:
        put_records(store, [good_record()] * 12)
    printed = trueload.run(*MUCH)
    assert (printed.code, len(printed.out) > 150_000) == (0, True), printed
    return printed.out


def started_beside_a_node(trueload: Trueload, *words: str) -> tuple[subprocess.Popen[str], int]:
    """Start a command whose stdout is a full pipe, set non-blocking by another process.

    Returns the command and the reading end.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"." * 512)
    process = trueload.start(*words, stdout=writer)
    assert not os.get_blocking(writer), "it is not ours to change"
    os.close(writer)
    return process, reader


def test_a_stdout_that_does_not_block_is_written_as_a_whole(trueload: Trueload, much: str) -> None:
    process, reader = started_beside_a_node(trueload, *MUCH)
    # When it sleeps in poll, it has output that its reader must take.
    wait_until_asleep_in_poll(process.pid)
    with os.fdopen(reader) as pipe:
        output = pipe.read()
    assert output.lstrip(".") == much
    assert process.wait(60) == 0
    assert process.stderr is not None
    assert process.stderr.read() == ""


@pytest.mark.usefixtures("much")
def test_a_reader_of_such_a_stdout_may_go_away(trueload: Trueload) -> None:
    process, reader = started_beside_a_node(trueload, *MUCH)
    wait_until_asleep_in_poll(process.pid)
    os.close(reader)
    assert process.wait(60) == 128 + signal.SIGPIPE
    assert process.stderr is not None
    assert process.stderr.read() == ""


def wait_until_asleep_in_poll(pid: int) -> None:
    def is_asleep() -> bool:
        with contextlib.suppress(OSError):
            number = Path(f"/proc/{pid}/syscall").read_text().split()[0]
            return number in ("7", "271", "73")  # poll, ppoll; ppoll of arm64
        return False

    wait_until(is_asleep, "it waits for its reader")


def test_a_terminal_that_does_not_block_is_written_as_a_whole(
    trueload: Trueload, much: str
) -> None:
    ours, theirs = pty.openpty()
    os.set_blocking(theirs, False)
    process = trueload.start(*MUCH, stdout=theirs)
    os.close(theirs)
    output = b""
    with contextlib.suppress(OSError):  # EIO: no process has it open any more
        while chunk := os.read(ours, 4096):
            output += chunk
    os.close(ours)
    assert output.decode().replace("\r\n", "\n") == much
    assert process.wait(60) == 0


@pytest.mark.usefixtures("much")
def test_a_terminal_that_hangs_up_is_a_reader_that_goes_away(trueload: Trueload) -> None:
    ours, theirs = pty.openpty()
    process = trueload.start(*MUCH, stdout=theirs)
    os.close(theirs)
    os.read(ours, 16)
    os.close(ours)
    assert process.wait(60) == 128 + signal.SIGPIPE
    assert process.stderr is not None
    assert process.stderr.read() == ""


def test_text_that_an_encoding_does_not_have_is_escaped(world: World) -> None:
    world.add("fine").rename(world.subjects / "python" / "über")
    own = {**world.env, "PYTHONIOENCODING": "ascii"}
    listed = world.run("subjects", "list", env=own)
    assert listed.code == 2
    assert listed.out.startswith("python/\\xfcber  broken: ")
    assert listed.err.startswith("error: subjects/python/\\xfcber: ")


@pytest.mark.parametrize("closed", [(1,), (2,), (0, 1, 2)])
def test_a_stream_that_was_closed_before_is_as_good_as_one_that_nobody_reads(
    trueload: Trueload, tmp_path: Path, closed: tuple[int, ...]
) -> None:
    def prepare() -> None:
        for fd in closed:
            os.close(fd)

    port = start_server(trueload).port
    saved = tmp_path / "saved.json"
    url, few = f"http://127.0.0.1:{port}/", ("-c", "1", "--requests", "10")
    process = trueload.start("http", url, *few, "--json", saved, prepare=prepare)
    out, err = process.communicate(timeout=60)
    found = Finished(process.returncode, saved.read_text(), err).measured()
    assert found["counts"]["ok"] == 10
    assert out == "" if 1 in closed else "10 ok" in out
    assert trueload.run("runs", "list").out.count(url) == 1


@pytest.mark.parametrize("files", [6, 9])
def test_too_few_open_files_are_told_with_what_helps(trueload: Trueload, files: int) -> None:
    def prepare() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    flags = ("--requests", "1", "--no-save")
    process = trueload.start("http", "http://127.0.0.1:1/", *flags, prepare=prepare)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    error, hint = err.splitlines()
    assert "Too many open files" in error
    assert "ulimit -n" in hint


def test_doctor_gives_one_json_object(trueload: Trueload) -> None:
    ended = trueload.run("doctor", "--quick", "--json")
    assert ended.code == 0, ended
    shown = ended.json()
    assert set(shown) == {"status", "findings"}
    for finding in shown["findings"]:
        assert set(finding) == {"name", "status", "value", "consequence", "cure"}
        assert (finding["cure"] is None) == (finding["status"] in ("pass", "n/a"))


def test_doctor_says_the_same_in_text(trueload: Trueload) -> None:
    ended = trueload.run("doctor", "--quick")
    assert ended.code == 0, ended
    names = [
        finding["name"]
        for finding in trueload.run("doctor", "--quick", "--json").json()["findings"]
    ]
    for name in names:
        assert f" {name} " in ended.out, name


def test_doctor_fails_an_engine_that_is_none(trueload: Trueload, tmp_path: Path) -> None:
    for content, word in (
        ("#!/bin/sh\necho hello\n", "not a message"),
        ("", "cannot be started"),
    ):
        fake = tmp_path / "engine"
        fake.write_text(content)
        fake.chmod(0o755)
        ended = trueload.run("doctor", "--quick", "--json", env={"TRUELOAD_ENGINE": str(fake)})
        assert ended.code == 0, ended
        (finding,) = [f for f in json.loads(ended.out)["findings"] if f["name"] == "engine"]
        assert finding["status"] == "fail", word
        assert word in finding["value"]
