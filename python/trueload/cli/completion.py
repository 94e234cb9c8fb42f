"""``trueload completion``: the script that makes a shell complete trueload's command lines.

How: the script is typer's. At each press of Tab it starts ``trueload`` with ``VARIABLE`` set, and
``answer`` prints what fits. Only the module of the command being typed is imported.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated

import typer
import typer.core
from typer.completion import get_completion_inspect_parameters, shell_complete

from trueload.errors import ExitCode

VARIABLE = "_TRUELOAD_COMPLETE"
# The variables in which the shells' scripts pass the words of the line.
_WORDS = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")


class Shell(StrEnum):
    """The shells that can complete."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


ShellArgument = Annotated[
    Shell,
    typer.Argument(metavar="SHELL", help=("Shell that the script is for: bash, zsh or fish.")),
]


def register(app: typer.Typer) -> None:
    app.command("completion")(print_script)


def print_script(shell: ShellArgument) -> int:
    """Print the completion script for a shell.

    To switch completion on in the current shell, run eval "$(trueload completion bash)", in zsh
    with zsh in place of bash. In fish, run trueload completion fish | source. To keep it on, add
    that line to the shell's start file.

    Example: trueload completion bash
    """
    # zsh loads it from a file only if `#compdef` is its first line.
    with contextlib.redirect_stdout(io.StringIO()) as script:
        _do(typer.core.TyperGroup(name="trueload"), f"source_{shell}")
    sys.stdout.write(script.getvalue().strip() + "\n")
    return ExitCode.OK


def answer(build: Callable[[str], typer.core.TyperGroup]) -> int:
    """Print the possible words at the cursor; ``build`` makes the parser, by the first word."""
    words = next((os.environ[name] for name in _WORDS if name in os.environ), "").split()
    return _do(build(words[1] if len(words) > 1 else ""), os.environ[VARIABLE])


def _do(group: typer.core.TyperGroup, instruction: str) -> int:
    get_completion_inspect_parameters()  # registers typer's shells
    return shell_complete(group, {}, "trueload", VARIABLE, instruction)
