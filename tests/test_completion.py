"""`trueload completion`: the scripts, and what they offer at each position of a command line."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from harness import Trueload
from trueload.cli.app import COMMANDS
from trueload.store.runs import Store


def offered(trueload: Trueload, line: str, **env: str) -> list[str]:
    """What completion offers bash for the last word of a line."""
    words = line.split(" ")
    asked = {
        "_TRUELOAD_COMPLETE": "complete_bash",
        "COMP_WORDS": "\n".join(words),
        "COMP_CWORD": str(len(words) - 1),
        **env,
    }
    ended = trueload.run(env=asked)
    assert (ended.code, ended.err) == (0, ""), ended
    return ended.out.split()


def test_commands_verbs_options_and_choices_are_offered(trueload: Trueload) -> None:
    assert offered(trueload, "trueload ") == list(COMMANDS)
    assert offered(trueload, "trueload re") == ["report"]
    assert offered(trueload, "trueload runs p") == ["prune"]
    assert offered(trueload, "trueload http --re") == [
        *("--repeat", "--requests", "--refill", "--read-rate"),
        *("--resolve", "--replay", "--replay-host", "--request-log"),
    ]
    assert offered(trueload, "trueload tcp --arrivals ") == ["constant", "poisson"]
    assert offered(trueload, "trueload completion ") == ["bash", "zsh", "fish"]
    assert offered(trueload, "trueload http --rate ") == []


@pytest.mark.parametrize(
    "command",
    ["runs show", "runs export", "runs diff", "runs diff last", "runs delete", "report last"],
)
def test_stored_runs_are_offered_the_latest_first(trueload: Trueload, command: str) -> None:
    with Store.open(trueload.store) as store:
        runs = [store.new_run(kind="http", title=title, command=[]) for title in "ab"]
        store.tag(runs[0], "base")
    made = [run.id for run in runs]
    assert offered(trueload, f"trueload {command} ") == ["last", "base", *reversed(made)]
    assert offered(trueload, f"trueload {command} {made[0]}") == [made[0]]
    assert offered(trueload, f"trueload {command} b") == ["base"]


def test_a_store_that_cannot_be_read_offers_no_runs(trueload: Trueload, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("no store")
    assert offered(trueload, "trueload runs show ", TRUELOAD_STORE=str(broken)) == []
    missing = tmp_path / "missing"
    assert offered(trueload, "trueload runs show ", TRUELOAD_STORE=str(missing)) == []
    assert not missing.exists()


def test_other_shells_are_told_the_help_too(trueload: Trueload) -> None:
    words = {"_TYPER_COMPLETE_ARGS": "trueload com", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    for shell in ("zsh", "fish"):
        output = trueload.run(env={"_TRUELOAD_COMPLETE": f"complete_{shell}", **words}).out
        assert "completion" in output, shell
        assert "Print the completion script" in output, shell


def test_zsh_loads_its_script_from_a_file(trueload: Trueload) -> None:
    assert trueload.run("completion", "zsh").out.startswith("#compdef trueload\n")
    assert trueload.run("completion", "fish").out.startswith("complete --command trueload ")


def test_bash_completes_by_the_script(trueload: Trueload, tmp_path: Path) -> None:
    command = tmp_path / "trueload-here"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m trueload "$@"\n')
    command.chmod(0o755)
    script = trueload.run("completion", "bash").out
    asked = (
        "COMP_WORDS=(trueload suite l); COMP_CWORD=2\n"
        f"_trueload_completion {shlex.quote(str(command))}\n"
        'echo "${COMPREPLY[@]}"; complete -p trueload'
    )
    ended = subprocess.run(
        ["bash", "--norc", "-c", f"{script}\n{asked}"],
        env=trueload.env(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.splitlines()[0] == "list"
    assert ended.stdout.splitlines()[1].endswith("-F _trueload_completion trueload")
