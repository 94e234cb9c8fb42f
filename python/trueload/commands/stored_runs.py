"""The runs of the store, as words for the completion of a command line."""

from __future__ import annotations

from typing import Any

import typer

from trueload.errors import UserError
from trueload.store.runs import Store, default_path

OFFERED_MAX = 100


def run_argument(metavar: str, text: str) -> Any:
    """Return an argument that names stored runs."""
    return typer.Argument(metavar=metavar, help=text, autocompletion=complete_run)


def complete_run(incomplete: str) -> list[tuple[str, str]]:
    """Return each run whose name starts with ``incomplete``, with what it was.

    `last` comes first, then runs with a tag, then the others, the latest first. An unreadable store
    gives no words: completion is no place for an error.
    """
    if not default_path().exists():
        return []
    try:
        with Store.open() as store:
            runs, tags = store.runs(), store.tags()
    except (UserError, OSError):
        return []
    titles = {run.id: run.title for run in reversed(runs)}
    named = [(name, titles[run]) for name, run in tags.items() if run in titles]
    offered = [("last", "the latest run"), *named, *titles.items()]
    return [each for each in offered if each[0].startswith(incomplete)][:OFFERED_MAX]
