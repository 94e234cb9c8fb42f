"""`trueload suite new`: a suite of one's own, as files in the current folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from trueload.errors import UserError
from trueload.suites.templates import files_of


def new_suite(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help=("Name of the suite; letters, digits and the characters . _ + - are allowed."),
        ),
    ],
) -> None:
    """Create a suite of your own in this folder: the suite, the contract of its subjects, and an
    example subject. It can be run at once.

    Example: trueload suite new my-api
    """
    from trueload.subjects.manifest import NAME_PATTERN  # imported late, with all models

    if not NAME_PATTERN.fullmatch(name):
        raise UserError(
            f"{name!r} is not a name of letters, digits and . _ + -", "trueload suite new my-api"
        )
    files = {Path(path): text for path, text in files_of(name).items()}
    for path in files:
        if path.exists() or path.is_symlink():
            raise UserError(f"{path} already exists", "choose another name, or edit that file")
    for path, text in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise UserError(
                f"{path} cannot be created: {error.strerror}", "check the rights of this folder"
            ) from None
        sys.stdout.write(f"made {path}\n")
    sys.stdout.write(f"next: trueload suite run {name}\n")
