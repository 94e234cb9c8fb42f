"""What the commands of ``trueload subjects`` share: SELECTs, and how they print."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trueload.commands.folders import find_folder
from trueload.errors import UserError
from trueload.text import plain

if TYPE_CHECKING:
    from trueload.subjects.manifest import Subject
    from trueload.subjects.selection import Entry, OnBroken

Selects = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SELECT",
        help=(
            "Subjects to use, by NAME, LANGUAGE or LANGUAGE/NAME, with :VARIANT for one variant;"
            " ! excludes.  [default: all]"
        ),
    ),
]


def selected(selects: Sequence[str] | None, on_broken: OnBroken) -> list[Subject]:
    from trueload.subjects.selection import parse_selects, select_subjects  # not for a help

    return select_subjects(find_folder("subjects"), parse_selects(selects or ()), on_broken)


def going_on(selects: Sequence[str] | None, on_broken: OnBroken) -> list[Subject]:
    """Without those that are broken, unless one of them is asked for by its name."""
    from trueload.subjects.selection import parse_selects, unless_named

    return selected(selects, unless_named(parse_selects(selects or ()), on_broken))


def report_broken(entry: Entry, why: UserError) -> None:
    sys.stderr.write(f"note: {plain(entry.name)} is broken: {plain(why.message)}\n")


def print_json(key: str, value: Any) -> None:
    sys.stdout.write(json.dumps({key: value}, indent=1) + "\n")


def print_line(line: str) -> None:
    sys.stdout.write(plain(line).rstrip() + "\n")
    sys.stdout.flush()
