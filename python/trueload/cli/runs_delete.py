"""``trueload runs delete`` and ``runs prune``: remove runs that are no longer needed."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from trueload.commands.declarations import option_parser
from trueload.commands.options import AsJsonOption
from trueload.commands.stored_runs import run_argument
from trueload.errors import ExitCode, UserError
from trueload.store.delete import delete_runs, file_bytes, shrink
from trueload.store.rows import Run
from trueload.store.runs import Store
from trueload.units import AGE_NS_MAX, counted, format_size, parse_count, parse_duration


def _age(text: str) -> int:
    return parse_duration(text, AGE_NS_MAX)


RunsArgument = Annotated[
    list[str] | None,
    run_argument("RUN…", "Runs to delete, each by id, start of its id, tag, or last."),
]
OlderThanOption = Annotated[
    int | None,
    typer.Option(
        "--older-than",
        metavar="TIME",
        parser=option_parser(_age),
        help="Delete every run that began longer ago than this, such as 30d or 12h.",
    ),
]
KeepOption = Annotated[
    int,
    typer.Option(
        "--keep",
        metavar="COUNT",
        parser=option_parser(parse_count),
        help="Number of latest runs to keep.",
    ),
]


def register(runs: typer.Typer) -> None:
    runs.command("delete")(delete)
    runs.command("prune")(prune)


def delete(
    runs: RunsArgument = None, older_than: OlderThanOption = None, as_json: AsJsonOption = False
) -> int:
    """Delete runs for good, and shrink the store. A run in progress is not deleted.

    Example: trueload runs delete --older-than 30d
    """
    if bool(runs) == (older_than is not None):
        raise UserError(
            "runs delete takes either runs or --older-than",
            "name runs (`trueload runs list`), or add for example --older-than 30d",
        )
    with Store.open() as store:
        if older_than is None:
            named = {(run := store.find_run(selector)).seq: run for selector in runs or ()}
            return _delete(store, _refuse_running(list(named.values())), as_json=as_json)
        since = datetime.now(UTC) - timedelta(microseconds=older_than / 1000)
        old = [run for run in store.runs() if datetime.fromisoformat(run.started_at) < since]
        return _delete(store, old, as_json=as_json)


def prune(keep: KeepOption, as_json: AsJsonOption = False) -> int:
    """Delete all runs except the latest, and shrink the store. A run in progress is not deleted.

    Example: trueload runs prune --keep 100
    """
    with Store.open() as store:
        every = store.runs()
        return _delete(store, every[: max(0, len(every) - keep)], as_json=as_json)


def _refuse_running(runs: list[Run]) -> list[Run]:
    for run in runs:
        if run.state == "running":
            raise UserError(
                f"run {run.id} is still running, and nothing was deleted",
                "wait for its end, or interrupt it: `pgrep -af trueload` shows its process",
            )
    return runs


def _delete(store: Store, runs: Sequence[Run], *, as_json: bool) -> int:
    """Delete the runs, and report what was deleted."""
    before = file_bytes(store)
    deleted = delete_runs(store, runs)
    failed = None
    try:
        after = shrink(store) if deleted else before
    except UserError as error:
        failed, after = error, file_bytes(store)
    gone = {run.seq for run in deleted}
    kept = [run for run in runs if run.seq not in gone]
    freed = max(0, before - after)
    if as_json:
        result = {"deleted": [run.id for run in deleted], "going_on": [run.id for run in kept]}
        sys.stdout.write(json.dumps({**result, "freed_bytes": freed, "store_bytes": after}) + "\n")
    else:
        sys.stdout.write(
            f"deleted {counted(len(deleted), 'run')}, {format_size(freed)} ({freed:,} bytes) freed;"
            f" the store has {format_size(after)}\n"
        )
    for run in kept:
        sys.stderr.write(f"note: run {run.id} is still running, and was not deleted\n")
    if failed is not None:
        raise failed
    return ExitCode.OK
