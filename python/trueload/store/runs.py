"""The store: every run and its rows in one SQLite file, kept whole.

How: WAL with ``synchronous=FULL``, and one transaction per row. So a row whose ``add_…`` has
returned survives ``kill -9`` and a power cut. Every row has a SHA-256 of its content, and every run
the number of its rows, so a flipped bit is noticed. What cannot be read is reported as
``DamagedRow``, never silently left out and never returned as if it were right. Order is by sequence
number, not by the clock. Several processes may use one store at once.

``Store.open`` raises ``UserError`` for a path that cannot be one; every later failure of the disk
is a ``StoreError``.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueload.closeable import Closeable
from trueload.errors import UserError
from trueload.ids import now_iso, run_id
from trueload.record.head import RecordHead
from trueload.store.file import (
    BUSY_TIMEOUT_S,
    Connection,
    StoreError,
    begin,
    connect,
    connect_to_read,
    default_path,
    prepare,
    read_error,
    write_error,
)
from trueload.store.lock import HeldError, RunLock, is_held
from trueload.store.rows import (
    ROW_COLUMNS,
    RUN_COLUMNS,
    SEQ_MAX,
    UNREADABLE,
    DamagedRow,
    Outcome,
    Row,
    Run,
    RunState,
    checksum_of,
    insert_row,
    insert_run,
    run_fields,
    to_head,
    to_row,
    to_run,
    to_text,
)
from trueload.store.tags import check_name, read_tags, remove_tag, write_tag

if TYPE_CHECKING:
    from trueload.record.schema import Record

__all__ = ["Store", "StoreError", "default_path"]


# Limits on reading behind a damaged page. So many numbers are tried one by one, which takes about
# half a second. ``MISSING_MAX`` missing rows are reported one by one.
ALONE_MAX = 50_000
CIRCLES_MAX = 8  # so many of these tries may take all of a statement's steps
MISSING_MAX = 10_000


class Store(Closeable):
    """An open store; a context manager. Open one per process and thread."""

    def __init__(
        self,
        path: Path,
        connection: Connection,
        unwritable: StoreError | None = None,
    ) -> None:
        self.path = path
        self._db = connection
        self._unwritable = unwritable
        self._wait_s = BUSY_TIMEOUT_S
        self._held: list[RunLock] = []

    @classmethod
    def open(cls, path: Path | None = None) -> Store:
        """Open, or create, the store at ``path`` (else ``default_path``). Raises ``UserError``.

        A store that is damaged, or on a disk that cannot be written, can be read as far as
        possible. Adding to it raises the error that says why not.
        """
        where = default_path() if path is None else path
        connection = connect(where)
        try:
            prepare(connection, where)
        except StoreError as why:
            connection.close()
            if not why.unwritable:
                raise
            return cls(where, connect_to_read(where, why), why)
        except BaseException:
            connection.close()
            raise
        return cls(where, connection)

    def close(self) -> None:
        """Close the file, and release the runs that were held."""
        for held in self._held:
            held.close()
        with contextlib.suppress(sqlite3.Error):
            self._db.close()

    def new_run(
        self,
        *,
        kind: str,
        title: str,
        plan: Any = None,
        seed: int | None = None,
        command: Sequence[str] = (),
    ) -> Run:
        """Begin a run, and hold it as ``hold_run`` does; ``plan`` is any value that JSON can hold.
        On disk when this returns."""
        with contextlib.ExitStack() as stack:
            with self._writing() as db:
                for _ in range(100):  # a short id may be taken; the next one is random again
                    run = Run(
                        seq=_next_seq(db, "runs"),
                        id=run_id(),
                        kind=kind,
                        title=title,
                        command=tuple(command),
                        plan=json.loads(to_text(plan)),
                        seed=seed,
                        started_at=now_iso(),
                        state="running",
                        ended_at=None,
                        row_count=0,
                    )
                    if db.execute("SELECT 1 FROM runs WHERE id = ?", (run.id,)).fetchone() is None:
                        break
                held = stack.enter_context(self._lock(run))
                insert_run(db, run)
            # Not before: a run that could not be written leaves its number to the next one.
            stack.pop_all()
            self._held.append(held)
        return run

    def hold_run(self, run: Run) -> None:
        """Reserve a run for this store until it is closed. Raises ``UserError`` if another store
        has it: two that go on with one run would do everything twice."""
        self._held.append(self._lock(run))

    def _lock(self, run: Run) -> RunLock:
        try:
            return RunLock(self.path, run.seq)
        except HeldError:
            raise UserError(
                f"run {run.id} is still running: another trueload adds to it",
                f"wait for its end, or interrupt it; `trueload runs show {run.id}` shows how far"
                " it is",
            ) from None

    def add_record(
        self, run: Run, record: Record, *, key: str = "", labels: Mapping[str, str] | None = None
    ) -> Row:
        """Add a measured row. On disk when this returns."""
        return self.add_row(run, "measured", None, key=key, labels=labels, record=record)

    def add_row(
        self,
        run: Run,
        outcome: Outcome,
        reason: str | None,
        *,
        key: str = "",
        labels: Mapping[str, str] | None = None,
        detail: str | None = None,
        record: Record | None = None,
    ) -> Row:
        """Add a row, with its reason if it was not measured. On disk when this returns."""
        with self._writing() as db:
            now = self._run_by_seq(run.seq)
            if now.state == "deleted":
                raise read_error(self.path, f"run {run.id} was deleted meanwhile")
            row = Row(
                seq=_next_seq(db, "rows"),
                number=now.row_count + 1,
                key=key,
                labels=dict(labels or {}),
                outcome=outcome,
                reason=reason,
                detail=detail,
                added_at=now_iso(),
                record=record,
            )
            insert_row(db, run, row)
            self._update_run(db, now, row_count=row.number)
        return row

    def end_run(self, run: Run, state: RunState = "finished") -> Run:
        """Say how a run ended. On disk when this returns."""
        with self._writing() as db:
            return self._update_run(db, self._run_by_seq(run.seq), state=state, ended_at=now_iso())

    def restore_run(self, run: Run, rows: Iterable[Row | DamagedRow]) -> Run:
        """Add a run of another store, with its rows; damaged ones are missing then, too.

        A run that is here already is left as it is.
        """
        if here := next((each for each in self.runs() if each.id == run.id), None):
            return here
        with self._writing() as db:
            restored = replace(run, seq=_next_seq(db, "runs"))
            insert_run(db, restored)
            for row in rows:
                if isinstance(row, Row):
                    insert_row(db, restored, replace(row, seq=_next_seq(db, "rows")))
        return restored

    def _update_run(self, db: sqlite3.Connection, run: Run, **changes: Any) -> Run:
        changed = replace(run, **changes)
        fields = run_fields(changed)
        db.execute(
            "UPDATE runs SET state = ?, ended_at = ?, row_count = ?, checksum = ? WHERE seq = ?",
            (changed.state, changed.ended_at, changed.row_count, checksum_of(fields), changed.seq),
        )
        return changed

    def tags(self) -> dict[str, str]:
        """The id of the run for each name that was given; that run may have been deleted."""
        return read_tags(self._db)

    def tag(self, run: Run, name: str) -> None:
        """Give a name to a run, and take it from any other. On disk when this returns. Raises
        ``UserError``."""
        check_name(name)
        with self._writing() as db:
            write_tag(db, name, run.id)

    def untag(self, name: str) -> None:
        """Take a name from its run. Raises ``UserError`` if there is no such name."""
        if name not in self.tags():
            raise UserError(f"no run is named '{name}'", "`trueload runs list` shows the names")
        with self._writing() as db:
            remove_tag(db, name)

    def runs(self) -> list[Run]:
        """All runs that can be read, oldest first (by sequence). A run without a recorded end that
        nobody holds counts as interrupted, by a kill or by the end of the machine."""
        found = (run for run in self._scan_runs() if isinstance(run, Run))
        return [self._as_it_is(run) for run in found if run.state != "deleted"]

    def _as_it_is(self, run: Run) -> Run:
        if run.state != "running" or is_held(self.path, run.seq):
            return run
        return replace(run, state="interrupted")

    def damaged_runs(self) -> list[DamagedRow]:
        """Runs that are not as they were written."""
        return [run for run in self._scan_runs() if isinstance(run, DamagedRow)]

    def find_run(self, selector: str) -> Run:
        """The run named by its id, a unique prefix of it, its tag, or ``last``: the latest one in
        which something was measured, else the latest. Raises ``UserError``."""
        runs = self.runs()
        selector = self.tags().get(selector, selector)
        if selector == "last" and runs:
            return next(filter(self._has_measured, reversed(runs)), runs[-1])
        matches = [run for run in runs if run.id == selector] or [
            run for run in runs if selector and run.id.startswith(selector)
        ]
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise UserError(
                f"'{selector}' is the beginning of {len(matches)} runs",
                f"give more of it, for example {matches[-1].id}",
            )
        raise UserError(
            f"there is no run '{selector}' in {self.path}",
            "`trueload runs list` shows what there is",
        )

    def heads(self) -> dict[int, RecordHead]:
        """The heads of the records of runs that consist of one trial, by the runs' numbers."""
        return self._heads("(SELECT row_count FROM runs WHERE runs.seq = run_seq) = 1", ())

    def _has_measured(self, run: Run) -> bool:
        """Whether something was measured; False if its only trial could not reach the server."""
        if run.row_count != 1:
            return True
        return all(head.issued > 0 for head in self._heads("run_seq = ?", (run.seq,)).values())

    def _heads(self, where: str, values: tuple[Any, ...]) -> dict[int, RecordHead]:
        rows = self._scan("rows", ROW_COLUMNS, where, values)
        return {row[1]: head for row in rows if (head := to_head(row)) is not None}

    def rows(self, run: Run) -> Iterator[Row | DamagedRow]:
        """The run's rows in the order of writing, one at a time; unreadable ones are in their
        place."""
        with contextlib.suppress(StoreError):
            run = self._run_by_seq(run.seq)  # again: more rows may have come since the caller's
        expected = 1
        for fields in self._scan("rows", ROW_COLUMNS, "run_seq = ?", (run.seq,)):
            row = to_row(fields)
            if isinstance(row, DamagedRow):
                yield DamagedRow(expected, row.why)
                expected += 1
                continue
            yield from _missing(expected, row.number)
            expected = row.number + 1
            yield row
        yield from _missing(expected, run.row_count + 1)

    def row(self, run: Run, seq: int) -> Row | DamagedRow | None:
        """One row of the run by its sequence number; None if it has no such row."""
        try:
            found = self._db.execute(
                f"SELECT {ROW_COLUMNS} FROM rows NOT INDEXED WHERE run_seq = ? AND seq = ?",
                (run.seq, seq),
            ).fetchone()
        except sqlite3.DatabaseError:
            return DamagedRow(None, UNREADABLE)
        return None if found is None else to_row(found)

    # ---- reading, row by row, so that one bad page does not hide the rest

    def _run_by_seq(self, seq: int) -> Run:
        try:
            found = self._db.execute(
                f"SELECT {RUN_COLUMNS} FROM runs WHERE seq = ?", (seq,)
            ).fetchone()
        except sqlite3.DatabaseError as error:
            raise read_error(self.path, error) from error
        run = DamagedRow(None, UNREADABLE) if found is None else to_run(found)
        if isinstance(run, DamagedRow):
            raise read_error(self.path, run.why)
        return run

    def _scan_runs(self) -> Iterator[Run | DamagedRow]:
        last = self._last_seq("runs")  # before the scan: more may come meanwhile
        expected = 1
        for fields in self._scan("runs", RUN_COLUMNS, "1", ()):
            yield from _missing(expected, fields[0], numbered=False)
            expected = fields[0] + 1
            yield to_run(fields)
        if last is None:
            yield DamagedRow(None, "the number of runs cannot be read")
        else:
            yield from _missing(expected, last + 1, numbered=False)

    def _scan(
        self, table: str, columns: str, where: str, values: tuple[Any, ...]
    ) -> Iterator[tuple[Any, ...]]:
        """Yield rows by sequence number, each fetched alone, without indexes, which may be damaged.

        Behind a page that cannot be read, numbers are tried one by one. After ever longer
        stretches, each twice as long, the next row is searched for again.
        """
        last, alone, tries = 0, 1, ALONE_MAX
        tail = f"{columns} FROM {table} NOT INDEXED WHERE {where} AND seq"
        end: int | None = None
        while True:
            found = self._fetch(f"SELECT {tail} > ? ORDER BY seq LIMIT 1", (*values, last))
            if found is None:
                return
            # A page in the wrong place may contain numbers that came before.
            if found and _is_seq(found[0]) and found[0] > last:
                last, alone = found[0], 1
                yield found
                continue
            end = end or self._last_seq(table) or last + ALONE_MAX
            for seq in range(last + 1, min(end, last + alone) + 1):
                tries -= 1 if self._db.ended else ALONE_MAX // CIRCLES_MAX
                if tries < 0:
                    return
                if found := self._fetch(f"SELECT {tail} = ?", (*values, seq)):
                    yield found
            last, alone = last + alone, alone * 2
            if last >= end:
                return

    def _fetch(self, query: str, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """One row; None if there is none, and an empty one if it cannot be read."""
        try:
            found: tuple[Any, ...] | None = self._db.execute(query, values).fetchone()
        except (sqlite3.DatabaseError, OverflowError):
            return ()
        return found

    def _last_seq(self, table: str) -> int | None:
        """The last sequence number given to a row; None if that cannot be read."""
        counted = self._fetch("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,))
        there = self._fetch(f"SELECT max(seq) FROM {table} NOT INDEXED", ())
        known = [found[0] for found in (counted, there) if found and _is_seq(found[0])]
        return max(known, default=None if () in (counted, there) else 0)

    # ---- writing

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction; a disk failure becomes one clear error, and nothing is half-written."""
        if self._unwritable is not None:
            raise self._unwritable
        try:
            self._begin()
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise write_error(self.path, error) from error

    def _begin(self) -> None:
        try:
            begin(self._db, self._wait_s)
        except KeyboardInterrupt:
            self._wait_s = 0.0  # after Ctrl-C the end of the run does not wait, either
            raise


def _next_seq(db: sqlite3.Connection, table: str) -> int:
    """AUTOINCREMENT's next number, taken in the transaction so that the checksum covers it."""
    last = db.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
    if last is not None and not _is_seq(last[0]):
        raise sqlite3.DatabaseError(f"its last number in {table} is {last[0]!r}")
    return 1 + (last[0] if last else 0)


def _is_seq(value: object) -> bool:
    return isinstance(value, int) and 0 < value < SEQ_MAX


def _missing(first: int, end: int, *, numbered: bool = True) -> Iterator[DamagedRow]:
    """Report the rows missing from ``first`` to before ``end``. The number may itself be damaged
    and huge, so beyond a limit only their count is reported."""
    shown = range(first, end)[:MISSING_MAX]
    for number in shown:
        yield DamagedRow(number if numbered else None, UNREADABLE)
    if end - first > MISSING_MAX:
        more = end - first - MISSING_MAX
        yield DamagedRow(None, f"{more:,} more are missing")
