"""The store's file: where it is, how it is opened, its tables, and the names of its failures.

How: an existing file is examined before anything in it is changed, so a foreign database or the
store of a newer version stays as it was. A damaged file may lead a statement in circles, so each
statement has a limit of steps.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trueload.errors import UserError
from trueload.files.private import make_folder, narrow, open_descriptor, user_folder
from trueload.store.lock import LOCK_ENDING

SCHEMA = 1
"""Version of the tables, in ``PRAGMA user_version``. A newer one is refused, an older migrated."""

APPLICATION_ID = 0x54_4C_4F_41  # "TLOA", in the file's header: tells our stores from other files
BUSY_TIMEOUT_S = 30.0  # how long one process waits for another's write
_BESIDE = ("-wal", "-shm", "-journal", LOCK_ENDING)
_TURN_S = 0.1  # SQLite's own wait, during which Ctrl-C has no effect
_AGAIN_S = 0.01  # between two tries if SQLite itself does not wait
FILE_BYTES_MIN = 512  # the smallest page
STEPS_OF_TURN = 1000
STEPS_MIN = 1_000_000  # of SQLite's virtual machine: about 20 ms
STEPS_PER_BYTE = 1 / 8  # a scan takes about ten steps per row, and a row has at least 100 bytes
VALUE_BYTES_MAX = 256 * 1024**2  # of one record or text; a damaged length must not fill the memory

_TABLES = """
CREATE TABLE runs (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    title TEXT NOT NULL,
    command TEXT NOT NULL,
    plan TEXT NOT NULL,
    seed INTEGER,
    started_at TEXT NOT NULL,
    state TEXT NOT NULL,
    ended_at TEXT,
    row_count INTEGER NOT NULL,
    checksum BLOB NOT NULL
);
CREATE TABLE rows (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    run_seq INTEGER NOT NULL REFERENCES runs (seq),
    number INTEGER NOT NULL,
    key TEXT NOT NULL,
    labels TEXT NOT NULL,
    outcome TEXT NOT NULL,
    reason TEXT,
    detail TEXT,
    added_at TEXT NOT NULL,
    record BLOB,
    checksum BLOB NOT NULL,
    UNIQUE (run_seq, number)
);
"""

# From schema N to N + 1, in order; an older store is brought up to date when it is opened.
MIGRATIONS: Mapping[int, str] = {}


class StoreError(UserError):
    """The store could not be read or written. What it had acknowledged before is intact, unless it
    is ``damaged``. If it is ``unwritable``, what is there may still be readable."""

    unwritable = False
    damaged = False


class Connection(sqlite3.Connection):
    """A connection with a limit on each statement. One that takes more steps than the file's size
    justifies fails with ``sqlite3.OperationalError``, "interrupted"."""

    def limit(self, file_bytes: int) -> None:
        """Set the limits for a file of this size."""
        self._turns = _Turns(int(STEPS_MIN + file_bytes * STEPS_PER_BYTE) // STEPS_OF_TURN)
        self.set_progress_handler(self._turns.take, STEPS_OF_TURN)
        self.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX)

    @property
    def ended(self) -> bool:
        """Whether the last statement ended within its limit."""
        return not self._turns.exhausted

    @contextlib.contextmanager
    def unlimited(self) -> Iterator[None]:
        """Lift the limit, for statements that go through the whole file."""
        self.set_progress_handler(None, STEPS_OF_TURN)
        try:
            yield
        finally:
            self.set_progress_handler(self._turns.take, STEPS_OF_TURN)

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """Execute with the full number of steps, as ``sqlite3.Connection.execute`` does."""
        self._turns.start()
        return super().execute(sql, parameters)


class _Turns:
    """Counts the steps of one statement. It is not part of its connection, which refers to it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = most

    def start(self) -> None:
        self._left = self._most

    @property
    def exhausted(self) -> bool:
        return self._left < 0

    def take(self) -> bool:
        self._left -= 1
        return self.exhausted


def default_path() -> Path:
    """``TRUELOAD_STORE``, else the user's data directory."""
    named = os.environ.get("TRUELOAD_STORE")
    if named:
        return Path(named)
    return user_folder("data") / "store.sqlite3"


def read_error(path: Path, why: object) -> StoreError:
    """The error for content that cannot be read."""
    hint = "keep a copy of the file, and set TRUELOAD_STORE to a new one"
    failure = StoreError(f"the store {path} is damaged: {why}", hint)
    failure.unwritable = failure.damaged = True
    return failure


def write_error(path: Path, error: sqlite3.Error) -> StoreError:
    """The error for a failed write, with SQLite's message and the next step."""
    text, unwritable = str(error), False
    if "locked" in text or "busy" in text:
        hint = f"another trueload has held it for {BUSY_TIMEOUT_S:.0f} s; wait for it and repeat"
    elif "full" in text or "disk I/O" in text:
        unwritable = True
        hint = "free some space, or set TRUELOAD_STORE to a file elsewhere; earlier rows are intact"
    elif "readonly" in text or "unable to open" in text:
        unwritable = True
        hint = "make it and its folder writable, or set TRUELOAD_STORE to a file elsewhere"
    else:
        hint = "keep a copy of the file, and set TRUELOAD_STORE to a new one"
    failure = StoreError(f"the store {path} could not be written: {text}", hint)
    failure.unwritable = unwritable
    return failure


def connect(path: Path) -> Connection:
    """Open the file, or create it. Raises ``StoreError``."""
    elsewhere = "set TRUELOAD_STORE to a writable file, or use --no-save"
    if os.path.isdir(path):  # unlike Path.is_dir, False where we have no permission
        raise StoreError(f"the store {path} is a directory, not a file", elsewhere)
    try:
        make_folder(path.parent)
        if path.exists() and 0 < path.stat().st_size < FILE_BYTES_MIN:
            # SQLite would take it for an empty file, and write over it.
            raise StoreError(f"{path} is not a store of trueload", "set TRUELOAD_STORE to another")
        _make(path)
        connection = sqlite3.connect(
            path, timeout=BUSY_TIMEOUT_S, isolation_level=None, factory=Connection
        )
        connection.limit(path.stat().st_size)
    except OSError as error:
        why = f"its folder cannot be created: {error.filename}: {error.strerror}"
        raise StoreError(f"the store {path} cannot be opened: {why}", elsewhere) from error
    except (ValueError, sqlite3.Error) as error:
        raise StoreError(f"the store {path} cannot be opened: {error}", elsewhere) from error
    return connection


def _make(path: Path) -> None:
    """Create the file before SQLite does, which would leave its mode to the umask. Files that
    SQLite makes beside it get the same mode."""
    real = os.path.realpath(path)  # of a link that leads nowhere yet, too
    if not os.path.exists(real):
        with contextlib.suppress(OSError):  # SQLite says what is wrong with it
            os.close(open_descriptor(real, os.O_RDWR))


def _narrow(path: Path) -> None:
    """Remove the rights of others from a store that was made with them."""
    real = os.path.realpath(path)
    for ending in ("", *_BESIDE):
        narrow(real + ending)


def connect_to_read(path: Path, why: StoreError) -> Connection:
    """Open an existing store as it is, to read only. On a disk that is full or read-only, SQLite
    has no room for the files that it keeps beside a store. A damaged store must not be written to.
    Raises ``why`` if there is nothing to read."""
    log = path.with_name(f"{path.name}-wal")
    if not os.path.isfile(path) or path.stat().st_size == 0:
        raise why
    if os.path.exists(log) and log.stat().st_size > 0:
        if why.damaged:
            raise why
        raise StoreError(
            f"the store {path} cannot be read: its latest rows are in {log.name},"
            " and nothing can be written there",
            "copy both files to a writable folder, and set TRUELOAD_STORE to the copy",
        ) from why
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    db = sqlite3.connect(uri, uri=True, isolation_level=None, factory=Connection)
    db.limit(path.stat().st_size)
    try:
        # Otherwise a file that is shorter than it says is refused as a whole (sqlite3, lockBtree).
        db.execute("PRAGMA writable_schema = ON")
        db.execute("PRAGMA cell_size_check = ON")
        _refuse_foreign(db, path)
        _narrow(path)
        if _pragma(db, "user_version") != SCHEMA:
            raise why
    except sqlite3.Error as error:
        db.close()
        raise read_error(path, error) from error
    except StoreError:
        db.close()
        raise
    return db


def prepare(db: sqlite3.Connection, path: Path) -> None:
    """Check that the store is ours and not newer, migrate it if older, and make it durable."""
    elsewhere = "set TRUELOAD_STORE to another file"
    try:
        _refuse_foreign(db, path)  # before anything is changed in it
        _narrow(path)
        # This does not wait for other processes by itself (sqlite.org/wal.html).
        _execute_unlocked(db, "PRAGMA journal_mode = WAL", BUSY_TIMEOUT_S)
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA cell_size_check = ON")
        if _pragma(db, "user_version") != SCHEMA:
            _bring_up_to_date(db, path)
    except sqlite3.Error as error:
        text = str(error)
        if "not a database" in text:
            raise StoreError(f"{path} is not a store of trueload", elsewhere) from error
        if "malformed" in text or "corrupt" in text:
            raise read_error(path, text) from error
        raise write_error(path, error) from error


def begin(db: sqlite3.Connection, wait_s: float = BUSY_TIMEOUT_S) -> None:
    """Begin to write, once no other process does; Ctrl-C ends the wait."""
    db.execute(f"PRAGMA busy_timeout = {_TURN_S * 1000:.0f}")
    try:
        _execute_unlocked(db, "BEGIN IMMEDIATE", wait_s)
    finally:
        db.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_S * 1000:.0f}")


def _execute_unlocked(db: sqlite3.Connection, statement: str, wait_s: float) -> None:
    """Execute a statement, and try again while another process holds the file."""
    deadline_s = time.monotonic() + wait_s
    while True:
        try:
            db.execute(statement)
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline_s:
                raise
        time.sleep(_AGAIN_S)


def _refuse_foreign(db: sqlite3.Connection, path: Path) -> None:
    elsewhere = "set TRUELOAD_STORE to another file"
    with _at_one_time(db):  # another process may just be making the store
        version = int(_pragma(db, "user_version"))
        application = _pragma(db, "application_id")
        empty = _is_empty(db)
    if application != APPLICATION_ID:
        if not empty:
            raise StoreError(f"{path} is a database, but not a store of trueload", elsewhere)
    elif version < 1 and not empty:  # its version is committed together with its tables
        raise StoreError(f"the store {path} is damaged: no store has schema {version}", elsewhere)
    elif version > SCHEMA:
        raise StoreError(
            f"the store {path} has schema {version}; this trueload knows up to {SCHEMA}",
            "use a newer trueload, or set TRUELOAD_STORE to another file",
        )


@contextlib.contextmanager
def _at_one_time(db: sqlite3.Connection) -> Iterator[None]:
    """Let all that is read be of one state of the file."""
    if db.in_transaction:
        yield
        return
    db.execute("BEGIN")
    try:
        yield
    finally:
        if db.in_transaction:  # an error may have ended it
            db.execute("ROLLBACK")


def _is_empty(db: sqlite3.Connection) -> bool:
    # Not count(*), which walks the whole tree in a single step.
    return db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone() is None


def _bring_up_to_date(db: sqlite3.Connection, path: Path) -> None:
    begin(db)  # read again under the lock: another process may have done it
    try:
        _refuse_foreign(db, path)
        version = int(_pragma(db, "user_version"))
        if _is_empty(db):
            _execute_each(db, _TABLES)
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        else:
            for older in range(version, SCHEMA):
                _execute_each(db, MIGRATIONS[older])
        db.execute(f"PRAGMA user_version = {SCHEMA}")
        db.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            db.execute("ROLLBACK")
        raise


def _execute_each(db: sqlite3.Connection, statements: str) -> None:
    # Not executescript, which would commit the open transaction.
    for statement in statements.split(";\n"):
        db.execute(statement)


def _pragma(db: sqlite3.Connection, name: str) -> Any:
    return db.execute(f"PRAGMA {name}").fetchone()[0]
