"""Ctrl-C while a command still starts: it ends with 130 and says nothing, wherever it comes.

How: the interpreter signals itself when it is about to import a certain module, or the module of a
certain number. So every moment of the start can be hit exactly, and none is missed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from harness import ROOT, Finished, Trueload
from trueload.errors import ExitCode

# Imported by the interpreter before anything else. WHERE is a module's name, or how many modules
# are imported after the entry point.
SITE = """
import os, signal, sys

class Interrupting:
    def __init__(self):
        self.count = None

    def find_spec(self, name, path=None, target=None):
        where = os.environ["WHERE"]
        if name == "trueload.cli.app":
            self.count = 0
        elif self.count is not None:
            self.count += 1
        if where in (name, str(self.count)):
            os.environ["WHERE"] = ""
            for number in os.environ["SIGNALS"].split():
                os.kill(os.getpid(), int(number))

sys.meta_path.insert(0, Interrupting())
"""
MODULES = ("trueload.cli.app", "typer", "trueload.commands.protocols", "trueload.errors")
STEP = 60  # modules between two moments; a command imports some hundred
QUIET = Finished(ExitCode.INTERRUPTED, "", "")
INTERRUPTED = Finished(
    ExitCode.INTERRUPTED,
    "",
    "error: interrupted\nhint: what had been saved is kept: `trueload runs list` shows it\n",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sitecustomize.py").write_text(SITE)
    return tmp_path


def interrupted(
    trueload: Trueload,
    folder: Path,
    where: str,
    *words: str,
    signals: tuple[int, ...] = (signal.SIGINT,),
    ignored: bool = False,
) -> Finished:
    """How a command ends that is signalled at a moment of its start."""
    path = os.pathsep.join([str(folder), str(ROOT / "python")])
    extra = {"PYTHONPATH": path, "WHERE": where, "SIGNALS": " ".join(map(str, map(int, signals)))}
    action = signal.SIG_IGN if ignored else signal.SIG_DFL
    process = trueload.start(*words, env=extra, prepare=lambda: begin_with(action))
    out, err = process.communicate(timeout=60)
    return Finished(process.returncode, out, err)


def begin_with(action: signal.Handlers) -> None:
    """Let the command begin with SIGINT as it is in a shell, or as behind `&`."""
    signal.signal(signal.SIGINT, action)


@pytest.mark.parametrize("where", MODULES)
@pytest.mark.parametrize(
    ("words", "times"), [("--version", 1), ("--help", 1), ("runs list", 1), ("runs list", 2)]
)
def test_ctrl_c_at_an_early_import_ends_with_130_and_nothing_else(
    trueload: Trueload, folder: Path, words: str, times: int, where: str
) -> None:
    signals = (signal.SIGINT,) * times
    assert interrupted(trueload, folder, where, *words.split(), signals=signals) == QUIET


@pytest.mark.parametrize("words", [("--help",), ("runs", "list"), ("http", "--help")], ids=str)
def test_ctrl_c_at_any_import_says_nothing_or_that_it_was_interrupted(
    trueload: Trueload, folder: Path, words: tuple[str, ...]
) -> None:
    at, codes = 0, [130]
    while codes[-1] == 130:
        ended = interrupted(trueload, folder, str(at), *words)
        assert ended.code == 0 or ended in (QUIET, INTERRUPTED), f"at import {at}"
        codes.append(ended.code)
        at += STEP
    assert at > 2 * STEP, "the first imports were hit"


def test_sigterm_is_what_it_was(trueload: Trueload, folder: Path) -> None:
    early = interrupted(trueload, folder, "typer", "runs", "list", signals=(signal.SIGTERM,))
    assert early == Finished(-signal.SIGTERM, "", "")
    late = interrupted(
        trueload, folder, "trueload.cli.runs", "runs", "list", signals=(signal.SIGTERM,)
    )
    assert late == INTERRUPTED


def test_a_second_ctrl_c_while_the_first_is_reported_leaves_at_once(trueload: Trueload) -> None:
    code = (
        "import os, signal, sys\n"
        "import trueload.cli.app as app, trueload.cli.doctor as doctor\n"
        "from trueload.__main__ import main\n"
        "interrupt = lambda *rest: os.kill(os.getpid(), signal.SIGINT)\n"
        "doctor.gather = app._report_error = interrupt\n"
        "sys.argv = ['trueload', 'doctor']\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=trueload.env(), capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_ctrl_c_that_is_to_be_ignored_is(trueload: Trueload, folder: Path) -> None:
    ended = interrupted(trueload, folder, "typer", "--version", ignored=True)
    assert (ended.code, ended.err) == (0, "")


def test_nothing_that_takes_time_is_imported_before_ctrl_c_has_its_handler() -> None:
    code = "import os, signal, sys; there = {*sys.modules}; import trueload.__main__;"
    code += "print(*{*sys.modules} - there)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        check=True,
    )
    light = {"__future__", "importlib", "warnings", "trueload", "trueload.__main__"}
    assert {name for name in done.stdout.split() if "._bootstrap" not in name} <= light
