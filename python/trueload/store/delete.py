"""Deletes runs of a store, and makes its file smaller.

How: a run's rows are removed. Of the run itself only its number stays, marked as deleted, because a
missing number is damage. A run is held while it is deleted, so that nobody adds to it. A damaged
file is left as it is. Uses what is private to ``store``.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from trueload.errors import ExitCode, UserError
from trueload.store.file import StoreError, read_error, write_error
from trueload.store.rows import RUN_COLUMNS, Run, checksum_of, run_fields
from trueload.store.runs import Store
from trueload.store.tags import remove_tag

AT_ONCE = 100  # each takes an open file until all of them are gone


def delete_runs(store: Store, runs: Sequence[Run]) -> list[Run]:
    """Delete these runs except those that are still going on; return the runs that are gone. Raises
    ``StoreError``, also for a damaged store."""
    if runs:
        _check(store)
    deleted: list[Run] = []
    for start in range(0, len(runs), AT_ONCE):
        with contextlib.ExitStack() as held:
            some = [run for run in runs[start : start + AT_ONCE] if _hold(store, run, held)]
            tags = store.tags()
            with store._writing() as db:
                for run in some:
                    _delete(db, run)
                    for name in [name for name, of in tags.items() if of == run.id]:
                        remove_tag(db, name)
        for run in some:
            shutil.rmtree(_detached_folder(store.path) / run.id, ignore_errors=True)
        deleted += some
    return deleted


def shrink(store: Store) -> int:
    """Give the free space in the store's file back to the disk; return its size in bytes then.
    Raises ``StoreError``."""
    db = store._db
    try:
        with db.unlimited():
            db.execute("VACUUM")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except sqlite3.Error as error:
        failed = write_error(store.path, error)
        hint = f"{failed.hint}; the runs are deleted, and new ones take their room"
        raise StoreError(failed.message, hint, ExitCode.OUTPUT) from error
    return file_bytes(store)


def file_bytes(store: Store) -> int:
    """Size in bytes of the store's file and of the log beside it."""
    paths = (store.path, store.path.with_name(f"{store.path.name}-wal"))
    return sum(path.stat().st_size for path in paths if path.exists())


def _check(store: Store) -> None:
    if store._unwritable is not None:
        raise store._unwritable
    try:
        with store._db.unlimited():
            found = store._db.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.DatabaseError as error:
        raise read_error(store.path, error) from error
    if found != "ok":
        raise read_error(store.path, found.splitlines()[-1])


def _hold(store: Store, run: Run, held: contextlib.ExitStack) -> bool:
    """Hold a run; return False if somebody adds to it, or may."""
    if store._as_it_is(store._run_by_seq(run.seq)).state == "running":
        return False
    try:
        held.enter_context(store._lock(run))
    except UserError:
        return False
    return True


def _detached_folder(store: Path) -> Path:
    """The folder with the output of runs that earlier versions detached, each by its id."""
    real = Path(os.path.realpath(store))
    return real.with_name(f"{real.name}-detached")


def _delete(db: sqlite3.Connection, run: Run) -> None:
    gone = replace(
        run,
        kind="",
        title="",
        command=(),
        plan=None,
        seed=None,
        started_at="",
        state="deleted",
        ended_at=None,
        row_count=0,
    )
    fields = run_fields(gone)
    columns = ", ".join(f"{name} = ?" for name in RUN_COLUMNS.split(", "))
    db.execute("DELETE FROM rows WHERE run_seq = ?", (run.seq,))
    db.execute(f"UPDATE runs SET {columns} WHERE seq = ?", (*fields, checksum_of(fields), run.seq))
